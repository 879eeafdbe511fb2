//! What a panic does, and misuse. A task's panic goes to its handle, or to the loop's policy if the
//! handle was dropped. A callback's panic unwinds out of the run. The next run continues the rest
//! of its phase, whatever the phase, and no wake is lost. Misuse is a panic that says what to do
//! instead (R20 among it).

use crate::util::child::in_child;
use crate::util::panics::{panic_of, text_of};
use crate::util::polls::poll_once;
use crate::util::sockets::udp_pair;
use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use std::cell::Cell;
use std::future::{Future, pending};
use std::rc::Rc;

use phaseloop::io::Source;
use phaseloop::phase::{self, Check, Hook, HookPhase, Idle, Prepare};
use phaseloop::task::{self, yield_microtask};
use phaseloop::time::{self, Timer, interval, sleep, timeout};
use phaseloop::{
    AsyncHandle, Builder, EventLoop, Handle, LoopHandle, RunMode, UnhandledPanic, block_on,
    next_tick, queue_microtask, set_immediate, spawn,
};
use tokio_test::assert_pending;
use waker_fn::waker_fn;

// Bad use.

#[test]
fn outside_a_loop_the_panic_says_what_to_call() {
    let uses: [(&str, fn()); 11] = [
        ("spawn", || drop(spawn(async {}))),
        ("sleep", || drop(sleep(ZERO))),
        ("timeout", || drop(timeout(ZERO, async {}))),
        ("interval", || drop(interval(ms(1)))),
        ("now", || assert!(time::now() < time::now())),
        ("next_tick", || next_tick(|| ())),
        ("queue_microtask", || queue_microtask(|| ())),
        ("set_immediate", || drop(set_immediate(|| ()))),
        ("task::Builder", || {
            drop(task::Builder::new().spawn(async {}))
        }),
        ("phase::check", || tokio_test::block_on(phase::check())),
        ("current", || drop(LoopHandle::current())),
    ];
    for (name, bad_use) in uses {
        let message = panic_of(bad_use);
        assert!(message.contains("phaseloop::block_on"), "{name}: {message}");
    }
    assert!(LoopHandle::try_current().is_none());
    assert!(task::current().is_none());
}

#[test]
fn enter_makes_them_work_and_ends() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let task = event_loop.enter(|| {
        next_tick(log.call("tick"));
        spawn(async move { log.log("task") })
    });
    assert!(LoopHandle::try_current().is_none());
    assert!(!task.is_finished() && handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick task");
}

/// Runs `nested` inside a run and returns the text of the panic; the outer loop has to survive.
fn inside_a_run(nested: impl FnOnce() + 'static) -> String {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || log.log(panic_of(nested))));
    finish(&mut event_loop);
    drop(handle.set_immediate(trace.call("| and runs on")));
    finish(&mut event_loop);
    let message = trace.take();
    assert!(message.ends_with(" | and runs on"), "{message}");
    message
}

#[test]
fn r020_a_loop_does_not_run_inside_another() {
    type Run = fn(EventLoop);
    let nested: [(&str, Run); 4] = [
        ("run", |mut inner| drop(inner.run(RunMode::NoWait))),
        ("turn", |mut inner| drop(inner.turn(None))),
        ("block_on", |inner| inner.block_on(async {})),
        ("run_until_done", |mut inner| {
            inner.run_until_done(async {}).unwrap();
        }),
    ];
    for (name, run) in nested {
        let message = inside_a_run(move || run(EventLoop::new().unwrap()));
        assert!(
            message.starts_with("cannot run an event loop"),
            "{name}: {message}"
        );
        assert!(message.contains("`spawn`"), "{name}: {message}");
    }
    let message = inside_a_run(|| block_on(async {}));
    assert!(message.starts_with("cannot run an event loop"), "{message}");
}

/// Entering a third loop must not hide the one that runs.
#[test]
fn r020_not_even_inside_enter() {
    let entered = EventLoop::new().unwrap();
    let message = inside_a_run(move || entered.enter(|| block_on(async {})));
    assert!(message.starts_with("cannot run an event loop"), "{message}");
}

