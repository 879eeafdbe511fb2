//! The loop.
//!
//! ```text
//!    ┌─> pending ─> idle ─> prepare ─> poll ─> pending (≤ 8) ─> check ─> closing ─> timers ─┐
//!    └──────────────────────────────────────────────────────────────────────────────────────┘
//!        after every callback in every phase: { all ticks ─> all microtasks } until both are empty
//! ```
//!
//! Read [`Core::turn`] below first. It is libuv's iteration. Since libuv 1.45 the timers come last;
//! a run in mode `Default` makes one pass over the timers before its first turn, so that the order
//! a program sees has not changed. A phase runs in the file of its structure: `run_timers` in
//! `phases/timers.rs`, `run_closing` in `phases/closing.rs`, idle, prepare and check (`run_hooks`)
//! in `phases/hooks.rs`, `run_poll` in `io/poll_phase.rs`. It hands each callback to
//! [`Core::dispatch`], which runs it and then asks the executor to drain the lanes. What users hold
//! of a loop is a layer above (`src/runtime.rs`). The state of a loop has four parts; `core.rs`
//! lists them.
//!
//! A new phase needs a variant of [`Phase`] with its name and its place in `Phase::ALL`
//! (`phase_order.rs`), a structure in `phases/`, a field in `Phases` with its places in `queue`,
//! `load` and `clear_queues` (`phases.rs`), and a line in [`Core::turn`].
//!
//! # The words of the loop
//!
//! - **Turn**: one iteration of the loop, through all phases ([`Core::turn`]); a run makes turns.
//! - **Phase**: one of seven steps of a turn, which runs the callbacks of one kind of event.
//! - **Pass**: one walk of a phase over its entries. It takes a snapshot: what is added while it
//!   runs waits for the next pass.
//! - **Callback**: a piece of user code that a phase runs: a closure, or the wake and poll of a
//!   task that waited for the phase.
//! - **Dispatch**: to run one callback and then drain the lanes ([`Core::dispatch`]).
//! - **Lane**: a queue that belongs to no phase. There are two: ticks and microtasks.
//! - **Tick**: a closure of the first lane ([`next_tick`](crate::next_tick)).
//! - **Microtask**: an entry of the second lane: a woken task, or a closure
//!   ([`queue_microtask`](crate::queue_microtask)).
//! - **Drain**: to run all ticks, then all microtasks, until both lanes are empty.
//! - **Front**: the first microtask, if a wake queued it while the lanes were empty. It does not go
//!   through the ring of the lane (`executor/lanes.rs`).
//! - **Lane budget**: the number of entries that one drain may run.
//! - **Self-wake**: the wake of a task while it is polled. One drain has 61 of them, for all tasks
//!   together (`executor/self_wakes.rs`).
//! - **Hop**: a self-wake that asks for the back of the lane, such as an `await` of a promise that
//!   is settled. It is not counted.
//! - **Late**: said of a task that has woken itself once too often in a drain. It goes on in the
//!   next poll phase (`io/late.rs`).
//! - **Main future**: the future of `block_on` or `run`. It is polled as a microtask, but is not in
//!   the table of tasks: it may borrow from its caller.
//! - **Owner thread**: the thread that created the loop, and the only one that runs its user code.
//! - **Inbox**: the queue through which other threads send wakes and calls; the poll phase empties
//!   it.
//! - **Source**: a registered descriptor, such as a socket. It records its readiness and its
//!   waiters.
//! - **Slot**: the place of a task or a source in a table; another one gets it afterwards. With a
//!   number or generation it is a **key**, which matches no other.
//! - **Batch**: the events of one wait (`io.rs`).
//! - **Readiness**: what a source can do without blocking. An event of the kernel sets it; the
//!   attempt that would block clears it.
//! - **Handle**: a long-lived object of the loop: timer, hook, async handle, source. A handle is
//!   *active* while it is started, or waited for, and *referenced* unless it was unref'd.
//! - **Keeper**: what keeps the loop alive: a handle that is active and referenced, a sleep, a
//!   queued entry, a job, a close. The loop is alive while it has a keeper or work in the lanes or
//!   the inbox ([`Core::is_alive`], `ledger.rs`).
//! - **Header**: the part that all handles have: kind, line, whether it is active and referenced
//!   (`ledger/handles.rs`).
//! - **Job**: work of another thread for the loop, such as a closure of `spawn_blocking`
//!   (`ledger/jobs.rs`).
//! - **Hook**: a handle whose callback runs in every turn: idle, prepare, check
//!   (`phases/hooks.rs`).
//! - **Load** of a phase: zero if the phase has nothing to run (`phases.rs`).
//! - **Subscriber**: what the poll phase asks after the I/O: file changes, signals, exits of
//!   children (`io/after_io.rs`).
//! - **Closing**: the state of a handle after `close`. It is stopped at once; the closing phase
//!   completes the close.
//! - **Deferred**: said of a source whose task has used up the budget of its poll. It counts as not
//!   ready until the next poll phase (`io/deferred.rs`).
//! - **Budget** of a poll: the number of I/O operations that it may do (`executor.rs`).
//! - **Host**: another loop that drives this one, by the descriptor of its poller (`host.rs`).
//! - **Way to wait**: what waits in the poll phase: the kernel, a paused clock, another runtime, or
//!   a test that shuffles orders (`wait.rs`).
//! - **Wait hook**: another runtime that waits in place of the poller (`wait.rs`).
//! - **Busy period**: the time between two looks at the events of the kernel
//!   (`executor/counters.rs`).
//! - **Pace**: how long the loop was active and idle, for other threads (`executor/counters.rs`).
//! - **Contained panic**: a panic that a handler receives in place of the caller of the run, so
//!   that the loop goes on (`uncaught.rs`).
//! - **Observer**: what a loop reports to: recorder, watchdog, log, one of the user
//!   (`probe/observer.rs`).
//! - **Activity**: one piece of user code that an observer sees the begin and the end of: the body
//!   of a callback, a poll, a tick, a microtask closure. Its **origin** is the line and the kind of
//!   handle that it comes from.
//! - **Watched**: said of a loop while a bit of its switch is set that concerns the place in
//!   question (`probe/switch.rs`). The place then leaves the plain path for its **twin**.
//! - **Switch**: the word whose bits say what watches the loop, and what else leaves the plain path
//!   (`probe/switch.rs`).
//! - **Frame**: the values of the context variables that the running code has (`src/frame.rs`). To
//!   **carry** a closure is to keep the frame of its making for its run.
//! - **Foreign waker**: one that is not of the task which is polled. It is noted for reports
//!   (`current.rs`, `executor/notes.rs`).
//! - **Named wait**: a wait for what is no handle: a promise, an event, a channel
//!   (`executor/notes.rs`).
//! - **Member**: what a cluster keeps for each of its loops.
//! - **Extension**: the layer above that implements Node's API; the loop keeps its state
//!   (`extension.rs`).
//! - **Site**: the line of the program that created a handle, task or job; reports name it.
//! - **Rule R…, N…**: an entry of `tests/LIBUV.md` or `crates/node/tests/NODE.md`.

pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod extension;
mod host;
pub(crate) mod io;
pub(crate) mod ledger;
#[cfg(feature = "cluster")]
pub(crate) mod outstanding;
pub(crate) mod phases;
pub(crate) mod shutdown;
pub(crate) mod uncaught;
pub(crate) mod wait;
pub(crate) mod watched;

use std::rc::Rc;
use std::time::Duration;

use self::core::Core;
use crate::clock::nanoseconds;
use crate::executor::Drain;
use crate::phase_order::Phase;
use crate::probe::{Mode, Origin};
use crate::raw::bound::Bound;
use crate::raw::call::once;

/// The number of further passes over the pending queue that may follow the poll phase of one turn.
// Rule R83.
const PENDING_PASSES: usize = 8;

/// Sets when [`EventLoop::run`] returns.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, RunMode};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let handle = event_loop.handle();
///     handle.set_immediate({
///         let handle = handle.clone();
///         move || _ = handle.set_immediate(|| println!("in the second turn"))
///     });
///     assert!(event_loop.run(RunMode::NoWait)?, "the second immediate is queued");
///     assert!(!event_loop.run(RunMode::Default)?);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunMode {
    /// Runs turn after turn until nothing keeps the loop alive or the loop is stopped.
    #[default]
    Default,
    /// Runs one turn. Its poll phase waits for an event if nothing is due.
    Once,
    /// Runs one turn without waiting.
    NoWait,
}

