//! Tasks: spawning, awaiting, aborting, names and places, and `JoinSet`.
//!
//! A task is first polled in the microtask lane, goes on without its handle, ends at once in the
//! lane when aborted, and is listed until its future is gone.

use crate::util::polls::poll_once;
use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use crate::util::wakers::on_clone;
use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::StreamExt;
use phaseloop::task::{self, JoinSet, yield_now};
use phaseloop::time::sleep;
use phaseloop::{JoinHandle, LoopHandle, block_on, queue_microtask, spawn};
use tokio_test::assert_pending;

/// Logs when it is dropped.
struct OnDrop(Trace, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.log(self.1);
    }
}

/// Never returns, and logs when it is dropped.
async fn forever(trace: Trace) {
    let _dropped = OnDrop(trace, "dropped");
    pending::<()>().await;
}

#[test]
fn a_task_is_first_polled_in_the_lane_not_in_the_call() {
    let (event_loop, _, trace) = paused();
    event_loop.block_on(async {
        queue_microtask(trace.call("before"));
        let log = trace.clone();
        let task = spawn(async move {
            log.log("task");
            7
        });
        queue_microtask(trace.call("after"));
        trace.log("spawned");
        assert_eq!(task.await.unwrap(), 7);
        trace.log("joined");
    });
    assert_eq!(trace.take(), "spawned before task after joined");
}

#[test]
fn a_task_goes_on_without_its_handle() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        sleep(ms(1)).await;
        log.log("done");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "done");
}

/// The future is dropped when the task returns, even if a handle is held.
#[test]
fn the_future_of_a_finished_task_is_gone() {
    let (mut event_loop, handle, trace) = paused();
    let dropped = OnDrop(trace.clone(), "dropped");
    let task = handle.spawn(async move {
        let _dropped = dropped;
        yield_now().await;
    });
    assert!(!task.is_finished());
    finish(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(trace.take(), "dropped");
    event_loop.block_on(task).unwrap();
}

#[test]
fn a_handle_can_be_polled_by_reference() {
    block_on(async {
        let mut task = spawn(async {
            sleep(ms(1)).await;
            "output"
        });
        assert_pending!(poll_once(&mut task).await);
        assert_eq!((&mut task).await.unwrap(), "output");
    });
}

// Abort.

#[test]
fn an_abort_takes_effect_in_the_lane() {
    let (mut event_loop, handle, trace) = paused();
    let task = handle.spawn(forever(trace.clone()));
    turn(&mut event_loop);
    let log = trace.clone();
    event_loop.block_on(async {
        task.abort();
        task.abort();
        log.log("aborted");
        assert!(!task.is_finished());
        let error = task.await.unwrap_err();
        assert!(error.is_cancelled() && !error.is_panic());
        assert_eq!(error.to_string(), "the task was aborted before it returned");
        assert!(error.try_into_panic().is_err());
    });
    assert_eq!(trace.take(), "aborted dropped");
}

#[test]
fn a_task_aborted_before_its_first_poll_is_never_polled() {
    let (mut event_loop, handle, trace) = paused();
    let dropped = OnDrop(trace.clone(), "dropped");
    let task = handle.spawn(async move {
        let _dropped = dropped;
        unreachable!()
    });
    task.abort();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "dropped");
    let joined: Result<(), _> = event_loop.block_on(task);
    assert!(joined.unwrap_err().is_cancelled());
}

#[test]
fn a_finished_task_keeps_its_output() {
    let (mut event_loop, handle, _) = paused();
    let task = handle.spawn(async { 7 });
    finish(&mut event_loop);
    task.abort();
    assert_eq!(event_loop.block_on(task).unwrap(), 7);
}

#[test]
fn a_task_may_abort_itself() {
    let (mut event_loop, handle, trace) = paused();
    let own: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let (me, log) = (own.clone(), trace.clone());
    let task = handle.spawn(async move {
        me.borrow().as_ref().unwrap().abort();
        log.log("goes-on");
        yield_now().await;
        log.log("not-here");
    });
    own.replace(Some(task));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "goes-on");
    let task = own.take().unwrap();
    assert!(event_loop.block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn an_abort_handle_aborts_its_own_task_only() {
    let (mut event_loop, handle, trace) = paused();
    let first = handle.spawn(async {});
    let abort = first.abort_handle();
    assert_eq!(abort.id(), first.id());
    finish(&mut event_loop);
    // Lives where the first one lived.
    let second = handle.spawn(forever(trace.clone()));
    assert_ne!(second.id(), first.id());
    abort.abort();
    turn(&mut event_loop);
    assert!(!second.is_finished());
    second.abort_handle().clone().abort();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "dropped");
}

/// The drop of a future is user code: here it aborts and wakes others.
#[test]
fn a_drop_may_abort_another_task() {
    let (mut event_loop, handle, trace) = paused();
    struct Chain(JoinHandle<()>);
    impl Drop for Chain {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let last = Chain(handle.spawn(forever(trace.clone())));
    let middle = Chain(handle.spawn(async move {
        let _last = last;
        pending::<()>().await;
    }));
    let first = handle.spawn(async move {
        let _middle = middle;
        pending::<()>().await;
    });
    turn(&mut event_loop);
    first.abort();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "dropped");
    assert_eq!(handle.tasks().len(), 0);
}