// Tasks.

#[test]
fn a_panic_in_a_task_goes_to_its_handle() {
    let (event_loop, handle, _) = paused();
    let bad = handle.spawn(async {
        yield_microtask().await;
        panic!("number {}", 7)
    });
    let good = handle.spawn(async { "output" });
    let (bad, good): (Result<(), _>, _) = event_loop.block_on(async { (bad.await, good.await) });
    assert_eq!(good.unwrap(), "output", "the others go on");
    let error = bad.unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: number 7");
    assert_eq!(text_of(&*error.try_into_panic().unwrap()), "number 7");
    assert_eq!(handle.tasks().len(), 0);
}

fn policy(policy: UnhandledPanic) -> EventLoop {
    Builder::new()
        .start_paused(true)
        .unhandled_panic(policy)
        .build()
        .unwrap()
}

#[test]
fn an_ignored_panic_of_a_detached_task_changes_nothing() {
    let mut event_loop = policy(UnhandledPanic::Ignore);
    let trace = Trace::new(&event_loop.handle());
    drop(event_loop.handle().spawn(async { panic!("ignored") }));
    drop(event_loop.handle().set_immediate(trace.call("immediate")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "immediate");
}

#[test]
fn an_unhandled_panic_unwinds_out_of_the_run_at_the_end_of_the_turn() {
    let mut event_loop = policy(UnhandledPanic::Unwind);
    let (handle, trace) = (event_loop.handle(), Trace::new(&event_loop.handle()));
    let timer = Timer::new(&handle);
    timer.start(ms(10), ZERO, trace.on("timer")).unwrap();
    drop(handle.set_immediate(|| drop(spawn(async { panic!("unhandled") }))));
    drop(handle.set_immediate(trace.call("same-turn")));
    let message = panic_of(|| event_loop.run(RunMode::Default));
    assert_eq!(message, "unhandled");
    assert_eq!(trace.take(), "same-turn");
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "timer",
        "the loop is usable, the panic was one"
    );

    let message = panic_of(|| {
        event_loop.block_on(async {
            drop(spawn(async { panic!("in block_on") }));
            pending::<()>().await;
        });
    });
    assert_eq!(message, "in block_on");
    finish(&mut event_loop);
}

/// A panic is unhandled once its handle is dropped. Here that happens while no loop runs.
#[test]
fn an_unhandled_panic_of_a_handle_dropped_between_runs_unwinds_out_of_the_next() {
    let mut event_loop = policy(UnhandledPanic::Unwind);
    let task = event_loop.handle().spawn(async { panic!("late") });
    finish(&mut event_loop);
    assert!(task.is_finished());
    drop(task);
    assert_eq!(panic_of(|| event_loop.run(RunMode::NoWait)), "late");
}

/// The default policy writes one line; looked at from outside, in a process of its own.
#[test]
fn an_unhandled_panic_is_reported_with_the_task() {
    let child = in_child(&[], "an_unhandled_panic_is_reported_with_the_task", || {
        let mut event_loop = EventLoop::new().unwrap();
        let named = task::Builder::new().name("reader");
        drop(named.spawn_on(async { panic!("of the reader") }, &event_loop.handle()));
        finish(&mut event_loop);
    });
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    assert!(child.status.success());
    let stderr = String::from_utf8(child.stderr).unwrap();
    let report = stderr.lines().find(|line| line.starts_with("phaseloop: "));
    let report = report.unwrap_or_else(|| panic!("no report in {stderr}"));
    assert!(
        report.contains("\"reader\"") && report.contains("panics.rs"),
        "{report}"
    );
    assert!(report.ends_with("of the reader"), "{report}");
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the drop");
    }
}

