//! Models of every interleaving of a loop, its jobs and the threads of the pool, up to a bound on
//! preemptions.
//!
//! `RUSTFLAGS="--cfg phaseloop_loom" LOOM_MAX_PREEMPTIONS=3 cargo test --release --lib loom`
//!
//! The pool, its queue, the jobs and the inbox are the shipped ones; only the kernel's wait and the
//! loop, as a job sees it, are models: this file takes the place of `home.rs`. A lost wake shows as
//! a deadlock, and so does a thread that does not end with its pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Count, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread::Result as Output;

use loom::sync::{Condvar, Mutex};

use super::job::Job;
use crate::event_loop::ledger::jobs::{After, JobKey};
use crate::executor::inbox::Inbox;
use crate::executor::join::Awaited;
use crate::pool::{Class, Pool, PoolBuilder};
use crate::raw::task::Payload;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::Notify;
use crate::task_info::Id;

/// A model of the kernel's wait: a flag that a notification sets and the end of a wait clears.
#[derive(Default)]
struct Kernel {
    ready: Mutex<bool>,
    changed: Condvar,
}

impl Notify for Arc<Kernel> {
    fn notify(&self) {
        *self.ready.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

impl Kernel {
    fn wait(&self) {
        let mut ready = self.ready.lock().unwrap();
        while !*ready {
            ready = self.changed.wait(ready).unwrap();
        }
        *ready = false;
    }
}

/// A loop, reduced to its inbox, the only part that jobs use.
#[derive(Clone)]
pub(super) struct Home {
    inbox: Arc<Inbox<Arc<dyn crate::pool::Job>, Arc<Kernel>>>,
    kernel: Arc<Kernel>,
}

/// What jobs call.
impl Home {
    /// Jobs of a loop do not occur here.
    pub(super) fn new(_: &LoopHandle, _: JobKey, _: Option<(Id, Site)>) -> Self {
        unreachable!("a model makes its own")
    }

    pub(super) fn key(&self) -> JobKey {
        unreachable!("a model counts no jobs")
    }

    pub(super) fn send(&self, ended: Arc<dyn crate::pool::Job>) -> bool {
        self.inbox.push(ended).is_ok()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.inbox.is_closed()
    }

    pub(super) fn is_owner_thread(&self) -> bool {
        true
    }

    pub(super) fn is_spawned(&self) -> bool {
        false
    }

    pub(super) fn site(&self) -> Option<Site> {
        None
    }

    pub(super) fn id(&self) -> Id {
        unreachable!("a model has no tasks")
    }

    pub(super) fn end(&self) -> Option<After> {
        None
    }

    pub(super) fn schedule(&self, call: impl FnOnce() + Send + 'static) {
        call();
    }

    pub(super) fn unhandled(&self, _: Payload) {}
}

impl Home {
    fn model() -> Self {
        let kernel = Arc::<Kernel>::default();
        let inbox = Inbox::new(kernel.clone());
        inbox.resume();
        Self {
            inbox: Arc::new(inbox),
            kernel,
        }
    }

    fn submit<T: Send + 'static>(
        &self,
        pool: &Pool,
        class: Class,
        closure: impl FnOnce() -> T + Send + 'static,
    ) -> Arc<dyn Awaited<T>> {
        let job = Job::new(self.clone(), closure);
        pool.submit(class, job.clone()).unwrap();
        job
    }

    /// Runs one poll phase.
    fn turn(&self) {
        if self.inbox.park() {
            self.kernel.wait();
        }
        let mut arrivals = Vec::new();
        if self.inbox.unpark() {
            self.inbox.take(&mut arrivals);
        }
        for arrival in arrivals {
            arrival.arrive();
        }
    }

    fn wait_for<T>(&self, job: &Arc<dyn Awaited<T>>) -> Output<T> {
        loop {
            if let Poll::Ready(Some(output)) = job.poll(&Context::from_waker(Waker::noop())) {
                return output;
            }
            self.turn();
        }
    }
}

/// Creates a pool whose threads loom runs.
fn pool(threads: usize) -> Pool {
    PoolBuilder::new().threads(threads).build()
}

/// Counts drops on any thread.
struct Guard(Arc<Count>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn guard() -> (Guard, Arc<Count>) {
    let dropped = Arc::new(Count::new(0));
    (Guard(dropped.clone()), dropped)
}

/// Checks a model of three jobs with one preemption less than the others: with all it would take a
/// minute.
fn check_three(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// With more jobs than threads, each job runs once, its output arrives, and no thread sleeps while
/// a job waits.
#[test]
fn loom_every_job_runs_and_comes_home() {
    use Class::{Cpu, Dns};
    // Lookups may use one of the two threads.
    for (threads, classes) in [
        (1, [Cpu, Cpu, Cpu]),
        (2, [Cpu, Cpu, Cpu]),
        (2, [Dns, Dns, Cpu]),
    ] {
        check_three(move || {
            let (pool, home) = (pool(threads), Home::model());
            let jobs: Vec<_> = (0..)
                .zip(classes)
                .map(|(number, class)| home.submit(&pool, class, move || number))
                .collect();
            for (number, job) in (0..).zip(&jobs) {
                assert_eq!(home.wait_for(job).unwrap(), number);
            }
        });
    }
}

/// Two jobs wait for each other: the second thread is woken although the first is already waking up
/// for the first job.
#[test]
fn loom_a_second_thread_is_woken_for_the_second_job() {
    check_three(|| {
        let (pool, home) = (pool(2), Home::model());
        // Both threads sleep by now, or are about to.
        home.wait_for(&home.submit(&pool, Class::Cpu, || ()))
            .unwrap();
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        let jobs = [(); 2].map(|()| {
            let met = met.clone();
            home.submit(&pool, Class::Cpu, move || {
                let mut arrived = met.0.lock().unwrap();
                *arrived += 1;
                met.1.notify_all();
                while *arrived < 2 {
                    arrived = met.1.wait(arrived).unwrap();
                }
            })
        });
        for job in &jobs {
            home.wait_for(job).unwrap();
        }
    });
}

/// A job is cancelled while a thread takes it. Whether or not the closure runs, its captures are
/// dropped once, at the latest with the thread, and the loop receives at most one completion.
#[test]
fn loom_a_cancel_races_with_the_thread() {
    loom::model(|| {
        let (pool, home) = (pool(1), Home::model());
        let (guard, dropped) = guard();
        let ran = Arc::new(Count::new(0));
        let job = {
            let ran = ran.clone();
            home.submit(&pool, Class::Cpu, move || {
                ran.fetch_add(1, Relaxed);
                guard
            })
        };
        job.cancel();
        let was_dropped = dropped.load(Relaxed) == 1;
        assert!(
            was_dropped || ran.load(Relaxed) == 1,
            "neither run nor dropped"
        );
        drop(job);
        // There is one thread, so the previous job is over.
        home.wait_for(&home.submit(&pool, Class::Cpu, || ()))
            .unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// The loop is dropped while jobs complete: their outputs are dropped with it, sent or not.
#[test]
fn loom_a_loop_goes_while_a_job_ends() {
    loom::model(|| {
        let (pool, home) = (pool(1), Home::model());
        let (guard, dropped) = guard();
        let job = home.submit(&pool, Class::Cpu, move || guard);
        let pending = job.poll(&Context::from_waker(Waker::noop())).is_pending();
        assert!(pending, "nothing arrives but in a turn");
        // A dropped loop drops its tasks first, then its messages.
        job.cancel();
        drop((job, home.inbox.close()));
        let other = Home::model();
        other
            .wait_for(&other.submit(&pool, Class::Cpu, || ()))
            .unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A pool is dropped with a job in its queue: the job runs before the threads end.
#[test]
fn loom_a_pool_goes_when_its_queue_is_empty() {
    loom::model(|| {
        let (pool, home) = (pool(2), Home::model());
        let job = home.submit(&pool, Class::Cpu, || 7);
        drop(pool);
        assert_eq!(home.wait_for(&job).unwrap(), 7);
    });
}
