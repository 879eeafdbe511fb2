//! What the poll phase delivers after everything else of its batch (R95): signals.

use super::core::Core;
#[cfg(all(unix, feature = "signal"))]
use super::signals::Signals;

/// The part of a loop that is looked at last.
#[derive(Default)]
pub(crate) struct Late {
    #[cfg(all(unix, feature = "signal"))]
    pub(crate) signals: Signals,
}

impl Late {
    /// Whether a panic has left some who were not told.
    pub(super) fn has_rest(&self) -> bool {
        #[cfg(all(unix, feature = "signal"))]
        if self.signals.has_due() {
            return true;
        }
        false
    }

    /// The loop is gone: nothing is watched any more.
    pub(super) fn shut_down(&self) {
        #[cfg(all(unix, feature = "signal"))]
        self.signals.drain();
    }
}

impl Core {
    /// Delivers what comes last; returns how many callbacks that made.
    #[inline]
    pub(super) fn run_late(&self) -> usize {
        #[cfg(all(unix, feature = "signal"))]
        if self.late.signals.any() {
            return self.run_signals();
        }
        0
    }

    #[cfg(all(unix, feature = "signal"))]
    fn run_signals(&self) -> usize {
        let signals = &self.late.signals;
        signals.collect();
        let mut dispatched = 0;
        while let Some((listener, once)) = signals.next() {
            if once {
                self.set_active(&listener.header, false);
            }
            self.dispatch(crate::kinds::Phase::Poll, || listener.callback.call());
            dispatched += 1;
        }
        dispatched
    }
}
