//! The executor of the loop: it spawns tasks, keeps the two lanes, and polls what is in them.
//!
//! ```text
//!            wake (owner thread)           ┌──────> returned / panicked ──> JoinHandle
//!  spawn ──> microtask lane ──> polled ────┤
//!              ^                           └──────> pending
//!              │  wake (other thread)                  │ wake
//!              ├── poll phase <── inbox <──────────────┤
//!              └────────────────────────────────────────┘
//! ```
//!
//! A woken task is in the microtask lane once, however often it is woken, and is polled once.
//!
//! The functions here take entries out of the lanes and run them. They do not decide when: the
//! loop drains the lanes after each callback (`event_loop.rs`).
// Marks: each poll of a task passes them (rows `self_wake/1`, `ping_pong`): no call lies between
// the lane and the task.

mod contexts;
pub(crate) mod counters;
mod ends;
#[cfg(feature = "test-util")]
pub(crate) mod foreign_senders;
pub(crate) mod guarded;
pub(crate) mod inbox;
pub(crate) mod join;
pub(crate) mod lanes;
mod main_future;
pub(crate) mod message;
pub(crate) mod notes;
pub(crate) mod primitives;
pub(crate) mod registry;
mod self_wakes;
pub(crate) mod shared;
mod spawning;
#[cfg(feature = "stacks")]
mod unwoken;
mod watched;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use self::contexts::Contexts;
use self::guarded::PollGuard;
use self::lanes::{Lane, Lanes, Microtask};
use self::main_future::MainInfo;
use self::notes::WaitNotes;
use self::registry::Registry;
use self::self_wakes::SelfWakes;
use self::shared::{Local, Runnable, Shared};
use crate::clock::Clock;
use crate::probe::{Attachments, Mode, Probe};
use crate::raw::call::Call;
use crate::raw::stock::Stock;
use crate::raw::task::WakerKinds;
use crate::task_info::{Id, Info};

/// Not a slot of the registry: there are never so many tasks.
const NO_TASK: u32 = u32::MAX;

/// The value of [`Executor::polled`] while the main future is polled.
const MAIN_FUTURE: u32 = u32::MAX - 1;

pub(crate) struct Executor {
    /// What a task on another thread needs of its loop.
    pub(crate) shared: Arc<Shared>,
    /// The counts of `shared` that ended tasks have left for the next ones.
    pub(crate) stock: Stock<Shared>,
    pub(crate) lanes: Lanes<Runnable>,
    pub(crate) tasks: Rc<Registry>,
    wakers: WakerKinds<Local>,
    /// The main future, while there is one.
    main_info: RefCell<Option<MainInfo>>,
    /// The main future before its first poll.
    main_start: Cell<Option<Runnable>>,
    /// The slot of the task that is being polled, or [`NO_TASK`] or [`MAIN_FUTURE`].
    polled: Cell<u32>,
    /// The values of [`polled`](Self::polled) further up the stack, while tasks are polled inside
    /// their spawner.
    spawners: RefCell<Vec<u32>>,
    self_wakes: SelfWakes,
    /// What surrounds the polls of tasks.
    poll_guard: OnceCell<PollGuard>,
    /// The number of lane entries that one drain may run.
    lane_budget: u64,
    /// The number of drains that used their budget up.
    budget_hits: Cell<u64>,
    /// The number of polls, of tasks and of the main future.
    polls: Cell<u64>,
    /// The number of polls of the main future.
    main_polls: Cell<u64>,
    /// Whether a drain takes entries out of the rings of the lanes.
    is_draining: Cell<bool>,
    pub(crate) clock: Clock,
    /// What reports have to know of waits.
    notes: WaitNotes,
    contexts: Contexts,
    /// What watches the loop.
    pub(crate) probe: Probe,
    /// The task that was woken while [`Mode::KEPT`](crate::probe::Mode::KEPT) was set.
    #[cfg(feature = "stacks")]
    kept: Cell<Option<Runnable>>,
}

/// The progress of a drain.
pub(crate) struct Drain {
    /// The ticks of this round are done: all microtasks run before the next tick.
    in_microtasks: bool,
    /// The number of entries that ran before the loops over the lanes began.
    ran: u64,
}

impl Drain {
    /// A drain begins with the ticks.
    pub(crate) const NEW: Self = Self {
        in_microtasks: false,
        ran: 0,
    };

    /// Returns whether the last entry that was taken is a microtask.
    pub(crate) fn is_in_microtasks(&self) -> bool {
        self.in_microtasks
    }
}

/// A drain in progress; the drop ends it, also after a panic.
struct Draining<'a> {
    executor: &'a Executor,
    /// Whether the drain is inside another one.
    is_inner: bool,
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        self.executor.is_draining.set(self.is_inner);
    }
}

