//! What the poll phase delivers after everything else of its batch (R95): changes of files, signals, then the ends of
//! children.

use super::children::Children;
use super::core::Core;
use super::signals::Signals;
use super::watches::Watches;

/// The part of a loop that is looked at last.
#[derive(Default)]
pub(crate) struct Late {
    pub(crate) watches: Watches,
    pub(crate) signals: Signals,
    pub(crate) children: Children,
}

impl Late {
    /// Whether there is something to deliver.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.watches.any() || self.signals.any() || self.children.any()
    }

    /// Whether a panic has left some who were not told.
    pub(super) fn has_rest(&self) -> bool {
        self.watches.has_due() || self.signals.has_due() || self.children.has_due()
    }

    /// The loop is gone: nothing is watched any more.
    pub(super) fn shut_down(&self) {
        self.watches.drain();
        self.children.drain();
        self.signals.drain();
    }
}

impl Core {
    /// Delivers what comes last; returns how many events that were.
    #[inline]
    pub(super) fn run_late(&self) -> usize {
        let Late {
            watches,
            signals,
            children,
        } = &self.late;
        let watched = if watches.any() { self.run_watches() } else { 0 };
        if !signals.any() && !children.any() {
            return watched;
        }
        // All of it is found out before anybody is told of any of it.
        signals.collect();
        if signals.saw_child() {
            children.ask();
        }
        let ended = self.collect_children();
        watched + ended + self.run_signals() + self.run_exits()
    }
}
