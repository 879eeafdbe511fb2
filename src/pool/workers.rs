//! The pool's threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use async_task::Runnable;

use super::queue::{Job, Queue};
use super::{Class, PoolBuilder, PoolStats};
use crate::sys;

/// What the pool's users and threads share.
///
/// A user's lock is held for a few instructions only, and a sleeping thread is notified after it was released: it would
/// otherwise wake up only to wait for the lock.
pub(crate) struct Workers {
    builder: PoolBuilder,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    queue: Queue,
    stats: PoolStats,
    /// Threads that were notified and have not run yet: they count as busy.
    notified: usize,
    /// The pool is gone: threads end when the queue is empty.
    closed: bool,
}

impl State {
    /// Whether a thread sleeps that nobody has notified yet; the caller notifies it.
    fn claim_idle(&mut self) -> bool {
        let is_idle = self.stats.idle > self.notified;
        if is_idle {
            self.notified += 1;
        }
        is_idle
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    pub(crate) fn new(builder: PoolBuilder) -> Arc<Self> {
        let queue = Queue::new(&builder);
        Arc::new(Self {
            builder,
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    queue,
                    stats: PoolStats::default(),
                    notified: 0,
                    closed: false,
                }),
                wake: Condvar::new(),
            }),
        })
    }

    /// Queues a job.
    pub(crate) fn submit(&self, class: Class, runnable: Runnable) {
        let job = Job {
            runnable,
            class,
            submitted: sys::clock::monotonic(),
        };
        let notify = {
            let mut state = self.shared.lock();
            let is_more = state.queue.push(job);
            state.stats.queued += 1;
            is_more && state.claim_idle()
        };
        if notify {
            self.shared.wake.notify_one();
        }
    }

    pub(crate) fn stats(&self) -> PoolStats {
        self.shared.lock().stats
    }

    /// Starts all threads with the first job (R272). Those that could not be started are tried again with later jobs.
    ///
    /// # Errors
    ///
    /// When there is no thread, and none could be started.
    pub(crate) fn start_threads(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        while state.stats.threads < self.builder.threads {
            let shared = self.shared.clone();
            let mut thread = thread::Builder::new().name(self.builder.name.clone());
            if let Some(bytes) = self.builder.stack_size {
                thread = thread.stack_size(bytes);
            }
            match thread.spawn(move || work(&shared)) {
                Ok(_) => state.stats.threads += 1,
                Err(error) if state.stats.threads == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

/// The life of a thread.
fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some((job, is_more)) = state.queue.pop() {
            let waited = sys::clock::monotonic().saturating_duration_since(job.submitted);
            state.stats.queued -= 1;
            state.stats.started += 1;
            state.stats.total_wait += waited;
            state.stats.longest_wait = state.stats.longest_wait.max(waited);
            let notify = is_more && state.claim_idle();
            drop(state);
            if notify {
                shared.wake.notify_one();
            }
            // Jobs catch their own panics; one that escapes (from a drop) must not cost the pool a thread.
            let _ = catch_unwind(AssertUnwindSafe(|| job.runnable.run()));
            state = shared.lock();
            state.queue.ended(job.class);
        } else if state.closed {
            state.stats.threads -= 1;
            return;
        } else {
            state.stats.idle += 1;
            state = shared
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.stats.idle -= 1;
            state.notified = state.notified.saturating_sub(1);
        }
    }
}
