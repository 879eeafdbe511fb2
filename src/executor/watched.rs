//! The executor while something watches the loop: the cold twins of its hot functions; see
//! `probe/switch.rs`.

use super::Executor;
use super::shared::Runnable;
use crate::frame;
use crate::probe::{Activity, Mode, Origin, Recording, Running};
use crate::raw::call::Call;
use crate::site::Site;

impl Executor {
    /// Runs `body` as an activity that is no poll of a task.
    #[inline(always)]
    pub(crate) fn watching(&self, activity: Activity, origin: Origin, body: impl FnOnce()) {
        if !self.modes.has_sinks() {
            body();
        } else if let Some(recording) = self.recording(activity, origin) {
            body();
            recording.finish();
        } else {
            let _running = self.begin(activity, origin);
            body();
        }
    }

    /// Begins an activity that is no poll of a task, by the short way. Returns `None` if a recorder
    /// is not all that watches, or if the activity has to [begin](Self::begin) by the longer way.
    #[inline(always)]
    pub(crate) fn recording(&self, activity: Activity, origin: Origin) -> Option<Recording<'_>> {
        if !self.modes.is_only(Mode::RECORDED) {
            return None;
        }
        self.probe.recording(&self.clock, activity, origin)
    }

    /// Begins an activity that is no poll of a task.
    pub(super) fn begin(&self, activity: Activity, origin: Origin) -> Running<'_> {
        self.probe
            .begin(&self.modes, &self.clock, activity, origin, &|| None)
    }

    /// Queues a tick behind a `note` of its line.
    // A lane has no place for lines, so that a loop that is not watched does not pay for one.
    #[inline(always)]
    pub(crate) fn push_noted_tick(&self, note: Call, tick: Call) {
        self.lanes.push_noted_tick(note, tick);
    }

    /// Queues a closure as a microtask behind a `note` of its line.
    #[inline(always)]
    pub(crate) fn push_noted_microtask(&self, note: Call, microtask: Call) {
        self.lanes.push_noted_call(note, microtask);
    }

    /// Runs ticks as [`run_ticks`](Self::run_ticks) does.
    #[cold]
    #[inline(never)]
    pub(super) fn run_ticks_watched(&self, mut budget: u64) -> u64 {
        while budget > 0 {
            let Some(tick) = self.lanes.pop_tick() else {
                break;
            };
            match tick.into_line(self.tick_note) {
                Ok(site) => self.run_noted_tick(site),
                // It was queued before something watched.
                Err(tick) => tick.call(),
            }
            budget -= 1;
        }
        self.lanes.shrink_ticks();
        budget
    }

    /// Runs the tick whose note was taken out of the lane.
    #[inline(always)]
    pub(crate) fn run_noted_tick(&self, site: Option<Site>) {
        if let Some(tick) = self.lanes.pop_noted_tick() {
            self.run_noted(Activity::Tick, site, tick);
        }
    }

    /// Runs the microtask closure whose note was taken out of the lane.
    #[inline(always)]
    pub(crate) fn run_noted_microtask(&self, site: Option<Site>) {
        if let Some(microtask) = self.lanes.pop_noted_call() {
            self.run_noted(Activity::Microtask, site, microtask);
        }
    }

    #[inline(always)]
    fn run_noted(&self, activity: Activity, site: Option<Site>, call: Call) {
        if let Some(recording) = self.recording(activity, Origin::at(site)) {
            call.call();
            recording.finish();
        } else {
            let is_tick = activity == Activity::Tick;
            self.run_noted_cold(is_tick, site, call);
        }
    }

    // The arguments fit into registers: the common path keeps nothing in memory for them.
    #[cold]
    #[inline(never)]
    fn run_noted_cold(&self, is_tick: bool, site: Option<Site>, call: Call) {
        if self.uses_contexts() {
            self.begin_activity();
        }
        let activity = if is_tick {
            Activity::Tick
        } else {
            Activity::Microtask
        };
        self.watching(activity, Origin::at(site), || call.call());
    }

    /// Queues a task that was just spawned, in the current surroundings, and notes the spawn.
    // Queued first: a sink or a tracker, which are user code, may drop the loop, which drops what
    // it finds.
    #[cold]
    #[inline(never)]
    pub(super) fn push_spawned_watched(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        self.lanes.push_task(runnable);
        self.note_spawn(slot);
        if !frame::is_plain() {
            self.set_context(slot, id);
        }
    }

    /// Notes that a task was spawned.
    #[cold]
    #[inline(never)]
    pub(super) fn note_spawn(&self, slot: u32) {
        if self.modes.is_only(Mode::RECORDED) {
            return;
        }
        self.probe.spawned(&|| self.tasks.info(slot));
    }

    /// Queues a woken task, and notes its wake.
    #[cold]
    #[inline(never)]
    pub(super) fn push_task_watched(&self, runnable: Runnable) {
        #[cfg(feature = "stacks")]
        if self.modes.has(Mode::KEPT) {
            return self.kept.set(Some(runnable));
        }
        if !self.modes.is_only(Mode::RECORDED) {
            return self.push_task_reported(runnable);
        }
        let id = runnable.local().id.0;
        match self.lanes.try_push_task(runnable) {
            Ok(()) => self.probe.record_wake(id),
            Err(runnable) => self.push_task_reported(runnable),
        }
    }

    /// Queues the task, and notifies all sinks of the wake.
    // Queued first: a sink, which is user code, may drop the loop, which drops what it finds.
    #[inline(never)]
    fn push_task_reported(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        self.lanes.push_task(runnable);
        let infos = || Some((self.tasks.info(slot)?, self.polled_task()));
        self.probe.wake(id.0, &infos);
    }

    /// Polls a task, or drops it if it was aborted.
    #[cold]
    #[inline(never)]
    pub(super) fn run_task_watched(&self, runnable: Runnable) {
        if self.modes.is_only(Mode::RECORDED) && !runnable.is_aborted() {
            self.poll_recorded(runnable);
        } else if self.modes.has(Mode::GUARDED) {
            self.run_task_guarded(runnable);
        } else {
            self.run_task_reported(runnable);
        }
    }

    /// Polls a task and tells the sinks, or drops it if it was aborted.
    pub(super) fn run_task_reported(&self, runnable: Runnable) {
        if self.uses_contexts() {
            self.run_task_in_context(runnable);
        } else {
            self.run_or_drop(runnable);
        }
    }

    /// Polls a task while a recorder is all that watches.
    #[inline(always)]
    fn poll_recorded(&self, runnable: Runnable) {
        let (id, site) = (runnable.local().id.0, runnable.local().site);
        let Some(start) = self.probe.begin_poll(id) else {
            return self.poll_watched(runnable);
        };
        self.count_poll();
        // It does not unwind.
        runnable.run();
        self.probe.end_poll(id, site, start, &self.clock);
    }

    /// Polls a task in the current context, or drops it if it was aborted.
    pub(super) fn run_or_drop(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            self.poll_watched(runnable);
        }
        if self.tasks.id(slot) != Some(id) {
            self.probe.ended(id.0);
        }
    }

    #[inline(never)]
    fn poll_watched(&self, runnable: Runnable) {
        let slot = runnable.slot();
        let activity = Activity::Poll(runnable.local().id.0);
        let origin = Origin::at(Some(runnable.local().site));
        let info = || self.tasks.info(slot);
        let _running = self.modes.has_sinks().then(|| {
            self.probe
                .begin(&self.modes, &self.clock, activity, origin, &info)
        });
        // Checked after the observer ran, since the observer may abort the task.
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            self.count_poll();
            runnable.run();
        }
    }
}
