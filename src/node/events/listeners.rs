//! The listeners of an event.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use super::event::Key;

/// One listener of an event.
pub(super) struct Listener<A: ?Sized> {
    pub(super) number: u64,
    pub(super) calls: Calls<A>,
}

/// The closure of a listener, and how often it is called.
pub(super) enum Calls<A: ?Sized> {
    Always(Box<dyn Fn(&A)>),
    /// Empty once it was called.
    Once(Cell<Option<OnceCall<A>>>),
}

type OnceCall<A> = Box<dyn FnOnce(&A)>;

impl<A: ?Sized> Calls<A> {
    pub(super) fn once(call: impl FnOnce(&A) + 'static) -> Self {
        Self::Once(Cell::new(Some(Box::new(call))))
    }
}

/// The listeners of one event. The list is shared with running emits: a change during an emit
/// copies it.
// N113.
pub(super) type Listeners<A> = Rc<Vec<Rc<Listener<A>>>>;

/// The listeners of one event, without the type of the argument.
pub(super) trait AnyListeners {
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn len(&self) -> usize;
    fn last(&self) -> Option<u64>;
    /// Removes a listener and returns it, so that the caller drops it without a borrow.
    fn remove(&mut self, number: u64) -> Option<Box<dyn Any>>;
}

impl<A: ?Sized + 'static> AnyListeners for Listeners<A> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn last(&self) -> Option<u64> {
        <[_]>::last(self).map(|listener| listener.number)
    }

    fn remove(&mut self, number: u64) -> Option<Box<dyn Any>> {
        let place = self.iter().position(|entry| entry.number == number)?;
        let removed = Self::make_mut(self).remove(place);
        Some(Box::new(removed))
    }
}

/// One event with listeners.
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) listeners: Box<dyn AnyListeners>,
    /// Whether the emitter has warned of too many listeners.
    pub(super) warned: bool,
}
