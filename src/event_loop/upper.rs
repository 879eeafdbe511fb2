//! A place in the loop for what the layer above keeps for each loop.

use std::any::Any;
use std::cell::OnceCell;
use std::rc::Rc;

use super::core::Core;
use super::report::Waiting;

/// What the layer above keeps for a loop.
pub(crate) trait Upper: Any {
    fn as_any(&self) -> &dyn Any;

    /// Adds what of it waits, to a report of the loop.
    fn report(&self, found: &mut Vec<Waiting>);

    /// The loop is being dropped: lets go of all callbacks, which may own handles to the loop.
    fn shut_down(&self);
}

/// Empty until the layer above is first used on the loop.
#[derive(Default)]
pub(crate) struct UpperSlot {
    value: OnceCell<Rc<dyn Upper>>,
}

impl UpperSlot {
    pub(super) fn get(&self) -> Option<&Rc<dyn Upper>> {
        self.value.get()
    }
}

impl Core {
    /// The layer above's state of this loop, if it was used on it.
    #[inline]
    pub(crate) fn upper<T: Upper>(&self) -> Option<&T> {
        self.upper.value.get()?.as_any().downcast_ref()
    }

    /// Calls `f` with the layer above's state of this loop, made by `make` when there is none yet.
    #[inline]
    pub(crate) fn with_upper<T: Upper, R>(
        self: &Rc<Self>,
        make: impl FnOnce(&Rc<Self>) -> T,
        f: impl FnOnce(&T) -> R,
    ) -> R {
        let upper = self.upper.value.get_or_init(|| Rc::new(make(self)));
        f(upper
            .as_any()
            .downcast_ref()
            .expect("there is one layer above"))
    }
}
