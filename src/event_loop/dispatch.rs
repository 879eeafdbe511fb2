//! Runs callbacks and drains the lanes.
//!
//! Each callback of a phase runs through [`Core::dispatch`], which drains the lanes after it. The
//! executor takes the entries out of the lanes and polls the tasks (`executor.rs`); only the
//! functions here ask it to. Two callers order callback and drain themselves, by calling `drain`:
//! contained panics (`uncaught.rs`), and the layer for Node, whose shared timer runs many user
//! timers in one callback of the loop and drains between them.

use super::core::Core;
use crate::executor::Drain;
use crate::phase_order::Phase;
use crate::probe::{Mode, Origin};

impl Core {
    /// Runs one callback of a phase, then drains the lanes. `origin` names where the callback comes
    /// from; only a watched loop asks.
    ///
    /// A panic of user code propagates through here. The rest of the lanes and of the phase stays
    /// queued and runs with the next run of the loop.
    // Rule N9. Inlined, so that no call lies between an event, the wake and the poll, and the
    // closures stay in registers.
    #[inline(always)]
    pub(super) fn dispatch(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        callback: impl FnOnce(),
    ) {
        if self.executor.probe.has(Mode::DISPATCH) {
            return self.dispatch_watched(phase, origin(), &mut once(callback));
        }
        self.counters.count_callback(phase);
        callback();
        if !self.executor.are_lanes_idle() {
            // Usually one task was woken. It is polled without the loops over the lanes.
            let drain = self.executor.poll_front();
            if !self.executor.are_lanes_idle() {
                self.drain_some(drain);
            }
        }
    }

    /// Drains what was queued outside of a callback: before the run, or beyond the budget of a
    /// drain. What a contained panic left in the lanes waits for the next callback.
    #[inline]
    pub(super) fn run_lanes(&self) {
        if !self.executor.are_lanes_idle() {
            self.run_filled_lanes();
        }
    }

    #[inline(never)]
    fn run_filled_lanes(&self) {
        self.executor.clock.catch_up();
        if !self.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// Drains the lanes: all ticks, then all microtasks, until both are empty or the lane budget is
    /// used up.
    ///
    /// A panic of a tick propagates. A panic of a microtask propagates unless panics are contained.
    // Rule N1.
    #[inline]
    pub(crate) fn drain(&self) {
        if !self.executor.are_lanes_idle() {
            self.drain_some(Drain::default());
        }
    }

    // Not inlined, so that the check for empty lanes, which is, stays small in its callers.
    #[inline(never)]
    fn drain_some(&self, mut drain: Drain) {
        if self.executor.probe.has(Mode::CONTAINED) {
            self.drain_contained(drain);
        } else {
            self.executor.drain_lanes(&mut drain);
        }
    }
}

/// Turns a closure into one that the cold twins can call: they take it by reference, so that the
/// program has one copy of each. A second call does nothing.
pub(crate) fn once(call: impl FnOnce()) -> impl FnMut() {
    let mut call = Some(call);
    move || {
        if let Some(call) = call.take() {
            call();
        }
    }
}
