//! A place in the loop for what the layer above keeps for each loop.

use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;

use super::core::Core;
use super::report::Waiting;

/// What the layer above keeps for a loop.
pub(crate) trait Upper: Any {
    /// Adds what of it waits, to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// The loop is being dropped: lets go of all callbacks, which may own handles to the loop.
    fn shut_down(&self);
}

/// Empty until the layer above is first used on the loop.
#[derive(Default)]
pub(crate) struct UpperSlot {
    value: OnceCell<Kept>,
}

/// The type is asked for at every use, hence `Any` itself: the way through a trait of ours would be one call more.
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

    /// The layer above, if it was used on the loop.
    pub(super) fn get(&self) -> Option<&dyn Upper> {
        let kept = self.value.get()?;
        (kept.as_upper)(&*kept.value)
    }
}

impl Core {
    /// The layer above's state of this loop, if it was used on it.
    #[inline]
    pub(crate) fn upper<T: Upper>(&self) -> Option<&T> {
        self.upper.value.get()?.value.downcast_ref()
    }

    /// Calls `f` with the layer above's state of this loop, made by `make` when there is none yet.
    pub(crate) fn with_upper<T: Upper, R>(
        self: &Rc<Self>,
        make: impl FnOnce(&Rc<Self>) -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        f(self.upper.get_or_make(|| make(self)))
    }
}
