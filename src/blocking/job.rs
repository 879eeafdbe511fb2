//! A job: a closure for a thread of the pool, and its output for the loop, in one allocation.
//!
//! ```text
//!   queued ── run ──> running ── the closure returns ──> ended ── arrive, poll ──> over
//!      └── cancel ──────┴───────────── cancel ─────────────┴── cancel ──────────────^
//! ```
//!
//! `run` is called on a thread of the pool; `arrive`, `poll` and `cancel` on the owner thread. The
//! lock is held to read and move state, never while user code runs: neither a closure nor a waker
//! is called, cloned or dropped under it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::executor::message::Arrival;
use crate::pool::Run;
use crate::raw::sync::{Mutex, MutexGuard};
use crate::raw::unwind::quietly;

/// The loop of a job, which receives its completion.
pub(super) trait Home: Send + Sync + 'static {
    /// Sends a completed job to the loop, from a thread of the pool; [`Arrival::arrive`] follows on
    /// the owner thread. Returns `false` if the loop was dropped.
    fn send(&self, ended: Arc<dyn Arrival>) -> bool;
    /// Returns whether the loop was dropped. Then a poll takes the output as soon as the job has
    /// completed.
    fn is_gone(&self) -> bool;
    /// Called on the owner thread when the completion of a job that was not cancelled has arrived.
    fn arrived(&self) {}
}

/// A job as its loop sees it.
pub(super) trait Awaited<T> {
    /// Polls for the output, which is ready once the completion has arrived. It must not be polled
    /// after that.
    fn poll(&self, cx: &Context<'_>) -> Poll<thread::Result<T>>;
    /// Drops the closure or the output. A running closure continues, and its output is dropped.
    /// Returns whether the completion had arrived before.
    fn cancel(&self) -> bool;
}

/// A job as the code that queued it sees it.
pub(super) trait TakeBack {
    /// Completes the job with [`Cancelled`] if no thread has taken it; the completion is delivered
    /// like any other. Returns `false` if a thread has taken it.
    fn take_back(self: Arc<Self>) -> bool;
}

/// The payload of a cancelled job.
pub(super) struct Cancelled;

pub(super) struct Job<F, T, H> {
    home: H,
    state: Mutex<State<F, T>>,
}

struct State<F, T> {
    stage: Stage<F, T>,
    /// The completion has arrived at the loop.
    arrived: bool,
    waiter: Option<Waker>,
}

enum Stage<F, T> {
    Queued(F),
    Running,
    Ended(thread::Result<T>),
    /// The job was cancelled, or its output was taken.
    Over,
}

impl<F, T, H> Job<F, T, H> {
    pub(super) fn new(home: H, closure: F) -> Arc<Self> {
        Arc::new(Self {
            home,
            state: Mutex::new(State {
                stage: Stage::Queued(closure),
                arrived: false,
                waiter: None,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<F, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the awaiter of a job whose loop was dropped.
    fn wake_waiter(&self) {
        let waiter = self.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
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

    /// Moves the job to the next stage and returns the previous one. If the job is over, it stays
    /// so, and `next` is returned.
    fn advance(&mut self, next: Stage<F, T>) -> Stage<F, T> {
        if matches!(self.stage, Stage::Over) {
            next
        } else {
            std::mem::replace(&mut self.stage, next)
        }
    }
}

impl<F, T, H> Run for Job<F, T, H>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
    H: Home,
{
    fn run(self: Arc<Self>) {
        let taken = self.lock().begin();
        let Some(closure) = taken else {
            return;
        };
        let output = catch_unwind(AssertUnwindSafe(closure));
        let before = self.lock().advance(Stage::Ended(output));
        if !matches!(before, Stage::Running) {
            quietly(|| drop(before));
        } else if !self.home.send(self.clone()) {
            self.wake_waiter();
        }
    }
}

impl<F, T, H> Arrival for Job<F, T, H>
where
    F: Send,
    T: Send,
    H: Home,
{
    fn arrive(self: Arc<Self>) {
        let (is_cancelled, waiter) = {
            let mut state = self.lock();
            state.arrived = true;
            (matches!(state.stage, Stage::Over), state.waiter.take())
        };
        if !is_cancelled {
            self.home.arrived();
        }
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    fn abandon(self: Arc<Self>) {
        self.wake_waiter();
    }
}

impl<F, T, H: Home> Awaited<T> for Job<F, T, H> {
    fn poll(&self, cx: &Context<'_>) -> Poll<thread::Result<T>> {
        let mut cloned = None;
        loop {
            let is_gone = self.home.is_gone();
            let mut state = self.lock();
            let is_there = is_gone && matches!(state.stage, Stage::Ended(_));
            if state.arrived || is_there {
                let stage = state.advance(Stage::Over);
                drop(state);
                return match stage {
                    Stage::Ended(output) => Poll::Ready(output),
                    _ => panic!("a job of the pool was polled after its end"),
                };
            }
            let is_known = state.waiter.as_ref();
            if is_known.is_some_and(|waiter| waiter.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            if let Some(waker) = cloned.take() {
                let before = state.waiter.replace(waker);
                drop(state);
                drop(before);
                return Poll::Pending;
            }
            drop(state);
            // The waker is cloned outside the lock; the job may complete meanwhile.
            cloned = Some(cx.waker().clone());
        }
    }

    fn cancel(&self) -> bool {
        let (stage, waiter, has_arrived) = {
            let mut state = self.lock();
            let stage = state.advance(Stage::Over);
            (stage, state.waiter.take(), state.arrived)
        };
        quietly(|| drop(stage));
        drop(waiter);
        has_arrived
    }
}

impl<F, T, H> TakeBack for Job<F, T, H>
where
    F: Send + 'static,
    T: Send + 'static,
    H: Home,
{
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
}
