//! The life of a loop, R1–R12: what keeps it alive, what blocks its close, the list of its handles,
//! whose thread it is.
//!
//! Ours differs in R8 (handles are listed in the order of creation, always) and in R11 (no SIGPROF:
//! options are on the builder, and only those that exist can be named).

use crate::util::sockets::udp_pair;
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;

use phaseloop::io::Source;
use phaseloop::phase::{Check, Idle, Prepare, check};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    AsyncHandle, Builder, EventLoop, Handle, Keeper, LoopHandle, RunMode, UnhandledPanic, block_on,
};
use tokio_test::assert_pending;

/// libuv's `loop_alive`.
#[test]
fn r001_what_makes_a_loop_alive() {
    let (mut event_loop, handle, _) = paused();
    let keepers = |expected: &[(Keeper, usize)]| {
        assert_eq!(handle.keepers(), expected);
        assert_eq!(handle.is_alive(), !expected.is_empty());
    };
    keepers(&[]);
    let timer = Timer::new(&handle);
    timer.start(ms(1), ZERO, |_| ()).unwrap();
    keepers(&[(Keeper::Timer, 1)]);
    timer.stop();
    keepers(&[]);

    let (idle, prepare, hook) = (
        Idle::new(&handle),
        Prepare::new(&handle),
        Check::new(&handle),
    );
    idle.start(|_| ()).unwrap();
    prepare.start(|_| ()).unwrap();
    hook.start(|_| ()).unwrap();
    keepers(&[(Keeper::Idle, 1), (Keeper::Prepare, 1), (Keeper::Check, 1)]);
    drop((idle, prepare, hook));

    let (first, second) = (handle.set_immediate(|| ()), handle.set_immediate(|| ()));
    keepers(&[(Keeper::Queued, 2)]);
    assert!(first.clear() && second.clear());

    let sent = AsyncHandle::new(&handle, |_| ()).unwrap();
    keepers(&[(Keeper::Async, 1)]);
    drop(sent.close());
    keepers(&[(Keeper::Closing, 1)]);
    finish(&mut event_loop);
    keepers(&[]);

    let (socket, _peer) = udp_pair();
    let source = Source::new(&handle, socket).unwrap();
    keepers(&[]);
    let reading = handle.spawn(async move { source.readable().await });
    let sleeping = handle.spawn(async { sleep(ms(1)).await });
    turn(&mut event_loop);
    keepers(&[(Keeper::Sleep, 1), (Keeper::Io, 1)]);
    reading.abort();
    sleeping.abort();
    turn(&mut event_loop);
    keepers(&[]);

    let (release, wait) = std::sync::mpsc::channel();
    let work = event_loop.enter(|| phaseloop::spawn_blocking(move || wait.recv().unwrap()));
    turn(&mut event_loop);
    keepers(&[(Keeper::Work, 1)]);
    release.send(()).unwrap();
    finish(&mut event_loop);
    assert!(work.is_finished());
    keepers(&[]);
}

#[test]
fn r001_what_is_in_the_lanes_or_was_sent_counts_too() {
    let (mut event_loop, handle, _) = paused();
    let ways: [fn(&LoopHandle); 4] = [
        |handle| handle.next_tick(|| ()),
        |handle| handle.queue_microtask(|| ()),
        |handle| drop(handle.spawn(async {})),
        |handle| handle.remote().call(|| ()).unwrap(),
    ];
    for way in ways {
        way(&handle);
        assert!(handle.is_alive());
        assert!(!turn(&mut event_loop));
    }
    drop(handle.spawn(pending::<()>()));
    assert!(
        !turn(&mut event_loop),
        "a task that waits for nothing here does not count"
    );
}

#[test]
fn r002_a_fresh_loop_is_empty() {
    let (event_loop, handle, _) = paused();
    assert!(!handle.is_alive() && !handle.is_closed());
    assert_eq!(handle.handles(), []);
    assert_eq!(handle.tasks().len(), 0);
    event_loop.close().unwrap();
}

