//! The handle of a pool job, which stands for the job itself: it counts as a task in every list,
//! though no task is polled for it.

use crate::util::polls::poll_once;
use crate::util::trace::{Trace, finish, turn};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};

use phaseloop::observe::{Activity, Body, Observer};
use phaseloop::pool::PoolBuilder;
use phaseloop::{
    Builder, EventLoop, JoinHandle, LoopHandle, UnhandledPanic, block_on, next_tick, phase,
    queue_microtask, spawn, spawn_blocking,
};
use tokio_test::assert_pending;

/// A loop whose pool has one thread.
fn with_one_thread() -> (EventLoop, Trace) {
    let pool = PoolBuilder::new().threads(1).build();
    let event_loop = Builder::new().pool(pool).build().unwrap();
    let trace = Trace::new(&event_loop.handle());
    (event_loop, trace)
}

/// A job that runs until the sender is dropped.
#[track_caller]
fn held() -> (Sender<()>, JoinHandle<()>) {
    let (open, opened) = channel::<()>();
    let job = spawn_blocking(move || opened.recv().unwrap_or_default());
    (open, job)
}

/// Returns once the thread of the pool has done all earlier jobs.
fn flush() {
    let (done, is_done) = channel();
    spawn_blocking(move || done.send(()).unwrap()).detach();
    is_done.recv().unwrap();
}

fn is_ready<T>(handle: &mut JoinHandle<T>) -> bool {
    tokio_test::task::spawn(handle).poll().is_ready()
}

#[test]
fn a_job_is_awaited_without_a_task_in_between() {
    struct Polls(Rc<Cell<u32>>);
    impl Observer for Polls {
        fn begin(&self, activity: &Activity<'_>) {
            if let Body::Poll(_) = activity.body() {
                self.0.set(self.0.get() + 1);
            }
        }
    }
    let polls = Rc::new(Cell::new(0));
    let event_loop = Builder::new().observer(Polls(polls.clone()));
    let mut event_loop = event_loop.build().unwrap();
    let task = event_loop.handle().spawn(async {
        spawn_blocking(|| ()).await.unwrap();
    });
    finish(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(polls.get(), 2, "one that submits, one that has the output");
}

#[test]
fn a_job_is_listed_with_the_tasks_and_in_the_report() {
    let (event_loop, _) = with_one_thread();
    event_loop.block_on(async {
        let handle = LoopHandle::current();
        let first = spawn(std::future::pending::<()>());
        let line = line!() + 1;
        let (open, mut job) = held();
        let last = spawn(std::future::pending::<()>());
        let ids = handle
            .tasks()
            .iter()
            .map(phaseloop::task::Info::id)
            .collect::<Vec<_>>();
        assert_eq!(ids, [first.id(), job.id(), last.id()]);
        let listed = handle.tasks().swap_remove(1);
        assert_eq!((listed.name(), listed.spawned_at().line()), (None, line));

        let id = job.id();
        assert_pending!(poll_once(&mut job).await);
        let report = handle.report().to_string();
        for part in [
            &format!("class Cpu, wakes task {id}"),
            &format!(
                "task {id} ({}): waits for pool job spawn_blocking",
                listed.spawned_at()
            ),
        ] {
            assert!(report.contains(part), "{part}: {report}");
        }
        let awaiter = spawn(async move { (job.await, job_is_over(id)).1 });
        phase::check().await;
        let report = handle.report().to_string();
        assert!(report.contains(&format!("waits for task {id}")), "{report}");
        drop(open);
        awaiter.await.unwrap();
        first.abort();
        last.abort();
    });
}

fn job_is_over(id: phaseloop::task::Id) {
    let tasks = LoopHandle::current().tasks();
    assert!(tasks.iter().all(|task| task.id() != id));
}

#[test]
fn a_handle_keeps_its_number_and_the_end_is_final() {
    let (event_loop, _) = with_one_thread();
    event_loop.block_on(async {
        let mut job = spawn_blocking(|| 7);
        let (id, abort) = (job.id(), job.abort_handle());
        assert!(!job.is_finished());
        assert_eq!((&mut job).await.unwrap(), 7);
        assert_eq!((job.id(), job.is_finished()), (id, true));
        assert_eq!(abort.id(), id);
        // Neither has an effect any more.
        abort.abort();
        job.abort();
        assert_eq!(job.abort_handle().id(), abort.id());
        assert!(
            job.await.unwrap_err().is_cancelled(),
            "the output was taken"
        );
    });
}

#[test]
fn an_abort_after_the_end_has_arrived_loses_nothing() {
    let (mut event_loop, _) = with_one_thread();
    let mut job = event_loop.enter(|| spawn_blocking(|| 7));
    finish(&mut event_loop);
    assert!(job.is_finished());
    job.abort();
    finish(&mut event_loop);
    let output = event_loop.block_on(&mut job);
    assert_eq!(output.unwrap(), 7);
}

/// The completion lies in the inbox, and so does the abort, since the loop does not run.
#[test]
fn an_abort_before_the_end_arrives_wins() {
    let (mut event_loop, _) = with_one_thread();
    let mut job = event_loop.enter(|| {
        let job = spawn_blocking(|| 7);
        flush();
        job
    });
    job.abort();
    assert!(
        !is_ready(&mut job) && !job.is_finished(),
        "not inside the call"
    );
    finish(&mut event_loop);
    assert!(job.is_finished());
    assert!(event_loop.block_on(job).unwrap_err().is_cancelled());
}

#[test]
fn the_panic_of_a_closure_that_an_abort_drops_is_the_error_of_its_job() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("a bomb"));
        }
    }
    fn bomb() -> JoinHandle<()> {
        let bomb = Bomb;
        spawn_blocking(move || drop(bomb))
    }
    let pool = PoolBuilder::new().threads(1).build();
    let mut event_loop = Builder::new()
        .pool(pool)
        .unhandled_panic(UnhandledPanic::Unwind)
        .build()
        .unwrap();
    let error = event_loop.block_on(async {
        let (open, first) = held();
        let job = bomb();
        job.abort();
        let error = job.await.unwrap_err();
        drop(open);
        first.await.unwrap();
        error
    });
    assert_eq!(error.into_panic().downcast_ref(), Some(&"a bomb"));
    finish(&mut event_loop);

    // Without a handle it meets the policy.
    let (open, _first) = event_loop.enter(held);
    event_loop.enter(|| {
        let job = bomb();
        job.abort();
        drop(job);
    });
    let unwound = catch_unwind(AssertUnwindSafe(|| turn(&mut event_loop)));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"a bomb"));
    drop(open);
    finish(&mut event_loop);

    // The loop is dropped before the job was taken: the thread has begun another one.
    let (open, opened) = channel::<()>();
    let (begin, begun) = channel();
    let _first = event_loop.enter(|| {
        spawn_blocking(move || {
            begin.send(()).unwrap();
            opened.recv().unwrap_or_default();
        })
    });
    begun.recv().unwrap();
    let job = event_loop.enter(bomb);
    drop(event_loop);
    drop(open);
    assert!(block_on(job).unwrap_err().is_panic());
}

