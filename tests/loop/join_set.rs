//! `JoinSet`: what joins when, with which number, and what becomes of panics, aborts and jobs. The
//! first tests of it are in `spawn.rs`.

use crate::util::panics::panic_of;
use crate::util::pool::with_threads;
use crate::util::trace::{ms, paused};
use std::cell::Cell;
use std::collections::HashMap;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use futures::FutureExt;
use phaseloop::task::{Id, JoinSet};
use phaseloop::time::sleep;
use phaseloop::{Builder, EventLoop, LoopHandle, phase};

async fn nap(milliseconds: u64) -> u64 {
    sleep(ms(milliseconds)).await;
    milliseconds
}

/// Runs on the paused clock.
fn run<T>(future: impl Future<Output = T>) -> T {
    let (event_loop, ..) = paused();
    event_loop.block_on(future)
}

#[test]
fn an_empty_set_joins_nothing_in_every_way() {
    run(async {
        let mut set = JoinSet::<u64>::new();
        assert!(set.try_join_next().is_none());
        assert!(set.try_join_next_with_id().is_none());
        assert!(set.join_next().await.is_none());
        assert!(set.join_next_with_id().await.is_none());
        set.shutdown().await;
        assert!(set.join_all().await.is_empty());
        let none: JoinSet<u64> = Vec::<std::future::Ready<u64>>::new().into_iter().collect();
        assert!(none.is_empty());
    });
    // An empty set needs no loop.
    assert!(JoinSet::<u64>::default().try_join_next().is_none());
    let none = std::iter::empty::<std::future::Ready<u64>>();
    assert!(JoinSet::from_iter(none).is_empty());
}

#[test]
fn try_join_next_returns_what_has_completed_in_order_and_never_waits() {
    run(async {
        let mut set: JoinSet<u64> = [30, 10, 20].map(nap).into_iter().collect();
        assert_eq!(set.len(), 3);
        assert!(set.try_join_next().is_none(), "nothing has run yet");
        sleep(ms(25)).await;
        assert_eq!(set.try_join_next().unwrap().unwrap(), 10);
        assert_eq!(set.try_join_next().unwrap().unwrap(), 20);
        assert!(set.try_join_next().is_none());
        assert_eq!(set.len(), 1);
        // What was tried in vain is still woken for.
        assert_eq!(set.join_next().await.unwrap().unwrap(), 30);
        assert!(set.try_join_next().is_none() && set.is_empty());
    });
}

#[test]
fn the_number_of_a_task_comes_with_its_output_and_with_its_error() {
    run(async {
        let mut set = JoinSet::new();
        let mut expected: HashMap<Id, &str> = HashMap::new();
        expected.insert(set.spawn(nap(2)).id(), "output");
        let panics = set.spawn(async { panic!("on purpose") });
        expected.insert(panics.id(), "panic");
        let aborted = set.spawn(nap(1000));
        expected.insert(aborted.id(), "abort");
        expected.insert(set.spawn_blocking(|| 7).id(), "output");
        aborted.abort();
        while let Some(joined) = set.join_next_with_id().await {
            let (id, what) = match joined {
                Ok((id, _)) => (id, "output"),
                Err(error) if error.is_panic() => (error.id(), "panic"),
                Err(error) => (error.id(), "abort"),
            };
            assert_eq!(expected.remove(&id), Some(what));
        }
        assert!(expected.is_empty() && panics.is_finished() && aborted.is_finished());

        let id = set.spawn(async { 7 }).id();
        phase::check().await;
        assert_eq!(set.try_join_next_with_id().unwrap().unwrap(), (id, 7));
    });
}

#[test]
fn join_all_returns_the_outputs_in_the_order_of_completion() {
    let set = |times: [u64; 4]| times.map(nap).into_iter().collect::<JoinSet<_>>();
    let outputs = run(async move { set([4, 1, 3, 2]).join_all().await });
    assert_eq!(outputs, [1, 2, 3, 4]);
}

#[test]
fn join_all_resumes_a_panic_and_aborts_what_is_left() {
    run(async {
        let held = Rc::new(());
        let mut set = JoinSet::new();
        let kept = held.clone();
        set.spawn(async move {
            pending::<()>().await;
            drop(kept);
        });
        set.spawn(async { std::panic::resume_unwind(Box::new(7_u8)) });
        let panic = AssertUnwindSafe(set.join_all()).catch_unwind().await;
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&7_u8));
        phase::check().await;
        assert_eq!(Rc::strong_count(&held), 1, "the other task was aborted");
        assert_eq!(LoopHandle::current().tasks().len(), 0);
    });
}

