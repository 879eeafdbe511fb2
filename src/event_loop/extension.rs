//! The seam between the loop and its extension, the crate above that implements Node's API.
//!
//! The loop knows of the extension what stands here: the slot for its state, and what it may do to
//! a loop beyond the public API ([`Loop`], [`SharedTimer`]). The root module `extension` exports
//! it.

mod reach;
mod timer;

use std::any::Any;
use std::cell::OnceCell;

pub use self::reach::{Loop, WeakLoop};
pub use self::timer::SharedTimer;
pub use super::report::waits::{Due, Waiting};

/// The state that the extension keeps for a loop.
pub trait Extension: 'static {
    /// Adds what waits in the extension to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// Returns the data pointers of the wakers that belong to no task, in their order.
    fn own_wakers(&self) -> Vec<*const ()>;

    /// Drops all callbacks when the loop is dropped: they may own handles to the loop.
    fn shut_down(&self);
}

/// A slot that is empty until the extension is first used on the loop.
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
    /// Returns the extension, if it was used on the loop.
    pub(super) fn get(&self) -> Option<&dyn Extension> {
        let kept = self.value.get()?;
        (kept.as_extension)(&*kept.value)
    }

    /// Returns the state of the extension, if it was used on the loop.
    #[inline]
    fn state<T: Extension>(&self) -> Option<&T> {
        self.value.get()?.value.downcast_ref()
    }

    fn state_or_make<T: Extension>(&self, make: impl FnOnce() -> T) -> &T {
        let kept = self.value.get_or_init(|| Kept {
            value: Box::new(make()),
            as_extension: |value| {
                value
                    .downcast_ref::<T>()
                    .map(|value| value as &dyn Extension)
            },
        });
        let value = kept.value.downcast_ref();
        value.expect("there is one extension")
    }
}
