//! Walking over the handles of a loop to act on them (R7, R8), and closing a handle while others
//! wait for it (R110).

use crate::util::sockets::{Local, local_pair};
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::{self, Read, Write};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use phaseloop::io::Source;
use phaseloop::phase::{Check, Idle, Prepare};
use phaseloop::time::Timer;
use phaseloop::{AnyHandle, AsyncHandle, Handle, Keeper, LoopHandle, RunMode};

/// The kinds that a walk visits.
fn kinds(handle: &LoopHandle) -> Vec<Keeper> {
    let mut kinds = Vec::new();
    handle.walk(|each| kinds.push(each.kind()));
    kinds
}

fn source(handle: &LoopHandle) -> (Source<Local>, Local) {
    let (ours, theirs) = local_pair();
    ours.set_nonblocking(true).unwrap();
    (Source::new(handle, ours).unwrap(), theirs)
}

fn is_cancelled<T>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| {
        let text = error.to_string();
        text.contains("canceled") || text.contains("cancelled")
    })
}

#[test]
fn r007_all_handles_are_visited_in_the_order_of_creation_started_or_not() {
    let (mut event_loop, handle, _) = paused();
    let sent = AsyncHandle::new(&handle, |_| ()).unwrap();
    let (timer, check) = (Timer::new(&handle), Check::new(&handle));
    let (source, _peer) = source(&handle);
    let all = [Keeper::Async, Keeper::Timer, Keeper::Check, Keeper::Io];
    assert_eq!(kinds(&handle), all);
    drop(timer.close());
    assert_eq!(kinds(&handle), all, "closing ones are");
    turn(&mut event_loop);
    assert_eq!(kinds(&handle), [Keeper::Async, Keeper::Check, Keeper::Io]);
    drop(check);
    assert_eq!(kinds(&handle), [Keeper::Async, Keeper::Io]);
    drop((sent, source));
    assert_eq!(kinds(&handle), []);
}

#[test]
fn the_visitor_sees_and_changes_what_all_handles_have() {
    let (_event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(5), ZERO, trace.on("timer")).unwrap();
    handle.walk(|each| {
        assert!(each.is_active() && each.has_ref() && !each.is_closing());
        assert_eq!(each.created_at(), timer.created_at());
        assert_eq!(*each, timer.any());
        assert_eq!(vec![each.info()], handle.handles());
        each.unref();
    });
    assert!(!timer.has_ref() && !handle.is_alive());
    handle.walk(AnyHandle::ref_);
    assert!(timer.has_ref() && handle.is_alive());
    let view = timer.any();
    drop(timer);
    assert!(view.is_closing() && !view.is_active(), "it is gone");
    handle.walk(|_| unreachable!("there is none"));
    drop(view.close());
}

#[test]
fn r008_handles_made_or_dropped_in_the_walk_are_not_visited_by_it() {
    let (_event_loop, handle, _) = paused();
    let mut made = Vec::new();
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    let (mut second, mut visited) = (Some(second), 0);
    let third = Timer::new(&handle);
    handle.walk(|_| {
        visited += 1;
        made.push(Idle::new(&handle));
        drop(second.take());
    });
    assert_eq!((visited, made.len()), (2, 2));
    // Unlike libuv's, the new ones come last.
    assert_eq!(
        kinds(&handle),
        [Keeper::Timer, Keeper::Timer, Keeper::Idle, Keeper::Idle]
    );
    drop((first, third));
}

#[test]
fn libuv_walk_handles_closes_all_and_each_close_is_reported_in_reverse() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(1), ms(1), trace.on("never")).unwrap();
    let hooks = (
        Idle::new(&handle),
        Prepare::new(&handle),
        Check::new(&handle),
    );
    hooks.0.start(trace.on("never")).unwrap();
    hooks.1.start(trace.on("never")).unwrap();
    hooks.2.start(trace.on("never")).unwrap();
    let sent = AsyncHandle::new(&handle, trace.on("never")).unwrap();
    sent.send().unwrap();
    let log = trace.clone();
    handle.walk(|each| {
        let (log, kind) = (log.clone(), each.kind());
        each.close().then(move || log.log(kind));
        assert!(each.is_closing() && !each.is_active());
    });
    assert_eq!(trace.take(), "", "not inside of the walk");
    assert!(timer.is_closing() && sent.send().is_err());
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "async handle check hook prepare hook idle hook timer"
    );
    assert_eq!((handle.handles(), handle.turns()), (Vec::new(), 1));
    // The owners are left with handles that are closed.
    assert!(
        timer
            .start(ms(1), ZERO, |_| ())
            .unwrap_err()
            .is_handle_closed()
    );
    assert!(hooks.0.start(|_| ()).unwrap_err().is_handle_closed());
}

