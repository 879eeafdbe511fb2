//! How parts of the crate observe events without a closure for each.

use std::rc::Rc;

use super::event::Name;
use super::listeners::Target;
use super::{ERROR, Event, EventEmitter, ListenerId, Observer};

impl EventEmitter {
    /// Adds `observer` behind the listeners of an event. It is notified with `token`, until
    /// [`stop_observing`](Self::stop_observing).
    pub(crate) fn observe(&self, event: Event<()>, observer: Rc<dyn Observer>, token: u8) {
        let target = Target::Observer(observer, token);
        self.insert(ListenerId::new(), Name::Fixed(event.name), target, false);
        self.notify(|watch| watch.added(event.name));
    }

    /// Adds `observer` behind the listeners of [`ERROR`], until
    /// [`stop_observing`](Self::stop_observing).
    pub(crate) fn observe_errors(&self, observer: Rc<dyn Observer>, token: u8) {
        let target = Target::ErrorObserver(observer, token);
        self.insert(ListenerId::new(), Name::Fixed(ERROR.name), target, false);
        self.notify(|watch| watch.added(ERROR.name));
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
