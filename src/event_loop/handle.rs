//! The loop as its own thread sees it.

use std::future::Future;
use std::panic::Location;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::core::Core;
use super::current;
use super::handles::{HandleCore, HandleInfo};
use super::remote::Remote;
use crate::executor::Info;
use crate::executor::join::JoinHandle;
use crate::kinds::{Kind, Site};
use crate::sys::call::Call;

/// A handle to a loop, for its own thread; cheap to clone.
///
/// It may outlive the loop. Spawning then gives a cancelled task, closures are dropped unrun, and handles refuse to
/// start.
#[derive(Clone)]
pub struct LoopHandle {
    core: Rc<Core>,
}

impl LoopHandle {
    pub(crate) fn from_core(core: Rc<Core>) -> Self {
        Self { core }
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// The loop that runs on this thread.
    ///
    /// # Panics
    ///
    /// When there is none; [`try_current`](Self::try_current) returns `None` instead.
    #[must_use]
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Some(handle) => handle,
            None => no_loop(),
        }
    }

    /// The loop that runs on this thread, for a future that is polled now; `what` is the line that has made it, or else the
    /// name of the function.
    ///
    /// # Panics
    ///
    /// When there is none, with that.
    pub(crate) fn current_for(what: impl std::fmt::Display) -> Self {
        Self::try_current().unwrap_or_else(|| panic!("{NO_LOOP} (needed by the future of {what})"))
    }

    /// The loop that runs on this thread, if there is one.
    #[must_use]
    pub fn try_current() -> Option<Self> {
        current::get().map(Self::from_core)
    }

    // Tasks and lanes.

    /// Spawns a task on the loop; see [`spawn`](crate::spawn).
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.core.spawn(future, Location::caller(), None)
    }

    /// Spawns a task on the thread's loop, without counting a handle to it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub(crate) fn spawn_current<F>(future: F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let mut future = Some(future);
        let task = current::with(|core| {
            let core = core?;
            Some(core.spawn(future.take()?, site, None))
        });
        match task {
            Some(task) => task,
            None => no_loop(),
        }
    }

    /// Queues a closure in the tick lane; see [`next_tick`](crate::next_tick).
    pub fn next_tick(&self, tick: impl FnOnce() + 'static) {
        if !self.core.is_closed() {
            self.core.lane.push_tick(Call::new(tick));
        }
    }

    /// The same on the thread's loop, without counting a handle to it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[inline]
    #[track_caller]
    pub(crate) fn next_tick_current(tick: impl FnOnce() + 'static) {
        let tick = Call::new(tick);
        let is_queued = current::with(|core| core.map(|core| core.lane.push_tick(tick)));
        if is_queued.is_none() {
            no_loop();
        }
    }

    /// Queues a closure in the microtask lane; see [`queue_microtask`](crate::queue_microtask).
    pub fn queue_microtask(&self, microtask: impl FnOnce() + 'static) {
        if !self.core.is_closed() {
            self.core.lane.push_call(Call::new(microtask));
        }
    }

    /// The same on the thread's loop, without counting a handle to it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[inline]
    #[track_caller]
    pub(crate) fn queue_microtask_current(microtask: impl FnOnce() + 'static) {
        let call = Call::new(microtask);
        let is_queued = current::with(|core| core.map(|core| core.lane.push_call(call)));
        if is_queued.is_none() {
            no_loop();
        }
    }

    // The loop.

    /// Ends the running [`run`](crate::EventLoop::run) after the current turn, without waiting in it. Called before a
    /// run, it makes that run return at once. Not for other threads: [`Remote::stop`] is.
    pub fn stop(&self) {
        self.core.stop.set(true);
    }

    /// Whether something is left that can happen on the loop: something active and referenced, something queued, or a
    /// task or closure that another thread has woken or sent. What was sent to an [`AsyncHandle`](crate::AsyncHandle)
    /// does not count, the handle itself does.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.core.is_alive()
    }

    /// Whether the loop has been dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    /// The loop's time: read once a turn, the same for all callbacks of a phase. [`Timer`](crate::time::Timer)s count
    /// from it.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.core.clock.instant(self.core.clock.now())
    }

    /// Refreshes [`now`](Self::now): for a callback that took long and starts a timer.
    pub fn update_time(&self) {
        self.core.clock.update();
    }

    /// How long the poll phase would wait if it began now; `None` for ever.
    ///
    /// Zero when the loop is stopped, has something to run at once, or is not alive.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.core.next_timeout().map(Duration::from_nanos)
    }

    /// How many turns the loop has made.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.core.turns.get()
    }

    /// How often a drain ended because of the [lane budget](crate::Builder::lane_budget).
    #[must_use]
    pub fn budget_hits(&self) -> u64 {
        self.core.budget_hits.get()
    }

    /// The loop as other threads may use it.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.core.shared.clone())
    }

    // Why is it alive?

    /// What keeps the loop alive, with counts; only kinds with any. [`report`](Self::report) says it with names and lines.
    #[must_use]
    pub fn keepers(&self) -> Vec<(Kind, usize)> {
        Kind::ALL
            .into_iter()
            .map(|kind| (kind, self.core.liveness.count(kind)))
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    /// The loop's open handles in the order in which they were made, started or not.
    #[must_use]
    pub fn handles(&self) -> Vec<HandleInfo> {
        self.core.handles.list()
    }

    /// The tasks that have not ended, oldest first.
    #[must_use]
    pub fn tasks(&self) -> Vec<Info> {
        self.core.tasks.list()
    }

    pub(crate) fn open(&self, kind: Kind, site: Site) -> HandleCore {
        HandleCore::owner(self.clone(), self.core.handles.open(kind, site))
    }
}

#[cold]
#[track_caller]
fn no_loop() -> ! {
    panic!("{NO_LOOP}")
}

const NO_LOOP: &str = "no event loop runs on this thread: call this inside `phaseloop::block_on(async { .. })` or \
                       `EventLoop::enter`, or use the methods of a `LoopHandle`";

impl std::fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopHandle")
            .field("alive", &self.is_alive())
            .field("keepers", &self.keepers())
            .finish_non_exhaustive()
    }
}