#[test]
fn a_walk_from_a_callback_closes_the_handle_that_runs_and_those_after_it() {
    let (mut event_loop, handle, trace) = paused();
    let [a, b, c] = [(); 3].map(|()| Timer::new(&handle));
    let (log, all) = (trace.clone(), handle.clone());
    let closing = move |_: &Timer| {
        log.log("a");
        all.walk(|each| each.close().then(log.call("closed")));
    };
    a.start(ms(1), ms(1), closing).unwrap();
    for timer in [&b, &c] {
        timer.start(ms(1), ms(1), trace.on("never")).unwrap();
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a closed closed closed");
}

#[test]
fn what_a_callback_has_captured_may_close_its_handle_once_more() {
    /// Closes a handle when it is dropped.
    struct Closes(Rc<RefCell<Option<AnyHandle>>>, Rc<Cell<u32>>);
    impl Drop for Closes {
        fn drop(&mut self) {
            let reported = self.1.clone();
            if let Some(view) = &*self.0.borrow() {
                view.close().then(move || reported.set(reported.get() + 1));
            }
        }
    }
    let (mut event_loop, handle, _) = paused();
    let (own, reported) = (Rc::default(), Rc::new(Cell::new(0)));
    let guard = Closes(Rc::clone(&own), reported.clone());
    let timer = Timer::new(&handle);
    let callback = move |_: &Timer| {
        let _held = &guard;
    };
    timer.start(ms(1), ZERO, callback).unwrap();
    own.replace(Some(timer.any()));
    drop(timer.close());
    finish(&mut event_loop);
    assert_eq!((reported.get(), handle.keepers()), (1, Vec::new()));
}

#[test]
fn r110_a_source_is_closed_while_futures_wait_and_they_end_before_the_close_is_reported() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = source(&handle);
    let (view, source) = (source.any(), Rc::new(source));
    for name in ["a", "b"] {
        let (source, log) = (source.clone(), trace.clone());
        drop(handle.spawn(async move {
            let read = source.read_with(|mut stream| stream.read(&mut [0; 8]));
            assert!(is_cancelled(read.await));
            log.log(name);
        }));
    }
    let (writing, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        let full = vec![0; 1 << 20];
        loop {
            let written = writing.write_with(|mut stream| stream.write(&full));
            if let Err(error) = written.await {
                assert!(is_cancelled::<()>(Err(error)));
                return log.log("writer");
            }
        }
    }));
    turn(&mut event_loop);
    assert_eq!(handle.keepers(), [(Keeper::Io, 1)]);
    view.close().then(trace.call("closed"));
    assert_eq!(trace.take(), "", "not inside the call");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a b writer closed");
    // Its descriptor is the owner's; it is out of the loop.
    peer.write_all(b"x").unwrap();
    let (late, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        assert!(is_cancelled(late.readable().await));
        assert!(is_cancelled(late.writable().await));
        let read = late.read_with(|mut stream| stream.read(&mut [0; 8]));
        assert!(is_cancelled(read.await));
        log.log("late");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "late");
    let source = Rc::into_inner(source).unwrap();
    assert_eq!(source.into_inner().read(&mut [0; 8]).unwrap(), 1, "open");
}

#[test]
fn a_descriptor_whose_source_was_closed_can_be_watched_by_another_at_once() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, theirs) = local_pair();
    ours.set_nonblocking(true).unwrap();
    let ours: &'static Local = Box::leak(Box::new(ours));
    let first = Source::new(&handle, ours).unwrap();
    drop(first.any().close());
    let second = Source::new(&handle, ours).unwrap();
    // This must not take the other one out of the poller.
    drop(first);
    let log = trace.clone();
    drop(handle.spawn(async move {
        second.readable().await.unwrap();
        log.log("readable");
    }));
    turn(&mut event_loop);
    (&theirs).write_all(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "readable");
}

/// Awaits `future`, which has to end with `ECANCELED`.
fn expect_cancelled<T>(
    handle: &LoopHandle,
    ended: &Rc<Cell<usize>>,
    future: impl Future<Output = io::Result<T>> + 'static,
) -> usize {
    let ended = ended.clone();
    drop(handle.spawn(async move {
        assert!(is_cancelled(future.await));
        ended.set(ended.get() + 1);
    }));
    1
}

/// Awaits `future`, which has to end with `None`.
#[cfg(all(feature = "fs", feature = "signal"))]
fn expect_none<T>(
    handle: &LoopHandle,
    ended: &Rc<Cell<usize>>,
    future: impl Future<Output = Option<T>> + 'static,
) -> usize {
    let ended = ended.clone();
    drop(handle.spawn(async move {
        assert!(future.await.is_none());
        ended.set(ended.get() + 1);
    }));
    1
}