/// How long the poll phase of one turn may wait.
#[derive(Clone, Copy)]
enum MaxWait {
    No,
    /// Until an event, and at most until this time of the loop's clock.
    Until(Option<u64>),
}

/// An event loop and its executor. It belongs to the thread that created it, its owner thread.
///
/// [`block_on`](crate::block_on) and [`run`](crate::run) create a loop for a single future. Create
/// one explicitly to set options, to register handles before it runs, or to drive it from another
/// loop.
///
/// Dropping the loop drops its tasks (their [`JoinHandle`](crate::JoinHandle)s report them as
/// cancelled), callbacks and queued closures. Handles, wakers and [`Remote`](crate::Remote)s may
/// outlive the loop: their methods then have no effect or return an error.
///
/// # After `fork`
///
/// A child after `fork` without `exec` shares the kernel objects of the loop with its parent. The
/// child may drop the loop without an effect on the parent. To run the loop in the child, call
/// [`LoopHandle::reinit_after_fork`](crate::LoopHandle::reinit_after_fork) first.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{EventLoop, RunMode, time::Timer};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let timer = Timer::new(&event_loop.handle());
///     timer.start(Duration::from_millis(1), Duration::ZERO, |_| println!("fired"))?;
///     let alive = event_loop.run(RunMode::Default)?;
///     assert!(!alive);
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_loop_t")]
#[doc(alias = "Runtime")]
#[doc(alias = "LocalSet")]
pub struct EventLoop {
    pub(crate) core: Bound<Rc<Core>>,
}

impl EventLoop {
    pub(crate) fn from_core(core: Rc<Core>) -> Self {
        Self {
            core: Bound::new(core),
        }
    }

    /// Calls `f` with this loop as the current loop of the thread, so that [`spawn`](crate::spawn),
    /// [`sleep`](crate::time::sleep) and similar functions work inside `f`. Tasks and closures that
    /// `f` queues run at the start of the next run.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let task = event_loop.enter(|| spawn(async { 42 })); // before the loop runs
    ///     event_loop.run(RunMode::Default)?;
    ///     assert!(task.is_finished());
    ///     Ok(())
    /// }
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.core.entered(f)
    }

    /// Runs the loop and returns whether it is still alive. After [`RunMode::Default`], `true`
    /// means that the loop was stopped.
    ///
    /// The lanes are drained first, so tasks and closures queued before the call are part of the
    /// run. Running a loop that is not alive only refreshes the loop's time.
    ///
    /// # Errors
    ///
    /// Any OS error of waiting for events (`epoll_wait`). The loop stays usable.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread. A panic of a callback propagates from here; the rest
    /// of its phase runs with the next call.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     event_loop.handle().set_immediate(|| println!("in the check phase"));
    ///     event_loop.turn(Some(Duration::ZERO))?; // one turn that does not wait
    ///     assert!(!event_loop.run(RunMode::Default)?, "nothing is left to do");
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn run(&mut self, mode: RunMode) -> std::io::Result<bool> {
        self.core.run(mode)
    }

    /// Runs one turn that waits for at most `max_wait` (`None`: without a limit) and returns
    /// whether the loop is still alive.
    ///
    /// This drives the loop from another loop: wait until the descriptor of
    /// [`backend`](Self::backend) is readable, then call `turn` with [`Duration::ZERO`].
    ///
    /// # Errors
    ///
    /// The conditions of [`run`](Self::run) apply.
    ///
    /// # Panics
    ///
    /// The conditions of [`run`](Self::run) apply.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     event_loop.handle().set_immediate(|| println!("in the check phase"));
    ///     event_loop.turn(Some(Duration::ZERO))?; // one turn that does not wait
    ///     assert!(!event_loop.run(RunMode::Default)?, "nothing is left to do");
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn turn(&mut self, max_wait: Option<Duration>) -> std::io::Result<bool> {
        self.core.run_turn(max_wait)
    }
}

