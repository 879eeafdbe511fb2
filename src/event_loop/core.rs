//! The state of one loop: four parts by concern, how it waits, and the flags of its run.
//!
//! | part | holds | file |
//! |---|---|---|
//! | [`Executor`] | the lanes, the tasks, the main future | `executor.rs` |
//! | [`Phases`] | what waits for a phase: queues, hooks, timers, closes | `phases.rs` |
//! | [`Io`] | the poller, its events, and what they wake | `io.rs` |
//! | [`Ledger`] | what keeps the loop alive: counters, handles, jobs | `ledger.rs` |
//!
//! The fields of a part are private to its file and the files below it; those of [`Executor`] that
//! `dispatch` reads are open to the crate. A method of [`Core`] that needs one part is in that
//! part's files; one that needs several is where it is called from.
//!
//! Invariant: no `RefCell` is borrowed while user code runs, except the events of [`Io`], which
//! only `ask_kernel` mutates. No method returns a borrow of a cell.

use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::extension::ExtensionSlot;
use super::host::Host;
use super::io::Io;
use super::ledger::Ledger;
use super::phases::Phases;
use super::uncaught::PanicPolicy;
use super::wait::{Wait, Waits};
use crate::clock::Clock;
use crate::executor::Executor;
use crate::executor::counters::Counters;
use crate::executor::registry::{Registry, TaskState};
use crate::executor::shared::{Shared, UnhandledPanic};
use crate::pool::Pool;
use crate::probe::Attachments;
use crate::sorted::sorted_by_number;
use crate::sys::poller::Poller;

/// What a loop is made of.
pub(crate) struct Options {
    pub(crate) unhandled_panic: UnhandledPanic,
    pub(crate) lane_budget: u64,
    pub(crate) pool: Option<Pool>,
    pub(crate) attachments: Attachments,
    pub(crate) is_paused: bool,
    /// The start of the clock, if it is that of another loop.
    pub(crate) clock_start: Option<Instant>,
    /// The index of the loop among several of one program.
    pub(crate) index: Option<u32>,
}

pub(crate) struct Core {
    pub(crate) executor: Executor,
    pub(crate) phases: Phases,
    pub(crate) io: Io,
    pub(crate) ledger: Ledger,
    /// How the poll phase waits, if not in the kernel.
    pub(crate) waits: Waits,
    pub(crate) host: Host,

    /// `None` for the global pool.
    pub(crate) pool: Option<Pool>,
    pub(crate) panic_policy: PanicPolicy,
    /// The state that the layer above keeps for this loop.
    pub(crate) extension: ExtensionSlot,
    pub(crate) stop: Cell<bool>,
    /// Whether the last run was stopped.
    pub(crate) was_stopped: Cell<bool>,
    /// Whether a panic interrupted a phase. Cleared when the next run begins.
    pub(crate) was_interrupted: Cell<bool>,
    pub(crate) counters: Counters,
    /// What the layer of several loops keeps for this loop.
    #[allow(dead_code, reason = "only a cluster sets it")]
    pub(crate) member: OnceCell<Rc<dyn Any>>,
    /// What must end before the loop is drained.
    #[cfg(feature = "cluster")]
    pub(crate) outstanding: super::outstanding::Outstanding,
}

impl Core {
    pub(crate) fn new(options: Options) -> std::io::Result<Rc<Self>> {
        let poller = Poller::new()?;
        let tasks = Rc::new(Registry::new());
        let policy = options.unhandled_panic;
        let shared = Shared::new(poller.notifier(), policy, tasks.clone(), options.index);
        let shared = Arc::new(shared);
        Ok(Rc::new(Self {
            // First, so that the large block of its events does not lie beside the loop: the
            // allocator would join both when they are freed, and part them again for the next loop.
            io: Io::new(poller, shared.clone()),
            executor: Executor::new(
                shared,
                tasks,
                options.lane_budget,
                Clock::new(options.is_paused, options.clock_start),
                options.attachments,
            ),
            phases: Phases::default(),
            ledger: Ledger::new(),
            waits: Waits::default(),
            host: Host::default(),
            pool: options.pool,
            panic_policy: PanicPolicy::default(),
            extension: ExtensionSlot::default(),
            stop: Cell::new(false),
            was_stopped: Cell::new(false),
            was_interrupted: Cell::new(false),
            counters: Counters::default(),
            member: OnceCell::new(),
            #[cfg(feature = "cluster")]
            outstanding: super::outstanding::Outstanding::default(),
        }))
    }

    /// Returns the thread pool for blocking work: that of the way to wait, the loop's own or the
    /// global one.
    pub(crate) fn pool(&self) -> &Pool {
        let of_wait = self.waits.chosen().and_then(Wait::pool);
        let chosen = of_wait.or(self.pool.as_ref());
        chosen.unwrap_or_else(|| Pool::of_process())
    }

    /// Returns all tasks and the jobs that count as tasks, with their wakers, oldest first.
    pub(crate) fn task_states(&self) -> Vec<TaskState> {
        let mut states = self.executor.tasks.states();
        states.extend(self.ledger.job_states());
        for state in &mut states {
            state.info.of_loop = self.executor.shared.index;
        }
        sorted_by_number(states.into_iter().map(|task| (task.info.id().0, task)))
    }
}
