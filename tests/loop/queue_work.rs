//! Work with a callback after it (libuv's `uv_queue_work` and `uv_cancel`), R277–R283, and
//! `spawn_blocking` for a loop that does not run.
//!
//! The loops here have pools of one thread, which a first job holds until it is let go.

use crate::util::panics::{panic_of, text_of};
use crate::util::trace::{Trace, finish, turn};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use phaseloop::phase::{Check, Prepare};
use phaseloop::pool::{Class, PoolBuilder};
use phaseloop::{Builder, EventLoop, Handle, Keeper, LoopHandle, QueuedWork, RunMode};

fn with_one_thread() -> (EventLoop, LoopHandle, Trace) {
    let pool = PoolBuilder::new().threads(1).build();
    let event_loop = Builder::new().start_paused(true).pool(pool);
    let event_loop = event_loop.build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace)
}

/// Holds the thread until what is returned is dropped; returns when the thread is held.
fn hold(handle: &LoopHandle, trace: &Trace) -> (Sender<()>, QueuedWork) {
    let (started, has_started) = channel();
    let (open, opened) = channel::<()>();
    let work = move || {
        started.send(()).unwrap();
        let _ = opened.recv();
    };
    let work = handle.queue_work(work, after(trace, "held")).unwrap();
    has_started.recv().unwrap();
    (open, work)
}

/// A callback that logs how the work has ended.
fn after<T>(
    trace: &Trace,
    label: &'static str,
) -> impl FnOnce(Result<T, phaseloop::task::JoinError>) + 'static {
    let log = trace.clone();
    move |result| match result {
        Ok(_) => log.log(label),
        Err(error) if error.is_cancelled() => log.log(format_args!("{label}-cancelled")),
        Err(_) => log.log(format_args!("{label}-panicked")),
    }
}

#[test]
fn libuv_threadpool_queue_work_simple_with_a_callback() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    prepare.unref();
    check.unref();
    let (log, home) = (trace.clone(), thread::current().id());
    let after = move |result: Result<_, _>| {
        assert_ne!(result.unwrap(), home, "on a thread of the pool");
        assert_eq!(thread::current().id(), home);
        log.log("after");
        let inner = log.clone();
        LoopHandle::current().next_tick(move || inner.log("tick"));
    };
    handle.queue_work(|| thread::current().id(), after).unwrap();
    assert_eq!(handle.keepers(), [(Keeper::Work, 1)]);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "prepare after tick check");
}

#[test]
fn r277_callbacks_come_in_the_poll_phase_in_the_order_of_the_ends() {
    let (mut event_loop, handle, trace) = with_one_thread();
    for name in ["a", "b", "c"] {
        handle.queue_work(|| (), after(&trace, name)).unwrap();
    }
    let (_open, _work) = hold(&handle, &trace);
    // All three have ended before the loop looks.
    turn(&mut event_loop);
    assert_eq!(trace.take(), "a b c");
}

#[test]
fn r280_r281_libuv_threadpool_cancel_single_the_callback_comes_later_and_the_work_never() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let (open, _held) = hold(&handle, &trace);
    let (witness, gone) = channel::<()>();
    let unrun = move || drop(witness);
    let [a, b, c] = ["a", "b", "c"].map(|name| {
        let queued = handle.queue_work(
            || unreachable!("it was cancelled"),
            after::<()>(&trace, name),
        );
        queued.unwrap()
    });
    let d = handle.queue_work(unrun, after(&trace, "d")).unwrap();
    assert!(d.cancel());
    assert!(gone.recv().is_err(), "the closure was dropped");
    assert!(c.cancel() && a.cancel() && b.cancel());
    assert_eq!(trace.take(), "", "not inside the call");
    assert_eq!(handle.keepers(), [(Keeper::Work, 5)]);
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "d-cancelled c-cancelled a-cancelled b-cancelled",
        "in the order of the calls, ahead of what runs"
    );
    assert_eq!(handle.keepers(), [(Keeper::Work, 1)]);
    drop(open);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "held");
}

#[test]
fn r280_r282_libuv_threadpool_cancel_when_busy_what_runs_or_has_ended_is_not_taken_back() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let (open, running) = hold(&handle, &trace);
    assert!(!running.cancel(), "it runs");
    let waiting = handle.queue_work(|| (), after(&trace, "waiting")).unwrap();
    assert!(waiting.cancel());
    assert!(!waiting.cancel(), "it was taken back before");
    drop(open);
    finish(&mut event_loop);
    assert!(!running.cancel() && !waiting.cancel(), "they are over");
    assert_eq!(trace.take(), "waiting-cancelled held", "each once");
}

