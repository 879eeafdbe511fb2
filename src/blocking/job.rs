//! A job: a closure on its way to a thread, and its output on its way back, in one allocation.
//!
//! ```text
//!   queued ── run ──> running ── the closure returns ──> ended ── arrive, poll ──> over
//!      └── cancel ──────┴───────────── cancel ─────────────┴── cancel ──────────────^
//! ```
//!
//! `run` is called on a thread of the pool; `arrive`, `poll` and `cancel` on the loop's. The lock is held for a look and a
//! move, never while anybody's code runs: neither a closure nor a waker is called, cloned or dropped
//! under it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::executor::message::Arrival;
use crate::pool::Run;
use crate::raw::sync::{Mutex, MutexGuard};
use crate::raw::unwind::quietly;

/// Where jobs report their end.
pub(super) trait Home: Send + Sync + 'static {
    /// Called on a thread of the pool; [`Arrival::arrive`] follows at home. `false`: nobody is at home any more.
    fn send(&self, ended: Arc<dyn Arrival>) -> bool;
    /// Nobody is at home any more: who wants the output takes it as soon as it is there.
    fn is_gone(&self) -> bool;
    /// Called at home when the end of a job is there that was not cancelled.
    fn arrived(&self) {}
}

/// A job as its home sees it.
pub(super) trait Awaited<T> {
    /// Ready once the end has arrived; not to be polled after that.
    fn poll(&self, cx: &Context<'_>) -> Poll<thread::Result<T>>;
    /// Drops what there is of the job: the closure, the output. One that runs goes on, for nobody. Says whether the end had
    /// arrived before.
    fn cancel(&self) -> bool;
}

/// A job as whoever has queued it sees it.
pub(super) trait TakeBack {
    /// Ends the job with [`Cancelled`] if no thread has taken it; the end goes home like any other. `false`: too late.
    fn take_back(self: Arc<Self>) -> bool;
}

/// The payload of a job that was taken back.
pub(super) struct Cancelled;

pub(super) struct Job<F, T, H> {
    home: H,
    state: Mutex<State<F, T>>,
}

struct State<F, T> {
    stage: Stage<F, T>,
    /// The end has come home.
    arrived: bool,
    waiter: Option<Waker>,
}

enum Stage<F, T> {
    Queued(F),
    Running,
    Ended(thread::Result<T>),
    /// Cancelled, or its output was taken.
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

    /// Wakes whoever awaits a job whose home is gone.
    fn wake_waiter(&self) {
        let waiter = self.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<F, T> State<F, T> {
    /// Takes the closure, if that waits for a thread: whoever calls this runs or drops it.
    fn begin(&mut self) -> Option<F> {
        match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Queued(closure) => Some(closure),
            later => {
                self.stage = later;
                None
            }
        }
    }

    /// Moves from one stage to the next; without effect, and returning what was to come next, on a job that is over.
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
            // Outside of the lock; the end may come meanwhile.
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
