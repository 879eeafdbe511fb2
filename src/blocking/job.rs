//! A job: a closure for a thread of the pool, and its output for the loop, in one allocation.
//!
//! ```text
//!   queued ── run ──> running ── the closure returns ──> ended ── arrive, poll ──> over
//!      └── cancel ──────┴───────────── cancel ─────────────┴── cancel ──────────────^
//! ```
//!
//! `run` is called on a thread of the pool; everything else on the owner thread, unless any thread
//! may call it. No lock is held while user code runs: neither a closure nor a waker is called,
//! cloned or dropped under it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::home::Home;
use crate::event_loop::current;
use crate::executor::join::Awaited;
use crate::pool;
use crate::raw::handover::Handover;
use crate::raw::sync::{AtomicU8, Mutex, Ordering};
use crate::raw::unwind::ignore_panic;
use crate::site::Site;
use crate::task_info::Id;

/// The payload of a job that was taken back.
pub(super) struct Cancelled;

pub(super) struct Job<F, T> {
    pub(super) home: Home,
    /// What the owner thread knows of the job. Only the owner thread writes the flags; any thread
    /// reads them.
    flags: AtomicU8,
    work: Handover<F, thread::Result<T>>,
    /// The waker that awaits the output. A thread of the pool takes it only if the loop was
    /// dropped.
    waiter: Mutex<Option<Waker>>,
}

/// The completion has arrived at the loop.
const ARRIVED: u8 = 1;
/// The job is cancelled as soon as the microtask lane reaches its abort.
const ABORTED: u8 = 1 << 1;
/// The handle was dropped.
const DETACHED: u8 = 1 << 2;
/// The job was cancelled, or its output was taken.
const OVER: u8 = 1 << 3;

impl<F, T> Job<F, T> {
    pub(super) fn new(home: Home, closure: F) -> Arc<Self> {
        Arc::new(Self {
            home,
            flags: AtomicU8::new(0),
            work: Handover::new(closure),
            waiter: Mutex::new(None),
        })
    }

    /// Sets the waker that awaits the output, and returns the one before.
    fn set_waiter(&self, waiter: Option<Waker>) -> Option<Waker> {
        let mut place = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, waiter)
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
    fn is_ready(&self) -> bool {
        let flags = self.flags.load(Ordering::Relaxed);
        if flags & ABORTED != 0 {
            return flags & OVER != 0;
        }
        // A loop that was dropped delivers no completion.
        flags & (ARRIVED | OVER) != 0 || self.work.is_done() && self.home.is_gone()
    }

    /// Takes the output of a job that is ready. `None` if it was taken before, or the job was
    /// cancelled.
    fn take_output(&self) -> Option<thread::Result<T>> {
        self.set(OVER);
        self.work.take_output()
    }

    /// Drops the closure or the output. A running closure continues, and its output is dropped.
    /// Returns whether the loop still counts the job, and the waker to wake or drop.
    fn end(&self) -> (bool, Option<Waker>) {
        let ended = self.work.end();
        let after = self.end_count();
        ignore_panic(|| drop(ended));
        after
    }

    /// Notes that the job is over. Returns whether the loop still counts it, and the waker to wake
    /// or drop.
    fn end_count(&self) -> (bool, Option<Waker>) {
        let is_counted = !self.is(ARRIVED | OVER);
        self.set(OVER);
        (is_counted, self.set_waiter(None))
    }

    /// Cancels a job that counts as a task, and wakes its awaiter.
    fn end_task(&self) {
        let (is_counted, waiter) = if self.drop_closure() {
            self.end_count()
        } else {
            self.end()
        };
        if is_counted {
            self.home.end();
        }
        match waiter {
            Some(waiter) => drop(ignore_panic(|| waiter.wake())),
            None if self.is(DETACHED) => self.discard(),
            None => {}
        }
    }

    /// Drops the closure, if no thread has taken it. A panic of the drop is then the output of the
    /// job, as it is that of an aborted task. Returns whether there is such an output.
    fn drop_closure(&self) -> bool {
        let Some((closure, taken)) = self.work.take() else {
            return false;
        };
        match catch_unwind(AssertUnwindSafe(|| drop(closure))) {
            Ok(()) => false,
            // Its own drop may have ended the job.
            Err(panic) => match taken.put(Err(panic)) {
                Ok(()) => true,
                Err(unwanted) => {
                    ignore_panic(|| drop(unwanted));
                    false
                }
            },
        }
    }

    /// Drops an output that no handle will return.
    fn discard(&self) {
        if let Some(output) = self.take_output() {
            let dropped = output.and_then(|value| catch_unwind(AssertUnwindSafe(|| drop(value))));
            if let Err(panic) = dropped {
                // The drop of the payload may panic in turn.
                ignore_panic(|| self.home.unhandled(panic));
            }
        }
    }

    fn wake_waiter(&self) {
        if let Some(waiter) = self.set_waiter(None) {
            ignore_panic(|| waiter.wake());
        }
    }
}

impl<F, T> pool::Job for Job<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn run(self: Arc<Self>) {
        let Some((closure, taken)) = self.work.take() else {
            return;
        };
        let output = catch_unwind(AssertUnwindSafe(closure));
        if let Err(unwanted) = taken.put(output) {
            ignore_panic(|| drop(unwanted));
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
        if let Some(after) = self.home.end() {
            after();
        }
        if self.is(ABORTED) {
            return;
        }
        if let Some(waiter) = self.set_waiter(None) {
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
        if !self.home.is_owner_thread() {
            return self.clone().home.schedule(move || self.abort());
        }
        if !self.is(ARRIVED | ABORTED | OVER) {
            self.set(ABORTED);
            self.clone().home.schedule(move || self.end_task());
        }
    }

    fn is_over(&self) -> bool {
        self.is_ready()
    }

    fn take_back(self: Arc<Self>) -> bool {
        let Some((closure, taken)) = self.work.take() else {
            return false;
        };
        let unwanted = taken.put(Err(Box::new(Cancelled)));
        debug_assert!(unwanted.is_ok(), "the job ends on this thread only");
        ignore_panic(|| drop(closure));
        self.home.send(self.clone());
        true
    }

    fn awaiter(&self) -> Option<*const ()> {
        let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        waiter.as_ref().map(Waker::data)
    }
}

impl<F, T> Awaited<T> for Job<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    fn poll(&self, cx: &Context<'_>) -> Poll<Option<thread::Result<T>>> {
        if self.is_ready() {
            return Poll::Ready(self.take_output());
        }
        // The waker is cloned and dropped outside the lock: both may run user code.
        let waker = cx.waker().clone();
        current::note_waker(&waker);
        drop(self.set_waiter(Some(waker)));
        // Asked again: if the loop is gone, the thread of the pool may have looked for a waker
        // before this one was set.
        if self.is_ready() {
            drop(self.set_waiter(None));
            return Poll::Ready(self.take_output());
        }
        Poll::Pending
    }

    fn is_finished(&self) -> bool {
        self.is_ready()
    }

    fn detach(&self) {
        self.set(DETACHED);
        let waiter = self.set_waiter(None);
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