#[test]
fn a_future_whose_drop_panics_hurts_only_its_own_task() {
    let mut event_loop = policy(UnhandledPanic::Unwind);
    let handle = event_loop.handle();

    // When it returns: the output is lost, the panic is delivered.
    struct Explosive;
    impl Future for Explosive {
        type Output = ();
        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<()> {
            std::task::Poll::Ready(())
        }
    }
    impl Drop for Explosive {
        fn drop(&mut self) {
            panic!("the drop");
        }
    }
    let error = event_loop.block_on(handle.spawn(Explosive)).unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: the drop");

    // An aborted task: the handle receives the panic.
    let task = handle.spawn(async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    turn(&mut event_loop);
    task.abort();
    event_loop.run(RunMode::NoWait).unwrap();
    let error = event_loop.block_on(task).unwrap_err();
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task panicked: the drop");
    assert_eq!(handle.tasks().len(), 0);

    // An aborted task that is not awaited: no handle receives it.
    let task = handle.spawn(async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    turn(&mut event_loop);
    task.abort();
    event_loop.run(RunMode::NoWait).unwrap();
    drop(task);
    assert_eq!(panic_of(|| event_loop.run(RunMode::NoWait)), "the drop");
}

#[test]
fn a_loop_is_dropped_to_the_end_although_a_drop_panics() {
    let event_loop = policy(UnhandledPanic::Ignore);
    let handle = event_loop.handle();
    let held = Rc::new(());
    let tasks = [(); 3].map(|()| {
        let held = held.clone();
        handle.spawn(async move {
            let _both = (Bomb, held);
            pending::<()>().await;
        })
    });
    drop(event_loop);
    assert_eq!(Rc::strong_count(&held), 1);
    assert!(tasks.iter().all(|task| task.is_finished()));
}

/// In a process of its own, since the worst that could happen is its end.
#[test]
fn an_output_whose_drop_panics_does_not_end_the_process() {
    let child = in_child(
        &[],
        "an_output_whose_drop_panics_does_not_end_the_process",
        || {
            for unhandled in [
                UnhandledPanic::Ignore,
                UnhandledPanic::Report,
                UnhandledPanic::Unwind,
            ] {
                let mut event_loop = policy(unhandled);
                drop(event_loop.handle().spawn(async { Bomb }));
                let run = || event_loop.run(RunMode::NoWait);
                let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
                assert_eq!(unwound, unhandled == UnhandledPanic::Unwind);
                assert_eq!(event_loop.block_on(async { 1 }), 1);
            }
        },
    );
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    assert!(child.status.success(), "{}", child.status);
}

/// Whoever awaits a task may bring a waker of its own.
#[test]
fn a_waker_that_panics_leaves_no_task_behind() {
    let (mut event_loop, handle, trace) = paused();
    let mut task = handle.spawn(yield_microtask());
    let waker = waker_fn(|| panic!("the waker"));
    let mut cx = std::task::Context::from_waker(&waker);
    assert_pending!(std::pin::Pin::new(&mut task).poll(&mut cx));
    // As with an unhandled panic: the task has ended, and the loop goes on.
    turn(&mut event_loop);
    assert!(task.is_finished());
    assert_eq!(handle.tasks().len(), 0);
    let log = trace.clone();
    // This one takes the place of the other.
    let _other = handle.spawn(pending::<()>());
    drop(handle.set_immediate(move || log.log(task::current().is_some())));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "false", "in a callback no task is polled");
}

#[test]
fn a_panic_of_the_main_future_leaves_the_loop_usable() {
    let (event_loop, handle, _) = paused();
    let message = panic_of(|| event_loop.block_on(async { panic!("main") }));
    assert_eq!(message, "main");
    assert!(!handle.is_alive(), "the future is not counted any more");
    assert_eq!(event_loop.block_on(async { 1 }), 1);
}

#[test]
fn a_main_future_that_is_queued_when_its_run_panics_is_not_polled_again() {
    let (event_loop, _, _) = paused();
    let polls = Cell::new(0);
    let message = panic_of(|| {
        event_loop.block_on(async {
            queue_microtask(|| panic!("boom"));
            polls.set(polls.get() + 1);
            yield_microtask().await;
            polls.set(polls.get() + 1);
        });
    });
    assert_eq!((message.as_str(), polls.get()), ("boom", 1));
    let output = event_loop.block_on(async {
        sleep(ms(1)).await;
        7
    });
    assert_eq!((output, polls.get()), (7, 1));
}

// Callbacks.

/// The run that panics with `boom`, and the one after it.
fn boom_then_run(event_loop: &mut EventLoop, mode: RunMode) {
    let handle = event_loop.handle();
    assert_eq!(panic_of(|| event_loop.run(mode)), "boom");
    assert!(LoopHandle::try_current().is_none());
    assert!(handle.is_alive(), "the rest of the phase keeps it alive");
    finish(event_loop);
}

#[test]
fn after_a_panic_the_other_timers_fire_in_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    let [first, second, third] = [(); 3].map(|()| Timer::new(&handle));
    first.start(ms(1), ZERO, |_| panic!("boom")).unwrap();
    third.start(ms(2), ZERO, trace.on("third")).unwrap();
    second.start(ms(1), ZERO, trace.on("second")).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        sleep(ms(1)).await;
        log.log("sleep");
    }));
    boom_then_run(&mut event_loop, RunMode::Default);
    assert_eq!(trace.take(), "second sleep third");
}

