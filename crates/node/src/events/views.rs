//! The listeners of an event, to be called by the program.

use std::rc::Rc;

use super::event::key_of;
use super::listeners::{Calls, Target};
use super::{EventEmitter, EventName, ListenerId};

/// A listener of an event, as [`EventEmitter::listeners`] returns it.
pub type Listener<A> = Rc<dyn Fn(&A)>;

impl EventEmitter {
    /// Returns the listeners of an event. A call of one calls the listener and removes nothing; a
    /// listener that is called [once](Self::once) is called at most once by all of its ways.
    /// JavaScript: `emitter.listeners(name)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::events::{Event, EventEmitter};
    ///
    /// const DATA: Event<u32> = Event::new("data");
    ///
    /// fn main() {
    ///     let emitter = EventEmitter::new();
    ///     emitter.on(DATA, |n| println!("{n}"));
    ///     for listener in emitter.listeners(DATA) {
    ///         listener(&7);
    ///     }
    /// }
    /// ```
    // N151.
    #[must_use]
    pub fn listeners<A: ?Sized + 'static>(&self, event: impl EventName<A>) -> Vec<Listener<A>> {
        self.views(&event, false)
    }

    /// Returns the listeners of an event, with the wrappers of those that are called
    /// [once](Self::once): a call removes the listener first. JavaScript:
    /// `emitter.rawListeners(name)`.
    // N151.
    #[must_use]
    pub fn raw_listeners<A: ?Sized + 'static>(&self, event: impl EventName<A>) -> Vec<Listener<A>> {
        self.views(&event, true)
    }

    fn views<A: ?Sized + 'static>(
        &self,
        event: &impl EventName<A>,
        removes: bool,
    ) -> Vec<Listener<A>> {
        let listeners = self.inner.listeners.borrow().snapshot(key_of(event));
        let closures = listeners
            .iter()
            .filter_map(|(number, target)| match target {
                Target::Closure(calls) => {
                    let calls = calls.clone().downcast::<Calls<A>>().ok()?;
                    Some((ListenerId { number: *number }, calls))
                }
                // Parts of this crate.
                Target::Observer(..) | Target::ErrorObserver(..) => None,
            });
        let view = |(id, calls): (ListenerId, Rc<Calls<A>>)| {
            let emitter = self.downgrade();
            let call = move |argument: &A| match &*calls {
                Calls::Always(call) => call(argument),
                Calls::Once(call) => {
                    let Some(call) = call.take() else { return };
                    if let Some(emitter) = emitter.upgrade().filter(|_| removes) {
                        emitter.off(id);
                    }
                    call(argument);
                }
            };
            Rc::new(call) as Rc<dyn Fn(&A)>
        };
        closures.map(view).collect()
    }
}
