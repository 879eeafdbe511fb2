//! `AbortHandle` on every thread, and what a `JoinError` knows.

use crate::util::panics::panic_of;
use crate::util::pool::with_threads;
use crate::util::trace::paused;
use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use phaseloop::task::{AbortHandle, JoinError, JoinHandle, scope, yield_now};
use phaseloop::{EventLoop, RunMode, block_on, phase, spawn, spawn_blocking};

fn goes_everywhere<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static>() {}

#[test]
fn handles_and_errors_may_go_to_other_threads() {
    goes_everywhere::<AbortHandle>();
    goes_everywhere::<JoinError>();
}

/// Calls `f` on another thread, and waits for it there.
fn elsewhere<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

#[test]
fn another_thread_aborts_a_task_that_waits_and_the_loop_wakes_for_it() {
    block_on(async {
        let task = spawn(pending::<()>());
        let abort = task.abort_handle();
        // The loop sleeps when the abort comes, or has not begun to.
        let thread = thread::spawn(move || {
            assert!(!abort.is_finished());
            abort.abort();
            abort
        });
        let error = task.await.unwrap_err();
        let abort = thread.join().unwrap();
        assert!(error.is_cancelled() && abort.is_finished());
        assert_eq!(error.id(), abort.id());
        assert!(elsewhere(|| abort.is_finished()));
    });
}

#[test]
fn an_abort_from_another_thread_arrives_in_the_poll_phase_not_before() {
    let (mut event_loop, handle, _) = paused();
    let polls = Rc::new(Cell::new(0));
    let count = polls.clone();
    let task = handle.spawn(async move {
        loop {
            count.set(count.get() + 1);
            phase::check().await;
        }
    });
    event_loop.run(RunMode::NoWait).unwrap();
    let abort = task.abort_handle();
    elsewhere(|| abort.abort());
    assert!(
        !task.is_finished() && !abort.is_finished(),
        "the loop has not looked"
    );
    event_loop.run(RunMode::NoWait).unwrap();
    assert!(task.is_finished() && abort.is_finished());
    let before = polls.get();
    event_loop.run(RunMode::NoWait).unwrap();
    assert_eq!(polls.get(), before);
}

#[test]
fn an_abort_that_comes_after_the_output_leaves_it() {
    let (mut event_loop, handle, _) = paused();
    let task = handle.spawn(async { 7 });
    let abort = task.abort_handle();
    event_loop.run(RunMode::NoWait).unwrap();
    elsewhere(|| {
        assert!(abort.is_finished());
        abort.abort();
    });
    abort.abort();
    event_loop.run(RunMode::NoWait).unwrap();
    assert_eq!(event_loop.block_on(task).unwrap(), 7);
    assert!(abort.is_finished());
}

/// The place of a task is used again: an abort of the old one must not reach the new one.
#[test]
fn an_old_handle_does_not_abort_the_next_task_in_the_same_place() {
    let (mut event_loop, handle, _) = paused();
    let first = handle.spawn(async {});
    let abort = first.abort_handle();
    event_loop.run(RunMode::NoWait).unwrap();
    let second = handle.spawn(pending::<()>());
    elsewhere(|| abort.abort());
    abort.abort();
    event_loop.run(RunMode::NoWait).unwrap();
    assert!(!second.is_finished() && !second.abort_handle().is_finished());
}

#[test]
fn handles_outlive_the_loop_on_every_thread() {
    let (mut event_loop, handle, _) = paused();
    let task = handle.spawn(pending::<()>());
    let done = handle.spawn(async {});
    event_loop.run(RunMode::NoWait).unwrap();
    let aborts = [task.abort_handle(), done.abort_handle()];
    // This abort is in the inbox when the loop is dropped.
    elsewhere(|| aborts[0].abort());
    drop(event_loop);
    for abort in &aborts {
        assert!(abort.is_finished());
        abort.abort();
        elsewhere(|| {
            assert!(abort.is_finished());
            abort.abort();
            drop(abort.clone());
        });
    }
    let never = handle.spawn(async {});
    assert!(never.abort_handle().is_finished());
    elsewhere({
        let abort = never.abort_handle();
        move || abort.abort()
    });
    assert!(tokio_test::block_on(task).unwrap_err().is_cancelled());
    // The last handles, and with them the memory of the tasks, go on another thread.
    drop((done, never));
    elsewhere(move || drop(aborts));
}

#[test]
fn the_future_of_a_task_is_dropped_on_its_thread_whoever_aborts_it() {
    struct Home(thread::ThreadId, Rc<Cell<bool>>);
    impl Drop for Home {
        fn drop(&mut self) {
            assert_eq!(thread::current().id(), self.0);
            self.1.set(true);
        }
    }

    block_on(async {
        let is_dropped = Rc::new(Cell::new(false));
        let home = Home(thread::current().id(), is_dropped.clone());
        let task = spawn(async move {
            let _home = home;
            pending::<()>().await;
        });
        yield_now().await;
        let abort = task.abort_handle();
        task.detach();
        elsewhere(move || abort.abort());
        phase::check().await;
        phase::check().await;
        assert!(is_dropped.get());
    });
}

#[test]
fn many_threads_abort_tasks_that_run_meanwhile_and_none_is_lost() {
    block_on(async {
        let (send, receive) = mpsc::channel::<AbortHandle>();
        let thread = thread::spawn(move || {
            let mut count = 0;
            for abort in receive {
                // Twice, and by a clone.
                abort.clone().abort();
                abort.abort();
                count += 1;
            }
            count
        });
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for _ in 0..200 {
            // It is polled all the time, so that aborts meet polls.
            let task = spawn(async {
                loop {
                    phase::check().await;
                }
            });
            send.send(task.abort_handle()).unwrap();
            tasks.push(task);
            phase::check().await;
        }
        drop(send);
        for task in tasks {
            assert!(task.await.unwrap_err().is_cancelled());
        }
        assert_eq!(thread.join().unwrap(), 200);
    });
}