#[test]
fn r003_r005_what_is_left_blocks_the_close() {
    let (event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    assert!(!handle.is_alive());
    let line = timer.created_at().line();
    let busy = event_loop.close().unwrap_err();
    let place = format!("timer created at {}:{line}:", file!());
    assert!(busy.to_string().contains(&place), "{busy}");
    drop(timer);

    let task = handle.spawn(pending::<()>());
    let mut event_loop = busy.into_event_loop();
    assert!(!turn(&mut event_loop), "it waits for nothing here");
    let busy = event_loop.close().unwrap_err();
    assert!(busy.to_string().contains("task"), "{busy}");
    task.abort();
    let mut event_loop = busy.into_event_loop();
    turn(&mut event_loop);

    let immediate = handle.set_immediate(|| ());
    let busy = event_loop.close().unwrap_err();
    assert!(busy.to_string().contains("queued entry"), "{busy}");
    immediate.clear();
    busy.into_event_loop().close().unwrap();
    assert!(handle.is_closed());
}

#[test]
fn r004_liveness_can_be_asked_in_any_phase() {
    let (mut event_loop, handle, trace) = paused();
    let (timer, log) = (Timer::new(&handle), trace.clone());
    let ask = move |timer: &Timer| {
        log.log(timer.event_loop().is_alive());
        timer.start(ms(1), ZERO, |_| ()).unwrap();
        log.log(timer.event_loop().is_alive());
        timer.stop();
    };
    timer.start(ZERO, ZERO, ask).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "false true");
}

/// libuv's `loop_close`.
#[test]
fn r006_a_busy_loop_is_usable_and_closes_later() {
    let (event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(10), ZERO, trace.on("timer")).unwrap();
    let mut event_loop = event_loop.close().unwrap_err().into_event_loop();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer");
    timer.close().then(trace.call("closed"));
    let mut event_loop = event_loop.close().unwrap_err().into_event_loop();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "closed");
    event_loop.close().unwrap();
}

/// libuv's `walk_handles`.
#[test]
fn r007_r008_handles_are_listed_in_the_order_of_creation() {
    let (mut event_loop, handle, _) = paused();
    let kinds = || {
        handle
            .handles()
            .iter()
            .map(|info| info.kind)
            .collect::<Vec<_>>()
    };
    let timer = Timer::new(&handle);
    let idle = Idle::new(&handle);
    let sent = AsyncHandle::new(&handle, |_| ()).unwrap();
    drop(idle);
    // Takes the place that the idle hook has left, but not in the list.
    let hook = Check::new(&handle);
    assert_eq!(kinds(), [Keeper::Timer, Keeper::Async, Keeper::Check]);
    let [first, second, third] = &*handle.handles() else {
        panic!("three are open");
    };
    assert!(!first.active && second.active && !third.active);
    assert_eq!(first.created_at, timer.created_at());
    hook.unref();
    assert!(!handle.handles()[2].referenced);
    drop((timer.close(), sent.close(), hook.close()));
    assert!(
        handle
            .handles()
            .iter()
            .all(|info| info.closing && !info.active)
    );
    finish(&mut event_loop);
    assert_eq!(kinds(), []);
}

/// libuv's `default_loop_close`: there is no default loop; each `block_on` makes one and drops it.
#[test]
fn r009_block_on_makes_a_loop_of_its_own() {
    let first = block_on(async { LoopHandle::current() });
    assert!(first.is_closed());
    let second = block_on(async move {
        assert!(!LoopHandle::current().is_closed() && first.is_closed());
        LoopHandle::current()
    });
    assert!(second.is_closed());
    assert!(LoopHandle::try_current().is_none());
}

/// libuv's `loop_configure`.
#[test]
fn r011_a_configured_loop_runs_timers() {
    let builder = Builder::new()
        .lane_budget(100.try_into().unwrap())
        .unhandled_panic(UnhandledPanic::Ignore);
    let mut event_loop = builder.build().unwrap();
    let fired = Rc::new(Cell::new(false));
    let (timer, mark) = (Timer::new(&event_loop.handle()), fired.clone());
    timer.start(ms(1), ZERO, move |_| mark.set(true)).unwrap();
    finish(&mut event_loop);
    assert!(fired.get());
}

