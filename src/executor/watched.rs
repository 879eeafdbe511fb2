//! The executor while something watches the loop: the cold twins of its hot functions; see
//! `probe/switch.rs`.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::Executor;
use super::shared::Runnable;
use crate::probe::{Activity, Origin, Running};
use crate::raw::call::Call;
use crate::site::Site;
use crate::task_info::Id;

/// The closures that were queued while the loop was watched, with the lines that queued them. The
/// lane holds a stand-in for each, which takes the oldest one from here and runs it. So an entry of
/// a lane has no place for a line, and a loop that is not watched does not pay for one.
#[derive(Default)]
pub(super) struct WatchedCalls {
    ticks: RefCell<VecDeque<(Call, Option<Site>)>>,
    microtasks: RefCell<VecDeque<(Call, Option<Site>)>>,
}

impl WatchedCalls {
    fn of(&self, activity: Activity) -> &RefCell<VecDeque<(Call, Option<Site>)>> {
        match activity {
            Activity::Tick => &self.ticks,
            _ => &self.microtasks,
        }
    }

    /// Moves the closures to those that were taken out of the lanes.
    pub(super) fn take(&self, ticks: &mut Vec<Call>, microtasks: &mut Vec<Call>) {
        ticks.extend(self.ticks.take().into_iter().map(|(call, _)| call));
        microtasks.extend(self.microtasks.take().into_iter().map(|(call, _)| call));
    }
}

impl Executor {
    /// Begins an activity that is no poll of a task.
    pub(crate) fn begin(&self, activity: Activity, origin: Origin) -> Running<'_> {
        self.probe
            .begin(&self.modes, &self.clock, activity, origin, &|| None)
    }

    /// Queues a tick or a microtask closure. `stand_in` calls [`run_watched`](Self::run_watched).
    #[cold]
    pub(crate) fn push_watched(
        &self,
        activity: Activity,
        call: Call,
        site: Option<Site>,
        stand_in: Call,
    ) {
        let calls = self.watched.of(activity);
        calls.borrow_mut().push_back((call, site));
        match activity {
            Activity::Tick => self.lanes.push_tick(stand_in),
            _ => self.lanes.push_call(stand_in),
        }
    }

    /// Runs the closure whose stand-in was taken out of its lane.
    #[cold]
    pub(crate) fn run_watched(&self, activity: Activity) {
        let call = self.watched.of(activity).borrow_mut().pop_front();
        if let Some((call, site)) = call {
            self.begin_activity();
            let _running = self.begin(activity, Origin::at(site));
            call.call();
        }
    }

    /// Notes that a task was spawned.
    #[cold]
    #[inline(never)]
    pub(super) fn note_spawn(&self, slot: u32) {
        self.probe.spawned(&|| self.tasks.info(slot));
    }

    /// Notes the wake of a task.
    #[cold]
    pub(crate) fn note_wake(&self, runnable: &Runnable) {
        let infos = || Some((self.tasks.info(runnable.slot())?, self.polled_task()));
        self.probe.wake(runnable.local().id.0, &infos);
    }

    /// Polls a task, or drops it if it was aborted.
    #[cold]
    #[inline(never)]
    pub(super) fn run_task_watched(&self, runnable: Runnable) {
        if self.uses_contexts() {
            self.run_task_in_context(runnable);
        } else {
            self.run_or_drop(runnable);
        }
    }

    /// Polls a task in the current context, or drops it if it was aborted.
    pub(super) fn run_or_drop(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            self.poll_watched(runnable, slot, id);
        }
        if self.tasks.id(slot) != Some(id) {
            self.probe.ended(id.0);
        }
    }

    fn poll_watched(&self, runnable: Runnable, slot: u32, id: Id) {
        let origin = Origin::at(Some(runnable.local().site));
        let info = || self.tasks.info(slot);
        let activity = Activity::Poll(id.0);
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