#[test]
fn a_job_is_aborted_and_asked_from_another_thread() {
    let (event_loop, _pool) = with_threads(1);
    event_loop.block_on(async {
        let (go, gate) = mpsc::channel::<()>();
        let busy = spawn_blocking(move || gate.recv().unwrap());
        let queued = spawn_blocking(|| unreachable!("it was aborted"));
        let (of_busy, of_queued) = (busy.abort_handle(), queued.abort_handle());
        elsewhere(|| {
            assert!(!of_busy.is_finished() && !of_queued.is_finished());
            of_queued.abort();
            of_queued.abort();
        });
        let error = queued.await.unwrap_err();
        assert!(error.is_cancelled() && error.id() == of_queued.id());
        assert!(elsewhere(|| of_queued.is_finished()));
        go.send(()).unwrap();
        busy.await.unwrap();
        assert!(elsewhere(|| of_busy.is_finished()));
        elsewhere(|| of_busy.abort());
    });
    // The loop is gone with a job under way.
    let (event_loop, _pool) = with_threads(1);
    let (go, gate) = mpsc::channel::<()>();
    let job = event_loop.handle().spawn_blocking(move || gate.recv());
    let abort = job.abort_handle();
    drop(event_loop);
    elsewhere(|| {
        abort.abort();
        assert!(abort.is_finished());
    });
    drop(go);
}

/// The completion is in the inbox, and the abort comes behind it.
#[test]
fn a_job_that_has_completed_before_the_abort_of_another_thread_keeps_its_output() {
    let (event_loop, _pool) = with_threads(1);
    let handle = event_loop.handle();
    let job = handle.spawn_blocking(|| 7);
    let (starts, started) = mpsc::channel();
    // The only thread takes it when the first job is done and sent.
    let next = handle.spawn_blocking(move || starts.send(()).unwrap());
    started.recv().unwrap();
    let abort = job.abort_handle();
    elsewhere(|| abort.abort());
    assert!(!abort.is_finished(), "the loop has not looked");
    assert_eq!(event_loop.block_on(job).unwrap(), 7);
    event_loop.block_on(next).unwrap();
}

#[test]
fn a_handle_of_a_task_that_is_polled_sees_its_end() {
    block_on(async {
        let seen = Rc::new(Cell::new(None));
        let (log, own) = (seen.clone(), Rc::new(Cell::new(None::<AbortHandle>)));
        let of_task = own.clone();
        let task = spawn(poll_fn(move |_| {
            let abort = of_task.take().unwrap();
            log.set(Some(abort.is_finished()));
            abort.abort();
            of_task.set(Some(abort));
            Poll::Ready(7)
        }));
        own.set(Some(task.abort_handle()));
        assert_eq!(
            task.await.unwrap(),
            7,
            "it returned before the abort took effect"
        );
        assert_eq!(seen.get(), Some(false));
        assert!(own.take().unwrap().is_finished());
    });
}

#[test]
fn an_error_knows_its_task_and_gives_the_panic_out() {
    block_on(async {
        let task = spawn(async { panic!("on purpose") });
        let id = task.id();
        let error: JoinError = task.await.map(|(): ()| ()).unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled());
        assert_eq!(error.id(), id);
        // It is sent to another thread, and resumed there.
        let text =
            thread::spawn(move || panic_of(|| std::panic::resume_unwind(error.into_panic())));
        assert_eq!(text.join().unwrap(), "on purpose");

        let task = spawn(pending::<()>());
        let id = task.id();
        task.abort();
        let error = task.await.unwrap_err().try_into_panic().unwrap_err();
        assert_eq!(error.id(), id);
        let text = panic_of(|| drop(error.into_panic()));
        let expected = "`into_panic` of an error that is no panic: the task was aborted before it \
                        returned";
        assert_eq!(text, expected);
    });
}

#[test]
fn an_error_becomes_an_io_error() {
    async fn fails() -> io::Result<()> {
        spawn(async { panic!("on purpose") }).await?;
        Ok(())
    }
    let error = block_on(fails()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert_eq!(error.to_string(), "the task panicked: on purpose");
    assert!(error.downcast::<JoinError>().unwrap().is_panic());
}

#[test]
fn errors_of_what_has_no_number_have_one_that_no_task_has() {
    let event_loop = EventLoop::new().unwrap();
    let remote = event_loop.remote();
    let never = remote.spawn(pending::<()>).unwrap();
    drop(event_loop);
    let never = tokio_test::block_on(never).unwrap_err();
    block_on(async {
        let task = spawn(async {});
        let scoped = scope(async |s| {
            let task = s.spawn(pending::<()>());
            s.cancel();
            task.await.unwrap_err()
        });
        let scoped = scoped.await;
        assert_eq!(scoped.id(), never.id());
        assert_ne!(scoped.id(), task.id());
        let remote = phaseloop::LoopHandle::current().remote();
        let far = remote.spawn(|| async { panic!("on purpose") }).unwrap();
        let far: Result<(), JoinError> = far.await;
        assert!(
            far.unwrap_err().id() > task.id(),
            "it has arrived, and has its number"
        );
    });
}

#[test]
fn a_result_of_a_task_is_two_words_long() {
    assert_eq!(size_of::<Result<(), JoinError>>(), 2 * size_of::<u64>());
}
