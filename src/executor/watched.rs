//! The executor while something watches the loop: the cold twins of its hot functions; see
//! `probe/switch.rs`.
// Marks: `cold`: a loop that nothing watches never calls it.

use super::shared::Runnable;
use super::{Executor, MAIN_FUTURE};
use crate::frame;
use crate::probe::{Body, Mode, Origin, SitedCall, Wants};
use crate::raw::call::Call;

impl Executor {
    /// Runs `run` as an activity that is no poll of a task.
    #[inline]
    pub(crate) fn watching<R>(&self, body: Body, origin: Origin, run: impl FnOnce() -> R) -> R {
        if !self.probe.wants(Wants::ACTIVITIES) {
            return run();
        }
        self.probe
            .observe(body, move || origin, &self.clock, || None, run)
    }

    /// Runs a closure of a lane, which was queued while something watched.
    pub(crate) fn run_call(&self, body: Body, call: Box<SitedCall>) {
        let (call, site) = self.probe.sited.take(call);
        self.begin_callback();
        self.watching(body, Origin::at(site), || call.map(Call::call));
    }

    /// Queues a task that was just spawned, in the current context, and notifies of the spawn.
    // Queued first: an observer or a tracker, which are user code, may drop the loop, which drops
    // what it finds.
    #[cold]
    pub(super) fn push_spawned_watched(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        self.lanes.push_task(runnable);
        self.probe.spawned(|| self.tasks.info(slot));
        if !frame::is_plain() {
            self.set_context(slot, id);
        }
    }

    /// Queues a woken task, and notifies of its wake.
    // Queued first: an observer, which is user code, may drop the loop, which drops what it finds.
    #[cold]
    pub(super) fn push_task_watched(&self, runnable: Runnable) {
        #[cfg(feature = "stacks")]
        if self.probe.has(Mode::KEPT) {
            return self.kept.set(Some(runnable));
        }
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if let Err(runnable) = self.lanes.try_push_task(runnable) {
            self.lanes.push_task(runnable);
        }
        if slot != MAIN_FUTURE {
            let task = move || self.tasks.info(slot);
            self.probe.woken(id, task, || self.polled_task());
        }
    }

    /// Polls a task, or drops it if it was aborted.
    #[cold]
    pub(super) fn run_task_watched(&self, runnable: Runnable) {
        if self.probe.has(Mode::GUARDED) {
            self.run_task_guarded(runnable);
        } else {
            self.run_task_reported(runnable);
        }
    }

    /// Polls a task and notifies the observers, or drops it if it was aborted.
    // Two callers keep the compiler from it: 20 instructions (row `self_wake/recorded`).
    #[inline(always)]
    pub(super) fn run_task_reported(&self, runnable: Runnable) {
        if runnable.slot() == MAIN_FUTURE {
            self.run_main_reported(runnable);
        } else if self.uses_contexts() {
            self.run_task_in_context(runnable);
        } else {
            self.run_or_drop(runnable);
        }
    }

    /// Polls a task in the current context, or drops it if it was aborted.
    pub(super) fn run_or_drop(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if self.probe.wants(Wants::ACTIVITIES) && !runnable.is_aborted() {
            let site = runnable.local().site;
            let origin = move || Origin::at(Some(site));
            let info = move || self.tasks.info(slot);
            // The observer may abort the task: it is asked again.
            let poll = move || self.run_or_drop_plainly(runnable);
            self.probe
                .observe(Body::Poll(id), origin, &self.clock, info, poll);
        } else {
            self.run_or_drop_plainly(runnable);
        }
        if self.probe.wants(Wants::TASKS) && self.tasks.id(slot) != Some(id) {
            self.probe.ended(id);
        }
    }
}