// Names and places.

#[test]
fn tasks_are_listed_with_number_name_and_line_oldest_first() {
    let (mut event_loop, handle, _) = paused();
    let first = handle.spawn(pending::<()>());
    let gone = handle.spawn(async {});
    turn(&mut event_loop);
    let builder = task::Builder::new().name("reader");
    let (line, named) = (line!(), builder.spawn_on(pending::<()>(), &handle));
    let tasks = handle.tasks();
    assert_eq!(tasks.len(), 2, "the one that is over is not listed");
    assert_eq!(tasks[0].id(), first.id());
    assert_eq!(tasks[1].id(), named.id());
    assert!(first.id() < gone.id() && gone.id() < named.id());
    assert_eq!((tasks[0].name(), tasks[1].name()), (None, Some("reader")));
    assert_eq!(
        (tasks[1].spawned_at().file(), tasks[1].spawned_at().line()),
        (file!(), line)
    );
    let text = format!("task {} \"reader\" ({}:{line}:", tasks[1].id(), file!());
    assert!(tasks[1].to_string().starts_with(&text), "{}", tasks[1]);
}

/// Each way to spawn names the line of its caller.
#[test]
fn every_way_to_spawn_knows_the_line() {
    let (event_loop, handle, _) = paused();
    let place = |info: task::Info| (info.spawned_at().file(), info.spawned_at().line());
    let here = || async { task::current().unwrap() };
    event_loop.block_on(async {
        let (line, task) = (line!(), spawn(here()));
        assert_eq!(place(task.await.unwrap()), (file!(), line));
        let (line, task) = (line!(), handle.spawn(here()));
        assert_eq!(place(task.await.unwrap()), (file!(), line));
        let (line, task) = (line!(), task::Builder::new().spawn(here()));
        assert_eq!(place(task.await.unwrap()), (file!(), line));
        let mut set = JoinSet::new();
        let (line, _) = (line!(), set.spawn(here()));
        assert_eq!(
            place(set.join_next().await.unwrap().unwrap()),
            (file!(), line)
        );
        let (line, _) = (line!(), set.spawn_on(here(), &handle));
        assert_eq!(
            place(set.join_next().await.unwrap().unwrap()),
            (file!(), line)
        );
    });
}

#[test]
fn the_current_task_is_known_while_it_is_polled() {
    let (event_loop, handle, trace) = paused();
    let log = trace.clone();
    let task = handle.spawn(async move {
        let id = task::current().unwrap().id();
        queue_microtask(move || log.log(task::current().is_some()));
        yield_now().await;
        assert_eq!(task::current().unwrap().id(), id);
        id
    });
    let id = task.id();
    event_loop.block_on(async {
        assert!(task::current().is_none(), "the main future is no task");
        assert_eq!(task.await.unwrap(), id);
    });
    assert_eq!(trace.take(), "false");
}

// JoinSet.

/// A task that sleeps and returns how long.
async fn nap(milliseconds: u64) -> u64 {
    sleep(ms(milliseconds)).await;
    milliseconds
}

/// Runs `main` on a paused loop.
fn run(main: impl Future<Output = ()>) {
    paused().0.block_on(main);
}

#[test]
fn a_set_yields_its_tasks_in_the_order_in_which_they_end() {
    run(async {
        let mut set = JoinSet::new();
        assert!(set.join_next().await.is_none(), "it is empty");
        for milliseconds in [30, 10, 20] {
            set.spawn(nap(milliseconds));
        }
        assert_eq!(set.len(), 3);
        assert_eq!(set.join_next().await.unwrap().unwrap(), 10);
        set.spawn(nap(1));
        let rest: Vec<_> = set.by_ref().map(Result::unwrap).collect().await;
        assert_eq!(rest, [1, 20, 30]);
        assert!(set.is_empty() && set.join_next().await.is_none());
    });
}

#[test]
fn ended_tasks_wait_in_the_set() {
    run(async {
        let mut set = JoinSet::new();
        for milliseconds in [2, 1, 3] {
            set.spawn(nap(milliseconds));
        }
        sleep(ms(10)).await;
        assert_eq!(set.len(), 3);
        let all: Vec<_> = set.map(Result::unwrap).collect().await;
        assert_eq!(all, [1, 2, 3]);
    });
}

#[test]
fn a_join_that_is_given_up_loses_nothing() {
    run(async {
        let mut set = JoinSet::new();
        set.spawn(nap(10));
        let given_up = phaseloop::time::timeout(ms(5), set.join_next()).await;
        assert!(given_up.is_err());
        assert_eq!(set.len(), 1);
        assert_eq!(set.join_next().await.unwrap().unwrap(), 10);
    });
}