impl Executor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        tasks: Rc<Registry>,
        lane_budget: u64,
        clock: Clock,
        attachments: Attachments,
    ) -> Self {
        Self {
            probe: attachments.attach(&clock),
            clock,
            stock: Stock::new(shared.clone()),
            shared,
            lanes: Lanes::new(),
            tasks,
            wakers: WakerKinds::new(),
            main_info: RefCell::default(),
            main_start: Cell::new(None),
            polled: Cell::new(NO_TASK),
            spawners: RefCell::default(),
            self_wakes: SelfWakes::new(),
            poll_guard: OnceCell::new(),
            lane_budget,
            budget_hits: Cell::new(0),
            polls: Cell::new(0),
            main_polls: Cell::new(0),
            is_draining: Cell::new(false),
            notes: WaitNotes::default(),
            contexts: Contexts::default(),
            #[cfg(feature = "stacks")]
            kept: Cell::new(None),
        }
    }
}

/// The lanes.
impl Executor {
    /// Queues a closure in a lane.
    #[inline]
    pub(crate) fn push_call(&self, lane: Lane, call: Call) {
        match lane {
            Lane::Ticks => self.lanes.push_tick(call),
            Lane::Microtasks => self.lanes.push_call(call),
        }
    }

    /// Calls `wake`, and runs the one microtask that it has queued at once, inside of the caller.
    pub(crate) fn run_in_place(&self, wake: impl FnOnce()) {
        let queued = self.lanes.queued();
        wake();
        match self.lanes.take_queued_since(queued) {
            Some(Microtask::Task(runnable)) => self.run_inside(|| self.run_task(runnable)),
            Some(Microtask::Call(call)) => call.call(),
            None => {}
        }
    }

    /// Queues a woken task, or returns it if the lane must grow first.
    #[inline(always)]
    pub(crate) fn try_push_task(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.probe.has(Mode::WAKE) {
            self.push_task_watched(runnable);
            return Ok(());
        }
        self.lanes.try_push_task(runnable)
    }

    /// Polls the front of the microtask lane, if it is the only entry of both lanes. Returns the
    /// drain that has begun with it. It must not be called inside a drain.
    // The hottest path of the loop: an event that wakes one task. Inlined, as are the functions it
    // calls, so that no call lies between the wake and the poll.
    #[inline(always)]
    pub(crate) fn poll_front(&self) -> Drain {
        let Some(runnable) = self.lanes.pop_front() else {
            return Drain::NEW;
        };
        self.run_task(runnable);
        self.polled.set(NO_TASK);
        self.lanes.end_front();
        Drain {
            in_microtasks: true,
            ran: 1,
        }
    }

    /// Queues a task that has woken itself, or returns it if the lane must grow first.
    #[inline(always)]
    pub(crate) fn try_push_again(&self, runnable: Runnable) -> Result<(), Runnable> {
        if self.probe.has(Mode::WAKE) {
            self.push_task_watched(runnable);
            return Ok(());
        }
        self.lanes.try_push_again(runnable)
    }

    /// Runs all ticks, then all microtasks, and repeats until both lanes are empty or the lane
    /// budget is used up. `drain` keeps the progress, so that the caller can go on after a panic.
    // Rule N1.
    #[inline]
    pub(crate) fn drain_lanes(&self, drain: &mut Drain) {
        let is_inner = self.is_draining.replace(true);
        let _draining = Draining {
            executor: self,
            is_inner,
        };
        // A drain inside another one, or inside a poll, leaves the lanes to the outer one, which is
        // about to look at the rings.
        let is_nested = is_inner || self.is_polling();
        // At most one entry ran, and the budget is at least one.
        let mut budget = self.lane_budget - std::mem::take(&mut drain.ran);
        self.lanes.begin_drain();
        while budget > 0 {
            if drain.in_microtasks {
                budget = self.run_microtasks(budget);
                if budget == 0 {
                    break;
                }
                drain.in_microtasks = false;
                // Ticks that the microtasks queued begin another round.
                if !self.lanes.has_ticks() {
                    break;
                }
            }
            budget = self.run_ticks(budget);
            drain.in_microtasks = true;
        }
        if budget == 0 && !self.lanes.is_empty() {
            self.budget_hits.set(self.budget_hits.get() + 1);
        } else if !is_nested {
            self.lanes.end_drain();
        }
        if !is_nested {
            self.self_wakes.end_drain();
        }
    }

    /// Runs ticks and returns the rest of the budget; zero only if it was used up.
    #[inline(always)]
    fn run_ticks(&self, mut budget: u64) -> u64 {
        // Most drains have no tick to run.
        if !self.lanes.has_ticks() {
            return budget;
        }
        while budget > 0 {
            let Some(tick) = self.lanes.pop_tick() else {
                break;
            };
            tick.call();
            budget -= 1;
        }
        self.lanes.shrink_ticks();
        budget
    }

    /// Runs microtasks and returns the rest of the budget; zero only if it was used up.
    #[inline(always)]
    fn run_microtasks(&self, mut budget: u64) -> u64 {
        while let Some(microtask) = self.lanes.pop_microtask() {
            self.run_microtask(microtask);
            budget -= 1;
            if budget == 0 {
                break;
            }
        }
        self.polled.set(NO_TASK);
        if budget > 0 {
            self.lanes.shrink();
        }
        budget
    }