#[test]
fn join_all_panics_for_a_task_that_was_aborted() {
    let text = panic_of(|| {
        run(async {
            let mut set = JoinSet::new();
            set.spawn(pending::<()>()).abort();
            set.join_all().await
        })
    });
    assert_eq!(text, "the task was aborted before it returned");
}

#[test]
fn a_shutdown_waits_until_the_futures_are_dropped_and_ignores_panics() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }

    let event_loop = Builder::new()
        .start_paused(true)
        .unhandled_panic(phaseloop::UnhandledPanic::Ignore)
        .build()
        .unwrap();
    event_loop.block_on(async {
        let held = Rc::new(());
        let mut set = JoinSet::new();
        for _ in 0..3 {
            let kept = held.clone();
            set.spawn(async move {
                let _kept = kept;
                nap(1000).await
            });
        }
        set.spawn(async { panic!("on purpose") });
        set.spawn(async {
            let _panics = PanicsOnDrop;
            nap(1000).await
        });
        set.spawn(async { 7 });
        phase::check().await;
        set.shutdown().await;
        assert_eq!(Rc::strong_count(&held), 1);
        assert!(set.is_empty());
        // The set is usable again.
        set.spawn(async { 8 });
        assert_eq!(set.join_all().await, [8]);
    });
}

#[test]
fn a_set_without_a_loop_refuses_tasks_and_jobs() {
    let mut set = JoinSet::new();
    let text = panic_of(|| drop(set.spawn(async {})));
    assert!(
        text.starts_with("no event loop runs on this thread"),
        "{text}"
    );
    let text = panic_of(|| drop(set.spawn_blocking(|| ())));
    assert!(
        text.starts_with("no event loop runs on this thread"),
        "{text}"
    );
    assert!(set.is_empty());
    let collected = catch_unwind(|| JoinSet::from_iter([async {}]));
    assert!(collected.is_err());
}

#[test]
fn tasks_and_jobs_of_a_loop_that_is_gone_join_as_cancelled_with_their_numbers() {
    let event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let mut set = JoinSet::new();
    let before = set.spawn_on(pending(), &handle);
    drop(event_loop);
    let held = Rc::new(());
    let kept = held.clone();
    let task = set.spawn_on(
        async move {
            drop(kept);
            7
        },
        &handle,
    );
    let job = set.spawn_blocking_on(|| 8, &handle);
    assert_eq!(Rc::strong_count(&held), 1, "the future was dropped");
    assert!(
        [&before, &task, &job]
            .iter()
            .all(|abort| abort.is_finished())
    );
    for abort in [before, task, job] {
        let error = set.try_join_next_with_id().unwrap().unwrap_err();
        assert!(error.is_cancelled());
        assert_eq!(error.id(), abort.id());
        abort.abort();
    }
    assert!(set.is_empty());
}

#[test]
fn jobs_join_in_the_order_in_which_they_complete_among_the_tasks() {
    let (event_loop, _pool) = with_threads(2);
    event_loop.block_on(async {
        let mut set = JoinSet::new();
        let (first, first_may_end) = mpsc::channel::<()>();
        set.spawn_blocking(move || {
            first_may_end.recv().unwrap();
            "first"
        });
        set.spawn_blocking(|| "second");
        assert_eq!(set.join_next().await.unwrap().unwrap(), "second");
        set.spawn(async { "task" });
        assert_eq!(set.join_next().await.unwrap().unwrap(), "task");
        assert!(set.try_join_next().is_none(), "the first job runs");
        first.send(()).unwrap();
        assert_eq!(set.join_next().await.unwrap().unwrap(), "first");
        assert!(set.is_empty());
    });
}

#[test]
fn a_job_that_panics_or_was_aborted_joins_as_such() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let mut set = JoinSet::new();
        let (go, gate) = mpsc::channel::<()>();
        let busy = set.spawn_blocking(move || gate.recv().unwrap()).id();
        // No thread has taken it: the only one waits at the gate.
        let queued = set.spawn_blocking(|| unreachable!("it was aborted"));
        queued.abort();
        let error = set.join_next().await.unwrap().unwrap_err();
        assert!(error.is_cancelled() && error.id() == queued.id());
        go.send(()).unwrap();
        assert_eq!(set.join_next_with_id().await.unwrap().unwrap().0, busy);
        let panics = set.spawn_blocking(|| panic!("on purpose")).id();
        let error = set.join_next().await.unwrap().unwrap_err();
        assert_eq!(error.id(), panics);
        assert_eq!(error.into_panic().downcast_ref(), Some(&"on purpose"));
    });
}

