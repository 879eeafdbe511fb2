//! How parts of the crate hear events without a closure for each.

use std::rc::Rc;

use super::listeners::Target;
use super::{ERROR, Event, EventEmitter, ListenerId, Observer};

impl EventEmitter {
    /// Adds `observer` behind the listeners of an event. It hears the event with `token`, until
    /// [`stop_observing`](Self::stop_observing).
    pub(crate) fn observe(&self, event: Event<()>, observer: Rc<dyn Observer>, token: u8) {
        let target = Target::Observer(observer, token);
        self.insert(ListenerId::new(event), target, false);
        self.tell(|watch| watch.added(event.name));
    }

    /// Adds `observer` behind the listeners of [`ERROR`], until
    /// [`stop_observing`](Self::stop_observing).
    pub(crate) fn observe_errors(&self, observer: Rc<dyn Observer>, token: u8) {
        let target = Target::ErrorObserver(observer, token);
        self.insert(ListenerId::new(ERROR), target, false);
        self.tell(|watch| watch.added(ERROR.name));
    }

    /// Returns a number that differs after a listener was added or removed.
    pub(crate) fn changes(&self) -> u32 {
        self.inner.listeners.borrow().changes()
    }

    /// Removes what `observer` has added with a token, or all that it has added.
    pub(crate) fn stop_observing(&self, observer: &dyn Observer, token: Option<u8>) {
        let next = || self.inner.listeners.borrow().last_of(observer, token);
        while let Some(id) = next() {
            self.off(id);
        }
    }
}
