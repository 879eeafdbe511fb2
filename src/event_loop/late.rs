//! What the poll phase delivers after everything else of its batch (R95): changes of files, signals, then the ends of
//! children.

use std::cell::OnceCell;
use std::io;

use super::children::Children;
use super::core::Core;
use super::signals::Signals;
use super::sources::SourceState;
use super::watches::Watches;

/// The part of a loop that is looked at last. Most loops have none, and pay for one look at that.
#[derive(Default)]
pub(crate) struct Late {
    parts: OnceCell<Box<Parts>>,
}

#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) watches: Watches,
    pub(crate) signals: Signals,
    pub(crate) children: Children,
}

impl Late {
    /// The parts, made if there are none: for those who start to use one.
    pub(crate) fn parts(&self) -> &Parts {
        self.parts.get_or_init(Box::default)
    }

    /// Whether there is something to deliver.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.parts.get().is_some_and(|parts| parts.any())
    }

    /// Whether a signal was caught, or is left from a pass that a panic cut short. `None`: this loop has nothing that comes
    /// last.
    #[inline]
    pub(super) fn has_caught(&self) -> Option<bool> {
        self.parts.get().map(|parts| parts.signals.any())
    }

    /// Whether a panic has left some who were not told.
    pub(super) fn has_rest(&self) -> bool {
        self.parts.get().is_some_and(|parts| {
            parts.watches.has_due() || parts.signals.has_due() || parts.children.has_due()
        })
    }

    /// An event for no source has come.
    pub(super) fn note_event(&self, key: usize) {
        if let Some(parts) = self.parts.get() {
            parts.watches.note_event(key);
        }
    }

    /// An event of a source has come; says whether it is one of a child.
    #[inline]
    pub(super) fn note_child(&self, source: &SourceState) -> bool {
        self.parts
            .get()
            .is_some_and(|parts| parts.children.report(source))
    }

    /// The loop is gone: nothing is watched any more.
    pub(super) fn shut_down(&self) {
        if let Some(parts) = self.parts.get() {
            parts.watches.drain();
            parts.children.drain();
            parts.signals.drain();
        }
    }
}

impl Parts {
    #[inline(never)]
    fn any(&self) -> bool {
        self.watches.any() || self.signals.any() || self.children.any()
    }
}

impl Core {
    /// After a fork: what is watched is watched by this process.
    pub(super) fn reinit_late(&self) -> io::Result<()> {
        let Some(parts) = self.late.parts.get() else {
            return Ok(());
        };
        parts.signals.forget_caught();
        if parts.children.ask_all() {
            self.shared.inbox.signal();
        }
        self.restart_watches()
    }

    /// Delivers what comes last, and of signals, if one was caught before the batch, all that are caught by now (R115).
    /// Returns how many events that were; the signals are at least one, though all of them may be passed over.
    #[inline(never)]
    pub(super) fn run_late(&self, caught: bool) -> usize {
        let Parts {
            watches,
            signals,
            children,
        } = self.late.parts();
        let watched = if watches.any() { self.run_watches() } else { 0 };
        if !caught && !children.any() {
            return watched;
        }
        // All of it is found out before anybody is told of any of it.
        if caught {
            signals.begin_pass();
            if signals.saw_child() {
                children.ask();
            }
        }
        let ended = self.collect_children();
        if caught {
            self.run_signals();
        }
        watched + usize::from(caught) + ended + self.run_exits()
    }
}