#[cfg(all(
    feature = "fs",
    feature = "net",
    feature = "process",
    feature = "signal"
))]
#[cfg(target_os = "linux")]
#[test]
fn close_all_ends_every_kind_of_wait() {
    use futures::{AsyncReadExt, AsyncWriteExt};
    use phaseloop::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram};
    use phaseloop::signal::{Signal, SignalKind, Signals};
    use phaseloop::{fs, io::pipe, process::Command};

    let mut event_loop = phaseloop::EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let ended = Rc::new(Cell::new(0));
    let (here, count) = (handle.clone(), ended.clone());
    let (waits, child) = event_loop.block_on(async move {
        let mut waits = 0;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let mut client = client.await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        waits += expect_cancelled(&here, &count, async move { client.read(&mut [0; 8]).await });
        // Writes until the peer, which does not read, has no room left.
        waits += expect_cancelled(&here, &count, async move {
            server.write_all(&vec![0; 64 << 20]).await
        });
        waits += expect_cancelled(&here, &count, async move { listener.accept().await });
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        waits += expect_cancelled(
            &here,
            &count,
            async move { udp.recv_from(&mut [0; 8]).await },
        );
        let (datagrams, _other) = UnixDatagram::pair().unwrap();
        waits += expect_cancelled(
            &here,
            &count,
            async move { datagrams.recv(&mut [0; 8]).await },
        );
        let (mut reader, writer) = pipe().unwrap();
        waits += expect_cancelled(&here, &count, async move {
            let _held = writer;
            reader.read(&mut [0; 8]).await
        });
        let mut signals = Signals::new([SignalKind::USR1]).unwrap();
        waits += expect_none(&here, &count, async move { signals.recv().await });
        let mut watch = fs::watch(std::env::temp_dir()).unwrap();
        waits += expect_none(&here, &count, async move {
            loop {
                // All users may write to the directory.
                watch.recv().await?;
            }
            #[expect(unreachable_code, reason = "gives the block its type")]
            Some(())
        });
        let mut poll = fs::watch_poll("Cargo.toml", std::time::Duration::from_secs(3600)).unwrap();
        waits += expect_none(&here, &count, async move { poll.recv().await });
        let child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        waits += expect_cancelled(&here, &count, child.exited());
        let signal = Signal::new(&here);
        signal.start(SignalKind::USR2, |_, _| ()).unwrap();
        phaseloop::task::yield_now_immediate().await;
        std::mem::forget(signal);
        (waits, child)
    });
    assert_eq!(ended.get(), 0, "all of them wait");
    handle.walk(|each| drop(each.close()));
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert_eq!(ended.get(), waits);
    assert_eq!(
        (handle.handles(), handle.keepers()),
        (Vec::new(), Vec::new())
    );
    // The child runs on, and can be ended.
    child.start_kill().unwrap();
}

/// The clone of a waker is user code, in the middle of a poll.
#[cfg(all(feature = "fs", feature = "process", feature = "signal"))]
#[cfg(target_os = "linux")]
#[test]
fn a_close_in_the_clone_of_a_waker_ends_the_wait_that_begins() {
    use crate::util::wakers::on_clone;
    use phaseloop::process::Command;
    use phaseloop::signal::{SignalKind, Signals};
    use tokio_test::assert_ready;

    let event_loop = phaseloop::EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let closes = || {
        let handle = handle.clone();
        on_clone(move || handle.walk(|each| drop(each.close())))
    };
    let mut signals = event_loop.enter(|| Signals::new([SignalKind::USR1]).unwrap());
    let polled = signals.poll_recv(&mut Context::from_waker(&closes()));
    assert!(matches!(polled, Poll::Ready(None)));

    let directory = std::env::temp_dir();
    let mut watcher = phaseloop::fs::Watcher::new_on(&handle, directory).unwrap();
    let polled = watcher.poll_recv(&mut Context::from_waker(&closes()));
    assert!(matches!(polled, Poll::Ready(None)));

    let mut command = Command::new("cat");
    command.stdin(std::process::Stdio::piped());
    let child = event_loop.enter(|| command.spawn().unwrap());
    let polled = pin!(child.exited()).poll(&mut Context::from_waker(&closes()));
    assert!(is_cancelled(assert_ready!(polled)));

    let (source, _peer) = source(&handle);
    let polled = pin!(source.readable()).poll(&mut Context::from_waker(&closes()));
    assert!(is_cancelled(assert_ready!(polled)));
}

#[test]
fn a_loop_that_is_dropped_in_the_clone_of_a_waker_ends_the_wait_for_a_close() {
    use crate::util::wakers::on_clone;
    let event_loop = phaseloop::EventLoop::new().unwrap();
    let timer = Timer::new(&event_loop.handle());
    let waker = on_clone(move || drop(event_loop));
    let polled = pin!(timer.close()).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_ready());
}