    /// Takes the next microtask. The returned closure runs it.
    pub(crate) fn next_microtask(&self) -> Option<impl FnOnce()> {
        self.lanes.begin_drain();
        let microtask = self.lanes.pop_microtask()?;
        Some(|| {
            self.run_microtask(microtask);
            self.polled.set(NO_TASK);
        })
    }

    #[inline(always)]
    fn run_microtask(&self, microtask: Microtask<Runnable>) {
        match microtask {
            Microtask::Task(runnable) => self.run_task(runnable),
            Microtask::Call(call) => {
                self.polled.set(NO_TASK);
                call.call();
            }
        }
    }

    /// Polls a task, or drops it if it was aborted. The caller resets [`polled`](Self::polled),
    /// once for a batch of tasks.
    #[inline(always)]
    fn run_task(&self, runnable: Runnable) {
        let slot = runnable.slot();
        self.polled.set(slot);
        // Each poll has a budget of its own; a task that used its up waits for the poll phase.
        budget::begin_poll();
        if self.probe.has(Mode::POLL) {
            return self.run_task_watched(runnable);
        }
        self.run_or_drop_plainly(runnable);
    }

    #[inline(always)]
    fn run_or_drop_plainly(&self, runnable: Runnable) {
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            self.polls.set(self.polls.get() + 1);
            runnable.run();
        }
    }

    /// Returns the number of polls of tasks.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.get() - self.main_polls.get()
    }

    /// Returns the number of ticks and microtask closures that were taken out of the lanes.
    pub(crate) fn closures(&self) -> u64 {
        self.lanes.calls_taken()
    }

    /// Returns how often a drain has used up its budget.
    pub(crate) fn budget_hits(&self) -> u64 {
        self.budget_hits.get()
    }
}

/// The tasks.
impl Executor {
    /// Returns whether the loop was dropped, or is being dropped.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.probe.has(Mode::CLOSED)
    }

    /// Returns the task that is being polled.
    pub(crate) fn polled_task(&self) -> Option<Info> {
        self.tasks.info(self.polled.get())
    }

    /// Returns the number of the task that is being polled.
    pub(crate) fn polled_id(&self) -> Option<Id> {
        self.tasks.id(self.polled.get())
    }

    /// Returns whether a waker is that of the task, or main future, that is being polled.
    #[inline]
    pub(crate) fn is_waker_of_polled(&self, waker: &Waker) -> bool {
        let polled = self.polled.get();
        if polled == MAIN_FUTURE {
            return self.is_waker_of_main(waker);
        }
        let task = self.tasks.entries.get(polled as usize);
        task.is_some_and(|task| task.waker_data() == waker.data())
    }

    /// Returns whether a runnable is that of a main future, which is no task.
    pub(crate) fn is_main_future(runnable: &Runnable) -> bool {
        runnable.slot() == MAIN_FUTURE
    }

    /// Returns whether a task or the main future is being polled.
    pub(crate) fn is_polling(&self) -> bool {
        self.polled.get() != NO_TASK
    }

    /// Returns whether the main future is being polled.
    pub(crate) fn polls_main_future(&self) -> bool {
        self.polled.get() == MAIN_FUTURE
    }

    /// Returns whether the task in `slot` is being polled, here or further up the stack.
    pub(crate) fn is_polled(&self, slot: u32) -> bool {
        self.polled.get() == slot || self.spawners.borrow().contains(&slot)
    }
}

/// The budget of I/O operations of one poll of a task.
///
/// A source that stays ready would otherwise keep a task inside one poll for ever: no timer, no
/// other connection and no hook would run. Each operation takes one unit of the poll's budget. When
/// the budget is used up, the source is deferred to the next poll phase
/// (`event_loop/io/deferred.rs`).
///
/// A future that a callback polls outside of a task has no budget, since a callback ends by itself.
pub(crate) mod budget {
    use std::cell::Cell;

    /// The number of operations that one poll may do.
    const OPERATIONS_PER_POLL: i32 = 128;

    thread_local! {
        /// The rest of the budget of the poll that runs on this thread.
        static LEFT: Cell<i32> = const { Cell::new(0) };
    }

    /// Starts the budget of a poll.
    #[inline]
    pub(crate) fn begin_poll() {
        LEFT.set(OPERATIONS_PER_POLL);
    }

    /// Takes one operation from the budget. Returns `false` if it was used up.
    #[inline]
    pub(crate) fn take() -> bool {
        let left = LEFT.get() - 1;
        LEFT.set(left);
        left >= 0
    }

    /// Returns the unit of an operation that would have blocked.
    pub(crate) fn give_back() {
        LEFT.set(LEFT.get() + 1);
    }

    /// Returns the rest of the budget.
    pub(super) fn left() -> i32 {
        LEFT.get()
    }

    /// Sets the rest of the budget: that of a poll which goes on, or zero.
    pub(crate) fn restore(left: i32) {
        LEFT.set(left);
    }
}
