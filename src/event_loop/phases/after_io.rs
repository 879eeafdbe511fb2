//! What the poll phase delivers after the rest of its batch: file changes, then signals, then
//! exits of children.
// Rules of tests/LIBUV.md: R95.

use std::cell::OnceCell;
use std::io;

use super::children::Children;
use super::signals::Signals;
use super::sources::SourceState;
use super::watches::Watches;
use crate::event_loop::core::Core;

/// The sources of events that come last. A loop that uses none of them pays for one check.
#[derive(Default)]
pub(crate) struct AfterIo {
    parts: OnceCell<Box<Subscribers>>,
}

#[derive(Default)]
pub(crate) struct Subscribers {
    pub(crate) watches: Watches,
    pub(crate) signals: Signals,
    pub(crate) children: Children,
}

impl AfterIo {
    /// Returns the parts. They are created on first use.
    pub(crate) fn parts(&self) -> &Subscribers {
        self.parts.get_or_init(Box::default)
    }

    /// Returns whether there is something to deliver.
    #[inline]
    pub(in crate::event_loop) fn has_pending(&self) -> bool {
        self.parts.get().is_some_and(|parts| parts.has_pending())
    }

    /// Returns whether a signal was caught, or is left from a pass that a panic interrupted. `None`
    /// means that the loop uses none of the parts.
    #[inline]
    pub(in crate::event_loop) fn has_caught(&self) -> Option<bool> {
        self.parts.get().map(|parts| parts.signals.has_pending())
    }

    /// Returns whether a panic left events that were not delivered.
    pub(in crate::event_loop) fn was_interrupted(&self) -> bool {
        self.parts.get().is_some_and(|parts| {
            parts.watches.has_due() || parts.signals.has_due() || parts.children.has_due()
        })
    }

    /// Notes an event that belongs to no source.
    pub(in crate::event_loop) fn note_event(&self, key: usize) {
        if let Some(parts) = self.parts.get() {
            parts.watches.note_event(key);
        }
    }

    /// Notes an event of a source and returns whether the source is the descriptor of a child.
    #[inline]
    pub(in crate::event_loop) fn note_child(&self, source: &SourceState) -> bool {
        self.parts
            .get()
            .is_some_and(|parts| parts.children.report(source))
    }

    /// Stops all watches and listeners when the loop is dropped.
    pub(in crate::event_loop) fn shut_down(&self) {
        if let Some(parts) = self.parts.get() {
            parts.watches.drain();
            parts.children.drain();
            parts.signals.drain();
        }
    }
}

impl Subscribers {
    #[inline(never)]
    fn has_pending(&self) -> bool {
        self.watches.has_pending() || self.signals.has_pending() || self.children.has_pending()
    }
}

impl Core {
    /// Sets up the watches of the child process after a fork.
    pub(in crate::event_loop) fn reinit_after_io(&self) -> io::Result<()> {
        let Some(parts) = self.after_io.parts.get() else {
            return Ok(());
        };
        parts.signals.forget_caught();
        if parts.children.ask_all() {
            self.shared.inbox.signal();
        }
        self.restart_watches()
    }

    /// Delivers file changes, signals and exits, and returns the number of events. If a signal was
    /// `caught` before the batch, all signals caught by now are delivered; they count as at
    /// least one event even if every listener is skipped.
    // Rule R115.
    #[inline(never)]
    pub(in crate::event_loop) fn run_after_io(&self, caught: bool) -> usize {
        let Subscribers {
            watches,
            signals,
            children,
        } = self.after_io.parts();
        let watched = if watches.has_pending() {
            self.run_watches()
        } else {
            0
        };
        if !caught && !children.has_pending() {
            return watched;
        }
        // All events are collected before the first is delivered, so that user code cannot change
        // what is collected.
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