#[test]
fn a_repeating_timer_goes_on_after_its_panic() {
    let (mut event_loop, handle, trace) = paused();
    let (timer, log, mut calls) = (Timer::new(&handle), trace.clone(), 0);
    let tick = move |timer: &Timer| {
        calls += 1;
        log.stamp("tick");
        assert_ne!(calls, 1, "boom");
        timer.stop();
    };
    timer.start(ms(10), ms(10), tick).unwrap();
    assert!(panic_of(|| event_loop.run(RunMode::Default)).contains("boom"));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick@10 tick@20");
}

#[test]
fn after_a_panic_the_other_immediates_run_in_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        drop(set_immediate(log.call("new")));
        panic!("boom")
    }));
    drop(handle.set_immediate(trace.call("rest")));
    boom_then_run(&mut event_loop, RunMode::Default);
    assert_eq!(trace.take(), "rest new");
}

#[test]
fn after_a_panic_the_other_hooks_run_in_the_next_run() {
    fn proof<P: HookPhase>(new: fn(&LoopHandle) -> Hook<P>) {
        let (mut event_loop, handle, trace) = paused();
        let hooks = [(); 3].map(|()| new(&handle));
        for (hook, name) in hooks.iter().zip(["A", "B", "C"]) {
            let (log, mut calls) = (trace.clone(), 0);
            let callback = move |_: &Hook<P>| {
                calls += 1;
                log.log(name);
                assert!(name != "B" || calls != 1, "boom");
            };
            hook.start(callback).unwrap();
        }
        assert!(panic_of(|| turn(&mut event_loop)).contains("boom"));
        assert_eq!(trace.take(), "C B");
        turn(&mut event_loop);
        assert_eq!(
            trace.take(),
            "A C B",
            "the rest, then all, each of them once"
        );
        turn(&mut event_loop);
        assert_eq!(trace.take(), "A C B");
    }
    proof(Idle::new);
    proof(Prepare::new);
    proof(Check::new);
}

#[test]
fn after_a_panic_the_other_closes_are_reported_in_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    let [a, b, c] = [(); 3].map(|()| Timer::new(&handle));
    a.close().then(trace.call("a"));
    let log = trace.clone();
    b.close().then(move || {
        c.close().then(log.call("c"));
        panic!("boom")
    });
    boom_then_run(&mut event_loop, RunMode::Default);
    assert_eq!(trace.take(), "a c");
}

#[test]
fn after_a_panic_the_others_that_wait_for_the_same_close_are_notified() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.close().then(|| panic!("boom"));
    timer.close().then(trace.call("second"));
    let (closed, log) = (timer.close(), trace.clone());
    drop(handle.spawn(async move {
        closed.await;
        log.log("task");
    }));
    assert_eq!(panic_of(|| event_loop.run(RunMode::Default)), "boom");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second task");
}