#[test]
fn a_set_reports_panics_and_aborts() {
    run(async {
        let mut set = JoinSet::new();
        set.spawn(async { panic!("in the set") });
        let error = set.join_next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the task panicked: in the set");
        let abort = set.spawn(pending::<()>());
        set.spawn(async {});
        abort.abort();
        assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
        set.join_next().await.unwrap().unwrap();
        set.spawn(pending());
        set.spawn(pending());
        set.abort_all();
        assert_eq!(set.len(), 2);
        while let Some(output) = set.join_next().await {
            assert!(output.unwrap_err().is_cancelled());
        }
    });
}

#[test]
fn dropping_a_set_aborts_its_tasks_and_detaching_does_not() {
    let (mut event_loop, handle, trace) = paused();
    let mut set = JoinSet::new();
    set.spawn_on(forever(trace.clone()), &handle);
    turn(&mut event_loop);
    drop(set);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "dropped");

    let (mut set, log) = (JoinSet::new(), trace.clone());
    set.spawn_on(
        async move {
            sleep(ZERO).await;
            log.log("went-on");
            0
        },
        &handle,
    );
    set.detach_all();
    assert!(set.is_empty());
    // What the detached task reports is not taken for one of those that live in its place now.
    set.spawn_on(async { nap(5).await }, &handle);
    set.spawn_on(async { nap(2).await }, &handle);
    event_loop.block_on(async {
        assert_eq!(set.join_next().await.unwrap().unwrap(), 2);
        assert_eq!(set.join_next().await.unwrap().unwrap(), 5);
        assert!(set.join_next().await.is_none());
    });
    assert_eq!(trace.take(), "went-on");
}

#[test]
fn many_tasks_of_a_set_all_end() {
    run(async {
        let mut set = JoinSet::new();
        for n in 0..1000_u64 {
            set.spawn(async move {
                for _ in 0..n % 7 {
                    yield_now().await;
                }
                sleep(ms(n % 13)).await;
                n
            });
        }
        let mut all: Vec<_> = set.map(Result::unwrap).collect().await;
        all.sort_unstable();
        assert!(all.into_iter().eq(0..1000));
        assert_eq!(LoopHandle::current().tasks().len(), 0);
    });
}

/// The clone of a waker may be user code: here it drops the loop, which drops the tasks of the set.
#[test]
fn a_task_that_ends_while_the_set_notes_its_waker_is_seen() {
    let (event_loop, handle, _) = paused();
    let mut set = JoinSet::new();
    set.spawn_on(pending::<()>(), &handle);
    let waker = on_clone(move || drop(event_loop));
    let joined = set.poll_join_next(&mut Context::from_waker(&waker));
    let Poll::Ready(Some(Err(error))) = joined else {
        panic!("it has ended: {joined:?}");
    };
    assert!(error.is_cancelled());
}

#[test]
fn the_error_of_a_task_goes_where_errors_have_to_be_sync() {
    fn is_error<E: std::error::Error + Send + Sync + 'static>(error: E) -> String {
        error.to_string()
    }
    async fn fails() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        spawn(async { panic!("on purpose") }).await?;
        Ok(())
    }
    block_on(async {
        assert_eq!(
            fails().await.unwrap_err().to_string(),
            "the task panicked: on purpose"
        );
        // A payload that is `Send` and not `Sync`.
        let payload = std::cell::Cell::new(7);
        let task = spawn(async { std::panic::resume_unwind(Box::new(payload)) });
        let error = task.await.map(|(): ()| ()).unwrap_err();
        assert_eq!(format!("{error:?}"), error.to_string());
        let payload = error.try_into_panic().unwrap();
        assert_eq!(
            payload
                .downcast_ref::<std::cell::Cell<i32>>()
                .unwrap()
                .get(),
            7
        );
        let task = spawn(pending::<()>());
        task.abort();
        assert_eq!(
            is_error(task.await.unwrap_err()),
            "the task was aborted before it returned"
        );
    });
}

#[test]
fn a_task_that_takes_the_place_of_a_named_one_has_no_name() {
    let own_name = async || {
        let info = task::current().unwrap();
        info.name().map(str::to_owned)
    };
    block_on(async {
        let named = || task::Builder::new().name("first");
        assert_eq!(
            named().spawn(own_name()).await.unwrap().as_deref(),
            Some("first")
        );
        assert_eq!(spawn(own_name()).await.unwrap(), None);
        // One that is aborted, and one that panics.
        let aborted = named().spawn(pending::<()>());
        aborted.abort();
        assert!(aborted.await.unwrap_err().is_cancelled());
        assert_eq!(spawn(own_name()).await.unwrap(), None);
        let panics = named().spawn(async { panic!("on purpose") });
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(spawn(own_name()).await.unwrap(), None);
        // Another one that is there meanwhile keeps its name.
        let second = task::Builder::new().name("second");
        let second = second.spawn(async move {
            named().spawn(async {}).await.unwrap();
            own_name().await
        });
        assert_eq!(second.await.unwrap().as_deref(), Some("second"));
    });
}