impl Core {
    /// Makes turns: one, or while the loop is alive and not stopped.
    // The only caller of the turn, which is inlined: a turn saves no registers.
    #[inline(never)]
    fn make_turns(&self, mode: RunMode, until: Option<u64>, goes_on: bool) -> std::io::Result<()> {
        loop {
            if self.executor.probe.has(Mode::TURN) {
                self.executor.probe.begin_turn(self.executor.clock.now());
                let done = self.turn::<true>(mode, until);
                let (now, tasks) = (self.executor.clock.now(), self.executor.tasks.len());
                self.executor.probe.end_turn(now, tasks);
                done?;
            } else {
                self.turn::<false>(mode, until)?;
            }
            if !goes_on || !self.is_alive() || self.stop.get() {
                return Ok(());
            }
        }
    }

    /// Runs one turn, phase by phase. The observers receive the phases of a watched turn.
    // Rule R21. The parameter and the shortcuts before and after the poll phase save 60 to 80
    // instructions of a turn.
    #[inline(always)]
    fn turn<const WATCHED: bool>(&self, mode: RunMode, until: Option<u64>) -> std::io::Result<()> {
        if !self.executor.lanes.is_idle() {
            self.run_lanes();
        }
        // Most turns have nothing to do before the wait.
        let before_poll = self.phases.load(Phase::Pending)
            | self.phases.load(Phase::Idle)
            | self.phases.load(Phase::Prepare);
        let can_sleep = !(WATCHED || before_poll != 0) || self.run_before_poll::<WATCHED>();
        // In mode `Default` the wait itself asks whether there is work (`has_work_now`).
        let wait = match mode {
            RunMode::Default => MaxWait::Until(until),
            RunMode::Once if can_sleep => MaxWait::Until(until),
            RunMode::Once | RunMode::NoWait => MaxWait::No,
        };
        // Counted right before the wait, as in libuv's metrics.
        let turns = &self.counters.turns;
        turns.set(turns.get() + 1);
        self.in_phase::<WATCHED, _>(Phase::Poll, || self.run_poll(wait))?;
        // Most turns have nothing to do after the wait either, or timers only.
        let after_poll = self.phases.load(Phase::Pending)
            | self.phases.load(Phase::Check)
            | self.phases.load(Phase::Closing);
        if WATCHED || after_poll != 0 {
            // I/O callbacks may have queued entries. The bound keeps entries that queue new ones
            // from starving the other phases.
            for _ in 0..PENDING_PASSES {
                if self.phases.load(Phase::Pending) == 0 {
                    break;
                }
                self.in_phase::<WATCHED, _>(Phase::Pending, || self.run_queue(Phase::Pending));
            }
            self.in_phase::<WATCHED, _>(Phase::Check, || self.run_hooks(Phase::Check));
            self.in_phase::<WATCHED, _>(Phase::Closing, || self.run_closing());
        }
        if self.phases.load(Phase::Timers) != 0 || self.executor.probe.has(Mode::PHASES) {
            self.in_phase::<WATCHED, _>(Phase::Timers, || self.run_timers());
        } else {
            // The clock is read later, before the next user code runs (`Clock::catch_up`).
            self.executor.clock.leave_behind();
        }
        Ok(())
    }

    /// Runs the phases before the poll phase. Returns whether a turn in mode `Once` may wait.
    // Not inlined, since most turns skip it.
    #[inline(never)]
    fn run_before_poll<const WATCHED: bool>(&self) -> bool {
        // Computed before the phases run, as in libuv: in mode `Once`, a turn that runs pending or
        // idle callbacks does not wait.
        let can_sleep = self.phases.load(Phase::Pending) | self.phases.load(Phase::Idle) == 0;
        self.in_phase::<WATCHED, _>(Phase::Pending, || self.run_queue(Phase::Pending));
        self.in_phase::<WATCHED, _>(Phase::Idle, || self.run_hooks(Phase::Idle));
        self.in_phase::<WATCHED, _>(Phase::Prepare, || self.run_hooks(Phase::Prepare));
        can_sleep
    }