#[test]
fn after_a_panic_the_others_who_await_the_phase_are_woken() {
    for awaited in [phase::pending, phase::idle, phase::prepare, phase::closing] {
        let (mut event_loop, handle, trace) = paused();
        drop(handle.spawn(async move {
            awaited().await;
            next_tick(|| panic!("boom"));
        }));
        let log = trace.clone();
        drop(handle.spawn(async move {
            awaited().await;
            log.log("rest");
        }));
        boom_then_run(&mut event_loop, RunMode::Default);
        assert_eq!(trace.take(), "rest");
    }
}

#[test]
fn after_a_panic_the_lanes_go_on_with_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    handle.queue_microtask(trace.call("microtask"));
    handle.next_tick(|| panic!("boom"));
    handle.next_tick(trace.call("tick"));
    boom_then_run(&mut event_loop, RunMode::Default);
    assert_eq!(trace.take(), "tick microtask");
}

#[test]
fn after_a_panic_what_other_threads_sent_still_arrives() {
    let (mut event_loop, _, trace) = paused();
    let remote = event_loop.remote();
    let labels = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    remote.call(|| panic!("boom")).unwrap();
    for label in [1, 2] {
        let labels = labels.clone();
        remote
            .call(move || labels.lock().unwrap().push(label))
            .unwrap();
    }
    boom_then_run(&mut event_loop, RunMode::Default);
    assert_eq!(*labels.lock().unwrap(), [1, 2]);
    assert_eq!(trace.take(), "");
}

/// A mark that stays set would coalesce every later send into nothing.
#[test]
fn after_a_panic_the_other_async_handles_are_called() {
    let (mut event_loop, handle, trace) = paused();
    let boom = AsyncHandle::new(&handle, |_| panic!("boom")).unwrap();
    let rest = AsyncHandle::new(&handle, trace.on("rest")).unwrap();
    boom.sender().send().unwrap();
    rest.sender().send().unwrap();
    assert_eq!(panic_of(|| event_loop.run(RunMode::NoWait)), "boom");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "rest");
    rest.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "rest");
}

#[test]
fn after_a_panic_of_a_message_the_async_handles_are_called() {
    let (mut event_loop, handle, trace) = paused();
    let rest = AsyncHandle::new(&handle, trace.on("rest")).unwrap();
    rest.sender().send().unwrap();
    event_loop.remote().call(|| panic!("boom")).unwrap();
    assert_eq!(panic_of(|| event_loop.run(RunMode::NoWait)), "boom");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "rest");
}

/// What the loop sends to itself while it runs needs no notification, so nothing but the marks is
/// left of it.
#[test]
fn after_a_panic_what_was_sent_during_the_turn_still_arrives() {
    let (mut event_loop, handle, trace) = paused();
    let prepare = Prepare::new(&handle);
    let boom = AsyncHandle::new(&handle, |_| panic!("boom")).unwrap();
    let rest = AsyncHandle::new(&handle, trace.on("async")).unwrap();
    let senders = [boom.sender(), rest.sender()];
    let send = move |prepare: &Prepare| {
        senders.iter().for_each(|sender| sender.send().unwrap());
        prepare.stop();
    };
    prepare.start(send).unwrap();
    assert_eq!(panic_of(|| turn(&mut event_loop)), "boom");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "async");
    rest.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "async");

    let arrived = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let (remote, count) = (event_loop.remote(), arrived.clone());
    let send = move |prepare: &Prepare| {
        remote.call(|| panic!("boom")).unwrap();
        for _ in 0..2 {
            let count = count.clone();
            let call = move || _ = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            remote.call(call).unwrap();
        }
        prepare.stop();
    };
    prepare.start(send).unwrap();
    drop((boom, rest));
    // Nothing but those messages keeps the loop alive.
    boom_then_run(&mut event_loop, RunMode::NoWait);
    assert_eq!(arrived.load(std::sync::atomic::Ordering::Relaxed), 2);
}

/// Spawns a task that waits until `source` is readable and then has the loop panic, or logs.
fn wait_readable(
    handle: &LoopHandle,
    source: &Rc<Source<std::net::UdpSocket>>,
    then: impl FnOnce() + 'static,
) {
    let source = source.clone();
    drop(handle.spawn(async move {
        source.readable().await.unwrap();
        next_tick(then);
    }));
}

