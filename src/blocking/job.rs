//! A job: a closure for a thread of the pool, and its output for the loop, in one allocation.
//!
//! ```text
//!   queued ── run ──> running ── the closure returns ──> ended ── arrive, poll ──> over
//!      └── cancel ──────┴───────────── cancel ─────────────┴── cancel ──────────────^
//! ```
//!
//! `run` is called on a thread of the pool; everything else on the owner thread. The lock is held
//! to read and move state, never while user code runs: neither a closure nor a waker is called,
//! cloned or dropped under it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::home::Home;
use crate::event_loop::current;
use crate::executor::join::Awaited;
use crate::pool;
use crate::raw::sync::{AtomicU8, Mutex, MutexGuard, Ordering};
use crate::raw::unwind::quietly;
use crate::site::Site;
use crate::task_info::Id;

/// The payload of a job that was taken back.
pub(super) struct Cancelled;

pub(super) struct Job<F, T> {
    pub(super) home: Home,
    /// What the owner thread knows of the job. Only the owner thread reads and writes the flags;
    /// they are atomic to be `Sync`.
    flags: AtomicU8,
    state: Mutex<State<F, T>>,
}

/// The completion has arrived at the loop.
const ARRIVED: u8 = 1;
/// The job is cancelled as soon as the microtask lane reaches its abort.
const ABORTED: u8 = 1 << 1;
/// The handle was dropped.
const DETACHED: u8 = 1 << 2;
/// The job was cancelled, or its output was taken.
const OVER: u8 = 1 << 3;

/// What the owner thread shares with the thread of the pool.
struct State<F, T> {
    stage: Stage<F, T>,
    waiter: Option<Waker>,
}

enum Stage<F, T> {
    Queued(F),
    Running,
    Ended(thread::Result<T>),
    /// The job was cancelled, or its output was taken.
    Over,
}

