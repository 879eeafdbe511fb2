//! The slot of a loop for the state of the layer above (the extension that implements Node's API).

use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;

use super::core::Core;
use super::report::Waiting;

/// The state that the layer above keeps for a loop.
pub(crate) trait Upper: Any {
    /// Adds what waits in this layer to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// Drops all callbacks when the loop is dropped: they may own handles to the loop.
    fn shut_down(&self);
}

/// A slot that is empty until the layer above is first used on the loop.
#[derive(Default)]
pub(crate) struct UpperSlot {
    value: OnceCell<Kept>,
}

/// Stored as `dyn Any`: a downcast through our own trait would cost a second virtual call on every
/// access.
struct Kept {
    value: Box<dyn Any>,
    as_upper: fn(&dyn Any) -> Option<&dyn Upper>,
}

impl UpperSlot {
    fn get_or_make<T: Upper>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.value.get_or_init(|| Kept {
            value: Box::new(make()),
            as_upper: |value| value.downcast_ref::<T>().map(|value| value as &dyn Upper),
        });
        let value = kept.value.downcast_ref();
        value.expect("there is one layer above")
    }

    /// Returns the layer above, if it was used on the loop.
    pub(super) fn get(&self) -> Option<&dyn Upper> {
        let kept = self.value.get()?;
        (kept.as_upper)(&*kept.value)
    }
}

impl Core {
    /// Returns the state of the layer above, if it was used on the loop.
    #[inline]
    pub(crate) fn upper<T: Upper>(&self) -> Option<&T> {
        self.upper.value.get()?.value.downcast_ref()
    }

    /// Calls `f` with the state of the layer above. `make` creates the state on first use.
    pub(crate) fn with_upper<T: Upper, R>(
        self: &Rc<Self>,
        make: impl FnOnce(&Rc<Self>) -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        f(self.upper.get_or_make(|| make(self)))
    }
}