/// Whichever of them the kernel reports first panics.
#[test]
fn after_a_panic_the_other_events_of_the_batch_are_delivered() {
    let (mut event_loop, handle, trace) = paused();
    let panicked = Rc::new(Cell::new(false));
    let mut peers = Vec::new();
    for _ in 0..3 {
        let (ours, theirs) = udp_pair();
        let source = Rc::new(Source::new(&handle, ours).unwrap());
        let (log, panicked) = (trace.clone(), panicked.clone());
        wait_readable(&handle, &source, move || {
            assert!(panicked.replace(true), "boom");
            log.log("rest");
        });
        peers.push(theirs);
    }
    turn(&mut event_loop);
    for peer in &peers {
        peer.send(b"x").unwrap();
    }
    assert_eq!(panic_of(|| event_loop.run(RunMode::Default)), "boom");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "rest rest");
}

#[test]
fn after_a_panic_the_others_who_wait_for_the_same_source_are_woken() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, theirs) = udp_pair();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    wait_readable(&handle, &source, || panic!("boom"));
    wait_readable(&handle, &source, trace.call("second"));
    wait_readable(&handle, &source, trace.call("third"));
    turn(&mut event_loop);
    theirs.send(b"x").unwrap();
    assert_eq!(panic_of(|| turn(&mut event_loop)), "boom");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "second third");
}

/// One event may say that both directions are ready, and says so once.
#[cfg(unix)]
#[test]
fn after_a_panic_in_one_direction_the_other_one_is_woken() {
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;

    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    let (reader, writer, log) = (source.clone(), source, trace.clone());
    drop(handle.spawn(async move {
        reader.readable().await.unwrap();
        next_tick(|| panic!("boom"));
    }));
    drop(handle.spawn(async move {
        writer.writable().await.unwrap();
        let fill = |mut stream: &UnixStream| stream.write(&[0; 4096]);
        while poll_once(writer.write_with(fill)).await.is_ready() {}
        log.log("full");
        writer.write_with(fill).await.unwrap();
        log.log("written");
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "full");
    let mut buffer = vec![0; 1 << 16];
    let would_block = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
    while !theirs.read(&mut buffer).is_err_and(would_block) {}
    theirs.write_all(b"x").unwrap();
    assert_eq!(panic_of(|| turn(&mut event_loop)), "boom");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "written");
}

#[test]
fn after_a_panic_the_other_timers_are_armed_as_before() {
    let (mut event_loop, handle, trace) = paused();
    let [first, stopped, third, unrefd, late] = [(); 5].map(|()| Timer::new(&handle));
    first.start(ms(1), ZERO, |_| panic!("boom")).unwrap();
    stopped.start(ms(1), ZERO, trace.on("stopped")).unwrap();
    third.start(ms(1), ZERO, trace.on("third")).unwrap();
    unrefd.start(ms(1), ZERO, trace.on("unrefd")).unwrap();
    unrefd.unref();
    assert_eq!(panic_of(|| event_loop.run(RunMode::Default)), "boom");
    assert_eq!(handle.next_timeout(), Some(ZERO));
    assert!(handle.is_alive() && stopped.is_active() && unrefd.is_active());
    stopped.stop();
    // Behind those that were due before it.
    late.start(ZERO, ZERO, trace.on("late")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "third unrefd late");
}

#[test]
fn after_a_panic_an_unrefd_timer_does_not_keep_the_loop_alive() {
    let (mut event_loop, handle, trace) = paused();
    let [first, unrefd] = [(); 2].map(|()| Timer::new(&handle));
    first.start(ms(1), ZERO, |_| panic!("boom")).unwrap();
    unrefd.start(ms(1), ZERO, trace.on("unrefd")).unwrap();
    unrefd.unref();
    assert_eq!(panic_of(|| event_loop.run(RunMode::Default)), "boom");
    assert!(!handle.is_alive());
    finish(&mut event_loop);
    unrefd.ref_();
    assert!(handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "unrefd");
}