#[test]
fn r283_a_callback_may_queue_more_and_cancel_others() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let slot: Rc<RefCell<Option<QueuedWork>>> = Rc::default();
    let (open, held) = hold(&handle, &trace);
    drop(held);
    let (log, inner, other) = (trace.clone(), handle.clone(), slot.clone());
    let first = move |_: Result<(), _>| {
        log.log("first");
        // Another one holds the thread now, so the next waits.
        assert!(other.take().unwrap().cancel());
        inner.queue_work(|| (), after(&log, "more")).unwrap();
    };
    handle.queue_work(|| (), first).unwrap();
    let (started, has_started) = channel();
    let (close, closed) = channel::<()>();
    let second = move || {
        started.send(()).unwrap();
        let _ = closed.recv();
    };
    handle.queue_work(second, after(&trace, "second")).unwrap();
    let third = handle.queue_work(|| (), after(&trace, "third"));
    slot.replace(Some(third.unwrap()));
    drop(open);
    has_started.recv().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "held first");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "third-cancelled");
    drop(close);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second more");
}

#[test]
fn a_panic_of_the_work_is_an_error_and_one_of_the_callback_comes_out_of_the_run() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let text = |result: Result<(), phaseloop::task::JoinError>| {
        let payload = result.unwrap_err().try_into_panic().unwrap();
        assert_eq!(text_of(&*payload), "of the work");
        panic!("of the callback");
    };
    handle.queue_work(|| panic!("of the work"), text).unwrap();
    handle.queue_work(|| (), after(&trace, "next")).unwrap();
    assert_eq!(
        panic_of(|| event_loop.run(RunMode::Default)),
        "of the callback"
    );
    finish(&mut event_loop);
    assert_eq!(trace.take(), "next");
}

#[test]
fn of_a_loop_that_is_dropped_no_callback_is_called() {
    let (event_loop, handle, trace) = with_one_thread();
    let (open, held) = hold(&handle, &trace);
    let (witness, gone) = channel::<()>();
    let unrun = move || drop(witness);
    let waiting = handle.queue_work(unrun, after(&trace, "waiting")).unwrap();
    drop(event_loop);
    assert!(gone.recv().is_err(), "what waited was dropped unrun");
    assert!(!waiting.cancel() && !held.cancel());
    drop(open);
    assert_eq!(trace.take(), "");
    let error = handle.queue_work(|| (), after(&trace, "late")).unwrap_err();
    assert!(error.to_string().contains("has been dropped"), "{error}");
}

#[test]
fn the_class_of_the_work_counts_and_the_report_names_it() {
    let pool = PoolBuilder::new().threads(2).limit(Class::Fs, 1).build();
    let mut event_loop = Builder::new().pool(pool).build().unwrap();
    let handle = event_loop.handle();
    let (open, opened) = channel::<()>();
    let (started, has_started) = channel();
    let first = move || {
        started.send(()).unwrap();
        let _ = opened.recv();
    };
    handle.queue_work_as(Class::Fs, first, drop).unwrap();
    has_started.recv().unwrap();
    let second = handle.queue_work_as(Class::Fs, || (), drop).unwrap();
    // A thread is free, and the class is full.
    let (ran, has_run) = channel();
    handle.queue_work(move || ran.send(()), drop).unwrap();
    has_run.recv().unwrap();
    assert!(second.cancel());
    let report = handle.report().to_string();
    assert!(report.contains("tests/loop/queue_work.rs"), "{report}");
    drop(open);
    finish(&mut event_loop);
}

#[test]
fn spawn_blocking_works_for_a_loop_that_does_not_run() {
    let (mut event_loop, handle, trace) = with_one_thread();
    let (open, _held) = hold(&handle, &trace);
    let job = handle.spawn_blocking(|| 20 + 1);
    let other = handle.spawn_blocking_as(Class::Fs, || 2);
    assert_eq!(handle.next_timeout(), None, "the loop waits for the jobs");
    assert!(handle.is_alive());
    let (log, sum) = (trace.clone(), Rc::new(Cell::new(0)));
    let total = sum.clone();
    drop(handle.spawn(async move {
        total.set(job.await.unwrap() * other.await.unwrap());
        log.log("done");
    }));
    drop(open);
    finish(&mut event_loop);
    assert_eq!((sum.get(), trace.take().as_str()), (42, "held done"));
    drop(event_loop);
    let never = handle.spawn_blocking(|| unreachable!("the loop is gone"));
    let error = futures::FutureExt::now_or_never(never).unwrap();
    assert!(error.is_err_and(|error| error.is_cancelled()));
}
