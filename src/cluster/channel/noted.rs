//! A channel in reports, and its messages in a trace.
// Rule C22.
// Marks: `cold`, since a channel is noted once, and few programs are traced.

use std::sync::Arc;

use super::{Ordering, Shared};
#[cfg(any(feature = "probe", not(all(test, phaseloop_loom))))]
use crate::event_loop::current;
use crate::executor::notes::{NamedWait, SharedWait, Source};

impl<T: 'static> Shared<T> {
    /// Notes for reports that the current loop waits for the channel.
    #[cold]
    pub(super) fn note(self: &Arc<Self>) {
        // A model has no loop.
        #[cfg(not(all(test, phaseloop_loom)))]
        current::if_any(|core| {
            let channel = Arc::downgrade(self);
            core.executor.note_shared(channel);
        });
    }
}

impl<T> SharedWait for Shared<T> {
    fn describe(&self, found: &mut Vec<(NamedWait, *const ())>) {
        let named = |what, state| NamedWait {
            source: Source::Elsewhere(String::new(), state),
            ..NamedWait::new(what, "", Some(self.site))
        };
        let state = self.state();
        if let Some(receiver) = &state.receiver {
            let senders = match state.senders {
                1 => "1 sender".to_owned(),
                many => format!("{many} senders"),
            };
            found.push((named("empty channel", senders), receiver.data()));
        }
        let used = self.used.load(Ordering::Acquire);
        for (_, sender) in &state.full {
            let used = format!("{used} of {}", self.capacity);
            found.push((named("full channel", used), sender.data()));
        }
    }
}

/// Notes in a trace that a message was sent or received.
#[cold]
pub(super) fn note_message(is_sent: bool, number: u32) {
    #[cfg(feature = "probe")]
    current::if_any(|core| {
        let now = core.executor.clock.read();
        core.executor.probe.message(is_sent, number, now);
    });
    let _ = (is_sent, number);
}