    /// Runs a phase. The observers of a watched turn receive its begin and end.
    #[inline]
    fn in_phase<const WATCHED: bool, R>(&self, phase: Phase, run: impl FnOnce() -> R) -> R {
        let _span = WATCHED.then(|| self.executor.probe.phase(phase));
        run()
    }

    #[track_caller]
    pub(crate) fn run(self: &Rc<Self>, mode: RunMode) -> std::io::Result<bool> {
        self.running(|| {
            if self.begin_run() {
                if mode == RunMode::Default {
                    self.in_phase::<true, _>(Phase::Timers, || self.run_timers());
                }
                // Liveness is not checked again before the first turn: if the timers were the only
                // thing alive, one whole turn still follows them (R16).
                if !self.stop.get() {
                    self.make_turns(mode, None, mode == RunMode::Default)?;
                }
            }
            self.end_run();
            Ok(self.is_alive())
        })
    }

    #[track_caller]
    fn run_turn(self: &Rc<Self>, max_wait: Option<Duration>) -> std::io::Result<bool> {
        self.running(|| {
            // A host keeps the loop. What is unref'd may have made the descriptor readable, which
            // only a turn ends.
            let is_kept = self.host.is_embedded() && !self.stop.get();
            if self.begin_run() || is_kept {
                let until = max_wait
                    .map(|wait| self.executor.clock.read().saturating_add(nanoseconds(wait)));
                self.make_turns(RunMode::Default, until, false)?;
            }
            self.end_run();
            Ok(self.is_alive())
        })
    }

    /// Starts a run: drains the lanes and updates the time. Returns `false` if the loop is stopped
    /// or not alive.
    fn begin_run(&self) -> bool {
        if self.stop.get() {
            // A stopped run refreshes the time only if the loop is not alive (R13).
            if !self.is_alive() {
                self.executor.clock.update();
            }
            return false;
        }
        if !self.executor.lanes.is_idle() {
            self.run_lanes();
        }
        self.executor.clock.update();
        let runs = self.is_alive() && !self.stop.get();
        // The first turn runs what the panic left.
        self.was_interrupted
            .set(self.was_interrupted.get() && !runs);
        runs
    }
}

/// Callbacks, and the drain after each.
///
/// Each callback of a phase runs through [`Core::dispatch`]. The executor takes the entries out of
/// the lanes and polls the tasks (`executor.rs`). Two callers order callback and drain themselves,
/// by calling `drain`: contained panics (`uncaught.rs`), and the layer for Node through
/// `extension.rs`, whose shared timer runs many user timers in one callback of the loop and drains
/// between them.
impl Core {
    /// Runs one callback of a phase, then drains the lanes. `origin` names where the callback comes
    /// from; only a watched loop asks.
    ///
    /// A panic of user code propagates through here. The rest of the lanes and of the phase stays
    /// queued and runs with the next run of the loop.
    // Rule N9. Inlined, so that no call lies between an event, the wake and the poll, and the
    // closures stay in registers.
    #[inline(always)]
    pub(crate) fn dispatch(
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
        if !self.executor.lanes.is_idle() {
            // Usually one task was woken. It is polled without the loops over the lanes, which
            // then run what the poll has queued, as the rest of one drain.
            let drain = self.executor.poll_front();
            if !self.executor.lanes.is_idle() {
                self.drain_some(drain);
            }
        }
    }

    /// Drains what was queued outside of a callback: before the run, or beyond the budget of a
    /// drain. What a contained panic left in the lanes waits for the next callback.
    // Not inlined: few turns begin with work in the lanes.
    #[inline(never)]
    fn run_lanes(&self) {
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
        if !self.executor.lanes.is_idle() {
            self.drain_some(Drain::NEW);
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
