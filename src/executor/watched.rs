//! The executor while something watches the loop: the cold twins of its hot functions; see
//! `probe/switch.rs`.

use std::cell::OnceCell;

use super::Executor;
use super::shared::Runnable;
use crate::probe::{Activity, Mode, Origin, Recording, Running};
use crate::raw::call::Call;
use crate::raw::ring::Ring;
use crate::site::Site;

/// The closures that were queued while the loop was watched, with the lines that queued them. The
/// lane holds a stand-in for each, which takes the oldest one from here and runs it. So an entry of
/// a lane has no place for a line, and a loop that is not watched does not pay for one.
#[derive(Default)]
pub(super) struct WatchedCalls {
    ticks: OnceCell<Ring<WatchedCall>>,
    microtasks: OnceCell<Ring<WatchedCall>>,
}

type WatchedCall = (Call, Option<Site>);

impl WatchedCalls {
    #[inline(always)]
    fn of(&self, activity: Activity) -> &Ring<WatchedCall> {
        let calls = match activity {
            Activity::Tick => &self.ticks,
            _ => &self.microtasks,
        };
        calls.get_or_init(Ring::new)
    }

    /// Moves the closures to those that were taken out of the lanes.
    pub(super) fn take(&self, ticks: &mut Vec<Call>, microtasks: &mut Vec<Call>) {
        for (from, to) in [(&self.ticks, ticks), (&self.microtasks, microtasks)] {
            let calls = from.get().map(Ring::take).unwrap_or_default();
            to.extend(calls.into_iter().map(|(call, _)| call));
        }
    }
}

impl Executor {
    /// Runs `body` as an activity that is no poll of a task.
    #[inline(always)]
    pub(crate) fn watching(&self, activity: Activity, origin: Origin, body: impl FnOnce()) {
        if let Some(recording) = self.recording(activity, origin) {
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

    /// Queues a tick or a microtask closure. `stand_in` calls [`run_watched`](Self::run_watched).
    #[inline(always)]
    pub(crate) fn push_watched(
        &self,
        activity: Activity,
        call: Call,
        site: Option<Site>,
        stand_in: Call,
    ) {
        self.watched.of(activity).push((call, site));
        match activity {
            Activity::Tick => self.lanes.push_tick(stand_in),
            _ => self.lanes.push_call(stand_in),
        }
    }

    /// Runs the closure whose stand-in was taken out of its lane.
    #[inline(always)]
    pub(crate) fn run_watched(&self, activity: Activity) {
        let call = self.watched.of(activity).pop();
        if let Some((call, site)) = call {
            if self.uses_contexts() {
                self.begin_activity();
            }
            self.watching(activity, Origin::at(site), || call.call());
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
            return self.push_task_told(runnable);
        }
        let id = runnable.local().id.0;
        match self.lanes.try_push_task(runnable) {
            Ok(()) => self.probe.record_wake(id),
            Err(runnable) => self.push_task_told(runnable),
        }
    }

    /// Tells all sinks of a wake, and queues the task.
    #[inline(never)]
    fn push_task_told(&self, runnable: Runnable) {
        let infos = || Some((self.tasks.info(runnable.slot())?, self.polled_task()));
        self.probe.wake(runnable.local().id.0, &infos);
        self.lanes.push_task(runnable);
    }

    /// Polls a task, or drops it if it was aborted.
    #[cold]
    #[inline(never)]
    pub(super) fn run_task_watched(&self, runnable: Runnable) {
        if self.modes.is_only(Mode::RECORDED) && !runnable.is_aborted() {
            self.poll_recorded(runnable);
        } else if self.uses_contexts() {
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
        let _running = self
            .probe
            .begin(&self.modes, &self.clock, activity, origin, &info);
        // Checked after the observer ran, since the observer may abort the task.
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            self.count_poll();
            runnable.run();
        }
    }
}
