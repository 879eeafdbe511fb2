//! The slot of a loop for the state of the layer above (the extension that implements Node's API).

use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;

use super::api::report::Waiting;
use super::core::Core;

/// The state that the layer above keeps for a loop.
pub(crate) trait Extension: Any {
    /// Adds what waits in this layer to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// Drops all callbacks when the loop is dropped: they may own handles to the loop.
    fn shut_down(&self);
}

/// A slot that is empty until the layer above is first used on the loop.
#[derive(Default)]
pub(crate) struct ExtensionSlot {
    value: OnceCell<Kept>,
}

/// Stored as `dyn Any`: a downcast through our own trait would cost a second virtual call on every
/// access.
struct Kept {
    value: Box<dyn Any>,
    as_extension: fn(&dyn Any) -> Option<&dyn Extension>,
}

impl ExtensionSlot {
    fn get_or_make<T: Extension>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.value.get_or_init(|| Kept {
            value: Box::new(make()),
            as_extension: |value| {
                value
                    .downcast_ref::<T>()
                    .map(|value| value as &dyn Extension)
            },
        });
        let value = kept.value.downcast_ref();
        value.expect("there is one layer above")
    }

    /// Returns the layer above, if it was used on the loop.
    pub(super) fn get(&self) -> Option<&dyn Extension> {
        let kept = self.value.get()?;
        (kept.as_extension)(&*kept.value)
    }
}

impl Core {
    /// Returns the state of the layer above, if it was used on the loop.
    #[inline]
    pub(crate) fn extension<T: Extension>(&self) -> Option<&T> {
        self.extension.value.get()?.value.downcast_ref()
    }

    /// Calls `f` with the state of the layer above. `make` creates the state on first use.
    pub(crate) fn with_extension<T: Extension, R>(
        self: &Rc<Self>,
        make: impl FnOnce(&Rc<Self>) -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        f(self.extension.get_or_make(|| make(self)))
    }
}
