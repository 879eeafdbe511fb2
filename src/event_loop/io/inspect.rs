//! What the ways to wait of tests see of the poll phase: its batch of events, its sources, and what
//! comes after them.

use std::rc::Rc;

use super::Io;
use super::poll_handles::PollState;
use super::sources::SourceState;
use crate::event_loop::core::Core;
use crate::sys::poller::RawSource;

impl Io {
    /// Returns the poll handles that are started.
    pub(crate) fn poll_handles(&self) -> Vec<Rc<PollState>> {
        let started = self.poll_handles.started.borrow();
        started.iter().map(|(_, poll)| poll.clone()).collect()
    }

    /// Returns whether the last wait has an event with one of these keys.
    pub(crate) fn has_event_of(&self, keys: &[usize]) -> bool {
        self.events.borrow().keys().any(|key| keys.contains(&key))
    }

    /// Returns how many children are awaited.
    pub(crate) fn awaited_children(&self) -> usize {
        self.after_io.awaited()
    }
}

impl PollState {
    pub(crate) fn descriptor(&self) -> RawSource {
        self.source
    }

    /// Returns the key of the registration, while the handle is started.
    pub(crate) fn key(&self) -> Option<usize> {
        self.key.get()
    }
}

impl SourceState {
    /// Returns the descriptor, while it is registered.
    pub(crate) fn descriptor(&self) -> Option<RawSource> {
        self.registered.get()
    }
}

impl Core {
    /// Returns whether the last call to the kernel has left something to do.
    pub(crate) fn has_arrived(&self) -> bool {
        // On platforms where the wake-up of a signal is not an event, the call has consumed it.
        self.io.after_io.has_pending() || !self.io.events.borrow().is_empty() || self.has_work_now()
    }
}

/// What a loop with shuffled orders needs.
#[cfg(feature = "test-util")]
mod shuffled {
    use crate::event_loop::core::Core;
    use crate::event_loop::io::sources::{SourceState, source_of};
    use crate::site::Site;
    use crate::sys::poller::RawEvent;

    impl Core {
        /// Returns the number of turns so far.
        pub(crate) fn turn_count(&self) -> u64 {
            self.counters.turns.get()
        }

        /// Takes all events of the last wait.
        pub(crate) fn take_events(&self) -> Vec<RawEvent> {
            self.io.events.borrow_mut().take_all()
        }

        /// Makes `events` the events of this wait.
        pub(crate) fn put_events(&self, events: impl Iterator<Item = RawEvent>) {
            self.io.events.borrow_mut().put_all(events);
        }

        /// Returns whether this wait has events.
        pub(crate) fn has_events(&self) -> bool {
            !self.io.events.borrow().is_empty()
        }

        /// Returns whether an async handle was sent to.
        pub(crate) fn has_sent_asyncs(&self) -> bool {
            self.io.asyncs.any_sent()
        }

        /// Returns whether signals, exits or file changes are to be delivered.
        pub(crate) fn has_after_io(&self) -> bool {
            self.io.after_io.has_pending()
        }

        /// Returns whether signals were caught that no wait has delivered.
        pub(crate) fn has_caught(&self) -> bool {
            self.io.after_io.has_caught()
        }

        /// Returns whether the events of this key are exits of children.
        pub(crate) fn is_exit(&self, key: usize) -> bool {
            self.io.after_io.owns_event(key)
        }

        /// Returns the line that created the source or poll handle of an event.
        pub(crate) fn site_of(&self, key: usize) -> Option<Site> {
            if let Some(poll) = self.io.poll_handles.get(key) {
                return Some(poll.header.site);
            }
            let sources = self.io.sources.slots.hold();
            source_of(&sources, key).map(|source| source.header.site)
        }

        /// Returns whether a task waits for a descriptor of the kernel.
        pub(crate) fn awaits_kernel(&self) -> bool {
            let sources = self.io.sources.list();
            let is_awaited =
                |source: &SourceState| source.header.active.get() || source.has_request();
            sources
                .iter()
                .any(|source| source.descriptor().is_some() && is_awaited(source))
        }
    }
}