/// The compiler keeps loops and handles on their thread; this is what may leave it.
#[test]
fn r012_only_remotes_and_senders_leave_the_thread() {
    fn may_leave<T: Send + Sync + 'static>(value: T) -> T {
        std::thread::spawn(move || value).join().unwrap()
    }
    let mut event_loop = EventLoop::new().unwrap();
    let called = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let mark = called.clone();
    let sent = AsyncHandle::new(&event_loop.handle(), move |_| {
        mark.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let sent = sent.unwrap();
    may_leave(sent.sender()).send().unwrap();
    may_leave(event_loop.remote()).wake().unwrap();
    turn(&mut event_loop);
    assert!(called.load(std::sync::atomic::Ordering::Relaxed));
}

/// libuv's `loop_instant_close`: everything may be under way when the loop goes.
#[test]
fn libuv_loop_instant_close() {
    let (mut event_loop, handle, trace) = paused();
    let held = Rc::new(());
    let hold = || {
        let (held, log) = (held.clone(), trace.clone());
        move || {
            log.log("ran");
            drop(held);
        }
    };
    let (timer, idle) = (Timer::new(&handle), Idle::new(&handle));
    let (in_timer, in_idle) = (Cell::new(Some(hold())), Cell::new(Some(hold())));
    timer
        .start(ms(1), ZERO, move |_| drop(in_timer.take()))
        .unwrap();
    let (socket, _peer) = udp_pair();
    let source = Source::new(&handle, socket).unwrap();
    let (in_reader, in_sleeper, in_waiter) = (hold(), hold(), hold());
    let tasks = [
        handle.spawn(async move {
            let _ = source.readable().await;
            in_reader();
        }),
        handle.spawn(async move {
            sleep(ms(1)).await;
            in_sleeper();
        }),
        handle.spawn(async move {
            check().await;
            in_waiter();
        }),
    ];
    // Two tasks wait for good, the third has queued itself for a phase that will not come.
    handle.next_tick(|| LoopHandle::current().stop());
    turn(&mut event_loop);
    idle.start(move |_| drop(in_idle.take())).unwrap();
    drop(handle.set_immediate(hold()));
    handle.next_tick(hold());
    handle.queue_microtask(hold());
    drop(handle.spawn(async { unreachable!("never polled") }));
    event_loop
        .remote()
        .call(|| unreachable!("never called"))
        .unwrap();
    timer.close().then(hold());

    drop(event_loop);
    assert_eq!(trace.take(), "");
    assert_eq!(Rc::strong_count(&held), 1, "all was dropped");
    for task in tasks {
        assert!(task.is_finished());
        assert!(tokio_test::block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_handle_to_a_dropped_loop_does_nothing() {
    let (event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(1), ZERO, trace.on("timer")).unwrap();
    let (socket, _peer) = udp_pair();
    let source = Source::new(&handle, socket).unwrap();
    drop(handle.set_immediate(|| ()));
    drop(event_loop);
    assert!(handle.is_closed());
    assert!(
        !handle.is_alive(),
        "nothing is left that could wake the program: {:?}",
        handle.keepers()
    );
    let held = Rc::new(());
    let (a, b, c, d) = (held.clone(), held.clone(), held.clone(), held.clone());
    handle.next_tick(move || drop(a));
    handle.queue_microtask(move || drop(b));
    let immediate = handle.set_immediate(move || drop(c));
    assert!(!immediate.clear());
    let task = handle.spawn(async move { drop(d) });
    let other = handle.spawn(async {});
    assert!(task.is_finished() && task.abort_handle().is_finished());
    assert_ne!(task.id(), other.id());
    assert_eq!(task.id(), task.abort_handle().id());
    task.abort();
    assert_eq!(Rc::strong_count(&held), 1);
    assert!(tokio_test::block_on(task).unwrap_err().is_cancelled());
    tokio_test::block_on(timer.close());
    tokio_test::block_on(source.close());
    assert!(!handle.is_alive());
}

#[test]
fn a_source_of_a_dropped_loop_is_refused() {
    let (event_loop, handle, _) = paused();
    drop(event_loop);
    let (socket, _peer) = udp_pair();
    assert!(Source::new(&handle, socket).is_err());
    assert_eq!(handle.handles(), []);
}

/// Futures that were polled by the test, not by a task that goes with the loop.
#[test]
fn what_waits_for_a_dropped_loop_may_be_dropped_later() {
    let (event_loop, handle, _) = paused();
    let (socket, _peer) = udp_pair();
    let source = Source::new(&handle, socket).unwrap();
    let (timer, mut waiting) = (Timer::new(&handle), source.readable());
    let (mut phase, mut sleep) = (check(), event_loop.enter(|| sleep(ms(1))));
    let mut closed = timer.close();
    event_loop.enter(|| {
        assert_pending!(tokio_test::task::spawn(&mut waiting).poll());
        assert_pending!(tokio_test::task::spawn(&mut phase).poll());
        assert_pending!(tokio_test::task::spawn(&mut sleep).poll());
        assert_pending!(tokio_test::task::spawn(&mut closed).poll());
    });
    assert_eq!(handle.keepers().len(), 4);
    drop(event_loop);
    assert!(!handle.is_alive());
    assert!(!source.is_active());
    source.unref();
    drop((waiting, phase, sleep.unref(), closed));
    source.ref_();
    drop((source, timer));
    assert!(!handle.is_alive() && handle.handles().is_empty());
}

/// Drops run user code; here it uses the loop that is going.
#[test]
fn futures_may_use_the_loop_while_it_drops_them() {
    struct Restless(LoopHandle);
    impl Drop for Restless {
        fn drop(&mut self) {
            let task = self.0.spawn(async { unreachable!() });
            assert!(task.is_finished());
            phaseloop::next_tick(|| unreachable!());
            drop(phaseloop::set_immediate(|| unreachable!()));
            drop(sleep(ms(1)));
            assert!(Timer::new(&self.0).start(ZERO, ZERO, |_| ()).is_err());
        }
    }
    let (mut event_loop, handle, _) = paused();
    let restless = Restless(handle.clone());
    let task = handle.spawn(async move {
        let _restless = restless;
        pending::<()>().await;
    });
    turn(&mut event_loop);
    drop(event_loop);
    assert!(task.is_finished());
}

/// libuv's `callback_stack`: starting something never calls back from within.
#[test]
fn libuv_callback_stack() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        let handle = LoopHandle::current();
        let timer = Timer::new(&handle);
        timer
            .start(ZERO, ZERO, |_| unreachable!("dropped at the end"))
            .unwrap();
        timer.close().then(log.call("closed"));
        drop(handle.set_immediate(log.call("immediate")));
        handle.next_tick(log.call("tick"));
        handle.queue_microtask(log.call("microtask"));
        let inner = log.clone();
        drop(handle.spawn(async move { inner.log("task") }));
        let sent = AsyncHandle::new(&handle, |_| unreachable!("dropped at the end")).unwrap();
        sent.sender().send().unwrap();
        log.log("end");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "end tick microtask task closed immediate");
}

/// A callback that owns its handle is a cycle; the loop breaks it when it goes, also if the handle
/// is stopped.
#[test]
fn callbacks_that_own_their_handles_go_with_the_loop() {
    let (event_loop, handle, _) = paused();
    let held = Rc::new(());
    for started in [true, false] {
        let (timer, idle) = (Rc::new(Timer::new(&handle)), Rc::new(Idle::new(&handle)));
        let (own, inside) = (timer.clone(), held.clone());
        let callback = move |_: &Timer| _ = (&own, &inside);
        timer.start(ms(1), ZERO, callback).unwrap();
        let (own, inside) = (idle.clone(), held.clone());
        idle.start(move |_| _ = (&own, &inside)).unwrap();
        if !started {
            timer.stop();
            idle.stop();
        }
    }
    assert_eq!(Rc::strong_count(&held), 5);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&held), 1, "all callbacks were dropped");
}

