//! The threads of the pool.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError};

use super::queue::{Queue, Queued};
use super::{Class, Job, PoolBuilder, PoolMetrics, PoolStats};
use crate::histogram::Histogram;
use crate::raw::sync::{Condvar, Mutex, MutexGuard, thread};
use crate::raw::unwind::ignore_panic;
use crate::sys::clock::Counter;
use crate::sys::fork;

/// State shared between the pool's users and its threads.
///
/// The lock is held for a few instructions only. A sleeping thread is notified after its release,
/// or it would wake up only to wait for the lock.
pub(super) struct Workers {
    builder: PoolBuilder,
    shared: Arc<Shared>,
    /// The generation of the process that the threads belong to.
    generation: u32,
    /// The pool of a forked child, which does not inherit the threads.
    successor: OnceLock<Arc<Self>>,
}

struct Shared {
    clock: Counter,
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    queue: Queue,
    /// The statistics, except the times.
    stats: PoolStats,
    /// Threads that run a job.
    busy: usize,
    done: u64,
    /// How long jobs waited in the queue, and how long they ran.
    waited: Histogram,
    ran: Histogram,
    /// Whether a notified thread has not run yet.
    is_waking: bool,
    /// Whether the pool was dropped: threads end when the queue is empty.
    closed: bool,
}

impl State {
    /// Whether to notify a thread: a job can be taken, a thread sleeps, and no notified thread is
    /// on its way.
    ///
    /// One notification at a time is enough, because each thread checks this again before it starts
    /// a job. A burst of short jobs costs a notification or two, while long jobs soon wake all
    /// threads.
    fn claim_sleeper(&mut self) -> bool {
        let claims = !self.is_waking && self.stats.idle > 0 && !self.queue.is_empty();
        self.is_waking |= claims;
        claims
    }

    /// Takes the next job, at the time `now`.
    fn pop(&mut self, now: u64) -> Option<Queued> {
        let job = self.queue.pop()?;
        // Another thread may have submitted the job after `now` was read.
        let waited = now.saturating_sub(job.submitted);
        self.stats.queued -= 1;
        self.stats.started += 1;
        self.busy += 1;
        self.waited.record_nanos(waited);
        Some(job)
    }

    /// Notes the end of a job of `class` that was taken at `start`.
    fn ended(&mut self, class: Class, start: u64, end: u64) {
        self.queue.ended(class);
        self.busy -= 1;
        self.done += 1;
        self.ran.record_nanos(end.saturating_sub(start));
    }

    fn stats(&self) -> PoolStats {
        PoolStats {
            total_wait: self.waited.sum(),
            longest_wait: self.waited.max(),
            ..self.stats
        }
    }

    fn metrics(&self) -> PoolMetrics {
        PoolMetrics {
            threads: self.stats.threads,
            busy: self.busy,
            queued: self.stats.queued,
            done: self.done,
            waited: self.waited.clone(),
            ran: self.ran.clone(),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    pub(super) fn new(builder: PoolBuilder) -> Arc<Self> {
        let queue = Queue::new(&builder);
        fork::count_forks();
        Arc::new(Self {
            builder,
            generation: fork::GENERATION.load(Ordering::Relaxed),
            successor: OnceLock::new(),
            shared: Arc::new(Shared {
                clock: Counter::new(),
                state: Mutex::new(State {
                    queue,
                    stats: PoolStats::default(),
                    busy: 0,
                    done: 0,
                    waited: Histogram::new(),
                    ran: Histogram::new(),
                    is_waking: false,
                    closed: false,
                }),
                wake: Condvar::new(),
            }),
        })
    }

    /// The pool in this process.
    pub(super) fn here(&self) -> &Self {
        if self.generation == fork::GENERATION.load(Ordering::Relaxed) {
            return self;
        }
        let successor = self
            .successor
            .get_or_init(|| Self::new(self.builder.clone()));
        successor.here()
    }

    /// Queues a job.
    ///
    /// # Errors
    ///
    /// The OS error of starting a thread, if there is no thread.
    pub(super) fn submit(&self, class: Class, job: Arc<dyn Job>) -> io::Result<()> {
        let queued = Queued {
            job,
            class,
            submitted: self.shared.clock.nanoseconds(),
        };
        let mut state = self.shared.lock();
        #[cfg(feature = "test-util")]
        if self.builder.is_manual {
            state.queue.push(queued);
            return Ok(());
        }
        self.start_threads(&mut state)?;
        state.queue.push(queued);
        state.stats.queued += 1;
        let notify = state.claim_sleeper();
        drop(state);
        if notify {
            self.shared.wake.notify_one();
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.here().shared.lock().stats()
    }

    /// Returns a pool of the same size and limits without threads; see [`take`](Self::take).
    #[cfg(feature = "test-util")]
    pub(super) fn manual_twin(&self) -> Arc<Self> {
        Self::new(PoolBuilder {
            is_manual: true,
            ..self.builder.clone()
        })
    }

    /// Takes the next job of a pool without threads, as one of its threads would.
    #[cfg(feature = "test-util")]
    pub(super) fn take(&self) -> Option<(Class, Arc<dyn Job>)> {
        let job = self.shared.lock().queue.pop()?;
        Some((job.class, job.job))
    }

    /// Records that a taken job has finished.
    #[cfg(feature = "test-util")]
    pub(super) fn ended(&self, class: Class) {
        self.shared.lock().queue.ended(class);
    }

    /// Returns the number of threads that the pool has, or would have.
    #[cfg(feature = "test-util")]
    pub(super) fn size(&self) -> usize {
        self.builder.threads
    }

    pub(super) fn metrics(&self) -> PoolMetrics {
        self.here().shared.lock().metrics()
    }

    /// Starts all threads with the first job. Later jobs retry threads that could not be started.
    fn start_threads(&self, state: &mut State) -> io::Result<()> {
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
        if self.generation != fork::GENERATION.load(Ordering::Relaxed) {
            // No thread is left to notify, and one may have held the lock.
            return;
        }
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }
}

/// The main function of a thread.
fn work(shared: &Shared) {
    // The clock is read before the lock is taken, which threads wait for.
    let mut now = shared.clock.nanoseconds();
    let mut state = shared.lock();
    loop {
        if let Some(Queued { job, class, .. }) = state.pop(now) {
            let notify = state.claim_sleeper();
            drop(state);
            if notify {
                shared.wake.notify_one();
            }
            // Jobs catch their own panics. A panic that escapes, from a drop, must not cost the
            // pool a thread.
            ignore_panic(|| job.run());
            let start = now;
            now = shared.clock.nanoseconds();
            state = shared.lock();
            state.ended(class, start, now);
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
            state.is_waking = false;
            now = shared.clock.nanoseconds();
        }
    }
}