impl<F, T> Job<F, T> {
    pub(super) fn new(home: Home, closure: F) -> Arc<Self> {
        Arc::new(Self {
            home,
            flags: AtomicU8::new(0),
            state: Mutex::new(State {
                stage: Stage::Queued(closure),
                waiter: None,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<F, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether one of the flags is set.
    fn is(&self, flags: u8) -> bool {
        self.flags.load(Ordering::Relaxed) & flags != 0
    }

    fn set(&self, flag: u8) {
        let flags = self.flags.load(Ordering::Relaxed);
        self.flags.store(flags | flag, Ordering::Relaxed);
    }

    /// Returns whether the output can be taken, or never will be.
    fn is_ready(&self, state: &State<F, T>) -> bool {
        if self.is(ABORTED) {
            return self.is(OVER);
        }
        // A loop that was dropped delivers no completion.
        self.is(ARRIVED | OVER) || matches!(state.stage, Stage::Ended(_)) && self.home.is_gone()
    }

    /// Takes the output of a job that is ready. `None` if it was taken before, or the job was
    /// cancelled.
    fn take_output(&self, mut state: MutexGuard<'_, State<F, T>>) -> Option<thread::Result<T>> {
        self.set(OVER);
        let stage = std::mem::replace(&mut state.stage, Stage::Over);
        drop(state);
        match stage {
            Stage::Ended(output) => Some(output),
            _ => None,
        }
    }

    /// Drops the closure or the output. A running closure continues, and its output is dropped.
    /// Returns whether the loop still counts the job, and the waker to wake or drop.
    fn end(&self) -> (bool, Option<Waker>) {
        let is_counted = !self.is(ARRIVED | OVER);
        self.set(OVER);
        let (stage, waiter) = {
            let mut state = self.lock();
            let stage = std::mem::replace(&mut state.stage, Stage::Over);
            (stage, state.waiter.take())
        };
        quietly(|| drop(stage));
        (is_counted, waiter)
    }

    /// Cancels a job that counts as a task, and wakes its awaiter.
    fn end_task(&self) {
        let (is_counted, waiter) = self.end();
        if is_counted {
            self.home.end();
        }
        if let Some(waiter) = waiter {
            quietly(|| waiter.wake());
        }
    }

    /// Drops an output that no handle will return.
    fn discard(&self) {
        if let Some(output) = self.take_output(self.lock()) {
            let dropped = output.and_then(|value| catch_unwind(AssertUnwindSafe(|| drop(value))));
            if let Err(panic) = dropped {
                // The drop of the payload may panic in turn.
                quietly(|| self.home.unhandled(panic));
            }
        }
    }

    fn wake_waiter(&self) {
        let waiter = self.lock().waiter.take();
        if let Some(waiter) = waiter {
            quietly(|| waiter.wake());
        }
    }
}

impl<F, T> State<F, T> {
    /// Takes the closure if the job still waits for a thread. The caller runs or drops it.
    fn begin(&mut self) -> Option<F> {
        match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Queued(closure) => Some(closure),
            later => {
                self.stage = later;
                None
            }
        }
    }

    /// Stores the output of a running job. If the job is over, the output is returned.
    fn complete(&mut self, output: thread::Result<T>) -> Option<thread::Result<T>> {
        if matches!(self.stage, Stage::Over) {
            return Some(output);
        }
        self.stage = Stage::Ended(output);
        None
    }
}

impl<F, T> pool::Job for Job<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(self: Arc<Self>) {
        let taken = self.lock().begin();
        let Some(closure) = taken else {
            return;
        };
        let output = catch_unwind(AssertUnwindSafe(closure));
        let unwanted = self.lock().complete(output);
        if unwanted.is_some() {
            quietly(|| drop(unwanted));
        } else if !self.home.send(self.clone()) {
            self.wake_waiter();
        }
    }

    fn arrive(self: Arc<Self>) {
        self.set(ARRIVED);
        if self.is(OVER) {
            // The loop has stopped counting the job when it was cancelled.
            return;
        }
        self.home.arrived();
        if self.is(ABORTED) {
            return;
        }
        let waiter = self.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
        } else if self.is(DETACHED) {
            // In a microtask, where a task would drop its output.
            self.clone().home.schedule(move || self.discard());
        }
    }

    fn site(&self) -> Option<Site> {
        self.home.site()
    }

    fn abandon(self: Arc<Self>) {
        if self.home.is_spawned() {
            self.end_task();
        } else {
            // It may be awaited on another loop.
            self.wake_waiter();
        }
    }

    fn abort(self: Arc<Self>) {
        if !self.is(ARRIVED | ABORTED | OVER) {
            self.set(ABORTED);
            self.clone().home.schedule(move || self.end_task());
        }
    }

    fn take_back(self: Arc<Self>) -> bool {
        let taken = {
            let mut state = self.lock();
            let taken = state.begin();
            if taken.is_some() {
                state.stage = Stage::Ended(Err(Box::new(Cancelled)));
            }
            taken
        };
        let was_queued = taken.is_some();
        quietly(|| drop(taken));
        if was_queued {
            self.home.send(self.clone());
        }
        was_queued
    }

    fn awaiter(&self) -> Option<*const ()> {
        self.lock().waiter.as_ref().map(Waker::data)
    }
}

impl<F, T> Awaited<T> for Job<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn poll(&self, cx: &Context<'_>) -> Poll<Option<thread::Result<T>>> {
        if self.is(ARRIVED | OVER) {
            let state = self.lock();
            if self.is_ready(&state) {
                return Poll::Ready(self.take_output(state));
            }
        }
        // The waker is cloned and dropped outside the lock: both may run user code.
        let waker = cx.waker().clone();
        current::note_waker(&waker);
        let mut state = self.lock();
        if self.is_ready(&state) {
            let output = self.take_output(state);
            drop(waker);
            return Poll::Ready(output);
        }
        let before = state.waiter.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn is_finished(&self) -> bool {
        self.is_ready(&self.lock())
    }

    fn detach(&self) {
        self.set(DETACHED);
        let waiter = self.lock().waiter.take();
        if self.is_finished() {
            self.discard();
        }
        drop(waiter);
    }

    fn id(&self) -> Id {
        self.home.id()
    }

    fn cancel(&self) -> bool {
        self.end().0
    }

    fn as_job(self: Arc<Self>) -> Arc<dyn pool::Job> {
        self
    }
}
