//! Contained panics: with a handler installed, the loop goes on after a panic as Node does after an
//! uncaught exception.
//!
//! Without a handler a panic propagates out of the run (see [`Core::dispatch`]). A handler is one
//! bit of the loop's switch, so that a callback without one does not ask for it
//! (`probe/switch.rs`).
//!
//! Where the loop goes on depends on what panicked:
//!
//! | thrower | goes on with | the lanes |
//! |---|---|---|
//! | a callback | the next one of its phase | wait for the next drain |
//! | a tick | the next callback | the rest waits for the next drain |
//! | a microtask | the next microtask | |
//!
//! The next drain follows the next callback that does not panic. The handler sees to it that there
//! is one: it queues an entry for the check phase.
// Rules of crates/node/tests/NODE.md: N70–N76, N66, N72.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use super::core::Core;
use super::phases::queue::PhaseQueue;
use crate::executor::Drain;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Body, Mode, Origin};
use crate::raw::task::Payload;

/// Receives an uncaught panic. It may resume unwinding.
pub(crate) type PanicHandler = Rc<dyn Fn(Payload)>;

#[derive(Default)]
pub(crate) struct PanicPolicy {
    pub(crate) handler: RefCell<Option<PanicHandler>>,
    /// The program has exited: no callback runs any more.
    pub(crate) program_has_exited: Cell<bool>,
    /// A panic interrupted a drain: the rest of the lanes waits for the next one.
    pub(crate) interrupted: Cell<bool>,
}

impl PanicPolicy {
    #[inline]
    pub(crate) fn program_has_exited(&self) -> bool {
        self.program_has_exited.get()
    }

    /// Notes that a drain begins.
    pub(super) fn resume(&self) {
        self.interrupted.set(false);
    }

    fn handle(&self, payload: Payload) {
        let handler = self.handler.borrow().clone();
        match handler {
            Some(handler) => handler(payload),
            None => resume_unwind(payload),
        }
    }
}

impl Core {
    /// Returns whether a contained panic has left something in the lanes.
    #[inline]
    pub(super) fn is_interrupted(&self) -> bool {
        self.executor.probe.has(Mode::CONTAINED) && self.panic_policy.interrupted.get()
    }

    /// Runs `code` and passes its panic to the handler, if one is installed. Returns `None` if
    /// `code` panicked or the program has exited.
    pub(crate) fn contain<R>(&self, code: impl FnOnce() -> R) -> Option<R> {
        if !self.executor.probe.has(Mode::CONTAINED) {
            return Some(code());
        }
        if self.panic_policy.program_has_exited() {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(code)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.panic_policy.interrupted.set(true);
                self.panic_policy.handle(payload);
                None
            }
        }
    }

    /// Runs a callback, and drains the lanes if it did not panic.
    // Rule N76.
    pub(super) fn dispatch_contained(&self, callback: impl FnOnce()) {
        if self.contain(callback).is_some() {
            self.contain(|| self.drain());
        }
    }

    /// Drains the lanes and goes on after a panic of a microtask. A panic of a tick ends the
    /// drain and propagates.
    // Rules N73, N72.
    #[cold]
    pub(super) fn drain_contained(&self, mut drain: Drain) {
        self.panic_policy.resume();
        loop {
            let drained = catch_unwind(AssertUnwindSafe(|| {
                self.executor.drain_lanes(&mut drain);
            }));
            match drained {
                Ok(()) => return,
                Err(payload) if drain.is_in_microtasks() => self.panic_policy.handle(payload),
                Err(payload) => resume_unwind(payload),
            }
        }
    }

    /// Runs a pass over a queue. If the last entry panics, another pass over the entries queued
    /// meanwhile follows at once.
    // Rules N74, N75.
    #[cold]
    pub(super) fn run_queue_contained(&self, phase: Phase, queue: &PhaseQueue) {
        let mut again = true;
        while again {
            queue.begin_pass();
            again = self.finish_pass_contained(phase, queue);
        }
    }

    /// Runs the rest of a pass, and resumes it after a panic. Returns whether another pass follows.
    fn finish_pass_contained(&self, phase: Phase, queue: &PhaseQueue) -> bool {
        // Whether a panic at this point causes another pass if it ends this one.
        let panic_goes_on = Cell::new(true);
        while !self.panic_policy.program_has_exited() {
            let finished = self.contain(|| {
                while let Some((entry, site)) = queue.next() {
                    self.uncount_entry(&entry);
                    self.counters.count_callback(phase);
                    let _span = self.executor.probe.dispatch(phase);
                    panic_goes_on.set(true);
                    self.executor.begin_callback();
                    let origin = Origin::new(Keeper::Queued, site);
                    let body = Body::Callback(phase);
                    self.executor.watching(body, origin, || entry.run());
                    if !self.executor.lanes.is_empty() {
                        // The drain after the last entry counts as the end of the pass: its panic
                        // causes no other pass.
                        panic_goes_on.set(!queue.is_pass_over());
                        self.drain();
                    }
                }
            });
            if finished.is_some() {
                return false;
            }
            if queue.is_pass_over() {
                return panic_goes_on.get() && !self.panic_policy.program_has_exited();
            }
        }
        false
    }
}