/// A source that is dropped in the callback that has woken its reader no longer counts.
#[cfg(unix)]
#[test]
fn a_source_dropped_by_its_own_callback_lets_the_loop_end() {
    use futures::future::{Either, select};
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::pin::pin;

    let (mut event_loop, handle, trace) = paused();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let source = Source::new(&handle, ours).unwrap();
    theirs.write_all(b"x").unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        // Woken, it finds that something else is done as well, waits once more and is dropped with
        // its source.
        for is_done in [false, true] {
            let other = async {
                if !is_done {
                    pending::<()>().await;
                }
            };
            let read = std::future::poll_fn(|cx| {
                let would_block = || Err::<(), _>(std::io::ErrorKind::WouldBlock.into());
                source.poll_read_with(cx, |mut stream| {
                    let mut byte = [0];
                    match std::io::Read::read(&mut stream, &mut byte) {
                        Ok(_) => Ok(()),
                        Err(_) => would_block(),
                    }
                })
            });
            match select(pin!(read), pin!(other)).await {
                Either::Left(_) => log.log("read"),
                Either::Right(_) => log.log("left"),
            }
        }
        drop(source);
    }));
    // Bounded: it would wait for ever otherwise.
    for _ in 0..5 {
        event_loop.turn(Some(ZERO)).unwrap();
    }
    assert_eq!(trace.take(), "read left");
    assert_eq!(handle.keepers(), []);
    assert!(!handle.is_alive());
}