#[test]
fn dropping_a_set_cancels_its_queued_jobs_and_a_shutdown_does_not_wait_for_running_ones() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let (go, gate) = mpsc::channel::<()>();
        let (started, is_started) = futures::channel::oneshot::channel();
        let mut set = JoinSet::new();
        set.spawn_blocking(move || {
            started.send(()).unwrap();
            let _ = gate.recv();
        });
        is_started.await.unwrap();
        set.shutdown().await;
        assert!(set.is_empty());
        set.spawn_blocking(|| unreachable!("the set was dropped"));
        drop(set);
        phase::check().await;
        drop(go);
    });
}

#[test]
fn a_job_that_a_set_detached_is_not_taken_for_one_in_its_place() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let (go, gate) = mpsc::channel::<()>();
        let mut set = JoinSet::new();
        set.spawn_blocking(move || gate.recv().unwrap());
        set.detach_all();
        set.spawn(pending());
        go.send(()).unwrap();
        phaseloop::spawn_blocking(|| ()).await.unwrap();
        assert!(set.try_join_next().is_none());
        assert_eq!(set.len(), 1);
    });
}

/// A job may be joined by any executor once its loop is gone.
#[test]
fn a_set_that_outlives_its_loop_joins_elsewhere() {
    let (event_loop, _pool) = with_threads(1);
    let handle = event_loop.handle();
    let mut set = JoinSet::new();
    set.spawn_blocking_on(|| 7, &handle);
    set.spawn_on(async { 8 }, &handle);
    let waiting = set.poll_join_next(&mut Context::from_waker(Waker::noop()));
    assert!(waiting.is_pending());
    drop(event_loop);
    let errors = tokio_test::block_on(async {
        let mut errors = 0;
        while let Some(joined) = set.join_next().await {
            errors += u32::from(joined.unwrap_err().is_cancelled());
        }
        errors
    });
    assert_eq!(errors, 2);
}

/// Tasks that end inside a join: one that the wake of the join polls, one that spawns the next.
#[test]
fn tasks_that_are_added_and_aborted_meanwhile_are_all_joined() {
    run(async {
        let mut set = JoinSet::new();
        let aborts = Rc::new(Cell::new(0));
        for round in 0..100_u64 {
            set.spawn(nap(round % 3));
            let abort = set.spawn(nap(50));
            let count = aborts.clone();
            set.spawn(async move {
                sleep(ms(round % 2)).await;
                abort.abort();
                count.set(count.get() + 1);
                round
            });
            while let Some(joined) = set.try_join_next() {
                assert!(joined.map_or_else(|error| error.is_cancelled(), |_| true));
            }
        }
        let (mut outputs, mut cancelled) = (0, 0);
        while let Some(joined) = set.join_next().await {
            match joined {
                Ok(_) => outputs += 1,
                Err(_) => cancelled += 1,
            }
        }
        assert_eq!((outputs, cancelled, aborts.get()), (200, 100, 100));
    });
}

#[test]
fn a_report_names_the_tasks_and_jobs_that_a_set_waits_for() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let (go, gate) = mpsc::channel::<()>();
        let mut set = JoinSet::new();
        let job = set.spawn_blocking(move || gate.recv().unwrap()).id();
        let task = set.spawn(pending()).id();
        let joiner = phaseloop::spawn(async move { set.join_next().await });
        phase::check().await;
        let report = LoopHandle::current().report().to_string();
        for id in [job, task] {
            assert!(report.contains(&format!("task {id} ")), "{report}");
        }
        go.send(()).unwrap();
        assert!(joiner.await.unwrap().unwrap().is_ok());
    });
}

#[test]
fn a_poll_that_is_pending_keeps_the_last_waker_only() {
    run(async {
        let mut set = JoinSet::from_iter([nap(1)]);
        let (first, first_count) = futures_test_waker();
        let (second, second_count) = futures_test_waker();
        for waker in [&first, &second] {
            let polled = set.poll_join_next(&mut Context::from_waker(waker));
            assert!(matches!(polled, Poll::Pending));
        }
        sleep(ms(2)).await;
        assert_eq!((first_count.get(), second_count.get()), (0, 1));
        assert_eq!(set.try_join_next().unwrap().unwrap(), 1);
    });
}

/// A waker that counts its wakes.
fn futures_test_waker() -> (Waker, Wakes) {
    let count = std::sync::Arc::new(Counting::default());
    (Waker::from(count.clone()), Wakes(count))
}

#[derive(Default)]
struct Counting(std::sync::atomic::AtomicU32);

struct Wakes(std::sync::Arc<Counting>);

impl Wakes {
    fn get(&self) -> u32 {
        self.0.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl std::task::Wake for Counting {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}