#[test]
fn the_panic_of_a_job_without_a_handle_meets_the_policy() {
    let build = || {
        let pool = PoolBuilder::new().threads(1).build();
        let event_loop = Builder::new().pool(pool);
        event_loop
            .unhandled_panic(UnhandledPanic::Unwind)
            .build()
            .unwrap()
    };
    fn fails() -> JoinHandle<()> {
        spawn_blocking(|| std::panic::resume_unwind(Box::new("a job")))
    }
    // The handle is dropped before the end, and after it.
    for drop_early in [true, false] {
        let mut event_loop = build();
        let mut job = Some(event_loop.enter(fails));
        if drop_early {
            job = None;
        }
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            finish(&mut event_loop);
            event_loop.enter(|| drop(job));
            finish(&mut event_loop);
        }));
        let payload = unwound.unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"a job"), "{drop_early}");
    }
    // A panic that the handle returns is none of the policy's.
    let mut event_loop = build();
    assert!(event_loop.block_on(async { fails().await.unwrap_err().is_panic() }));
    finish(&mut event_loop);
}

/// Queues a tick and a microtask when it is dropped: within a callback the tick would come first.
#[test]
fn an_output_that_is_not_awaited_is_dropped_in_the_microtask_lane() {
    thread_local! {
        static TRACE: Cell<Option<Trace>> = const { Cell::new(None) };
    }
    struct Output;
    impl Drop for Output {
        fn drop(&mut self) {
            let trace = TRACE.take().expect("it is dropped on the owner thread");
            next_tick(trace.call("tick"));
            queue_microtask(trace.call("microtask"));
        }
    }
    let (mut event_loop, trace) = with_one_thread();
    TRACE.set(Some(trace.clone()));
    event_loop.enter(|| {
        spawn_blocking(|| Output).detach();
        flush();
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "microtask tick");
}

#[test]
fn a_job_of_a_dropped_loop_is_cancelled_and_its_awaiter_notified() {
    for has_ended in [false, true] {
        let (event_loop, _) = with_one_thread();
        let (open, job) = event_loop.enter(held);
        let ended = event_loop.enter(|| spawn_blocking(|| 7));
        let mut open = Some(open);
        if has_ended {
            open = None;
            event_loop.enter(flush);
        }
        block_on(async {
            let awaiter = spawn(async move { (job.await, ended.await) });
            phase::check().await;
            assert!(!awaiter.is_finished());
            drop(event_loop);
            let (job, ended) = awaiter.await.unwrap();
            assert!(job.unwrap_err().is_cancelled() && ended.unwrap_err().is_cancelled());
        });
        drop(open);
    }
}
