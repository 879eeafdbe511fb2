//! The poll phase, R87–R100, through `io::Source` over sockets: which task an event wakes, which is
//! not any more, and when the wait ends.
//!
//! Ours differs in R87 and R99 (a source is registered once, when it is made), in R88 (events are
//! edges, and the source remembers them: what is ready stays so until an attempt would block) and
//! in R92 (a signal does not shorten the wait). R95 and R96 are about signals.

use crate::util::child::in_child;
use crate::util::sockets::{Local, local_pair, udp_pair};
use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::process::Command;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use futures::FutureExt;
use phaseloop::io::Source;
use phaseloop::phase::{Check, Prepare, check};
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, EventLoop, Handle, JoinHandle, LoopHandle, RunMode, spawn};

/// A source and its peer.
fn stream_pair(handle: &LoopHandle) -> (Rc<Source<Local>>, Local) {
    let (ours, theirs) = local_pair();
    ours.set_nonblocking(true).unwrap();
    (Rc::new(Source::new(handle, ours).unwrap()), theirs)
}

/// Spawns a task that reads one byte and logs.
fn read_byte(
    handle: &LoopHandle,
    source: &Rc<Source<Local>>,
    trace: &Trace,
    name: &'static str,
) -> JoinHandle<()> {
    let (source, log) = (source.clone(), trace.clone());
    handle.spawn(async move {
        let mut byte = [0];
        let read = source.read_with(|mut stream| stream.read(&mut byte)).await;
        match read.unwrap() {
            0 => log.log(format_args!("{name}=end")),
            _ => log.log(format_args!("{name}={}", char::from(byte[0]))),
        }
    })
}

#[test]
fn a_reader_is_woken_between_prepare_and_check() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    let (source, mut peer) = stream_pair(&handle);
    let _task = read_byte(&handle, &source, &trace, "read");
    peer.write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare read=x check");
}

/// Ours: an edge is remembered.
#[test]
fn r088_what_is_ready_stays_ready_until_an_attempt_would_block() {
    let (mut event_loop, handle, _) = paused();
    let (source, mut peer) = stream_pair(&handle);
    let _keep = AsyncHandle::new(&handle, |_| ()).unwrap();
    // Tries at once, without a turn of the loop.
    let mut byte = [0];
    let mut read = || {
        let read = source.read_with(|mut stream| stream.read(&mut byte));
        read.now_or_never().map(|read| read.unwrap())
    };
    peer.write_all(b"ab").unwrap();
    assert_eq!(read(), None, "no event has come yet");
    turn(&mut event_loop);
    assert_eq!([read(), read(), read()], [Some(1), Some(1), None]);
    turn(&mut event_loop);
    assert_eq!(read(), None, "nothing new");
    peer.write_all(b"c").unwrap();
    turn(&mut event_loop);
    assert_eq!([read(), read()], [Some(1), None]);
}

#[test]
fn the_end_and_a_hangup_are_readable() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    peer.write_all(b"x").unwrap();
    drop(peer);
    for expected in ["read=x", "read=end", "read=end"] {
        let _task = read_byte(&handle, &source, &trace, "read");
        finish(&mut event_loop);
        assert_eq!(trace.take(), expected);
    }
}

#[test]
fn a_writer_waits_until_there_is_room() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    let (writer, log) = (source.clone(), trace.clone());
    let total = Rc::new(Cell::new(0));
    let count = total.clone();
    drop(handle.spawn(async move {
        let chunk = [0; 1 << 16];
        while count.get() < 1 << 22 {
            let written = writer.write_with(|mut stream| stream.write(&chunk)).await;
            count.set(count.get() + written.unwrap());
        }
        log.log("written");
        drop(writer);
    }));
    turn(&mut event_loop);
    assert!(
        source.is_active() && total.get() < 1 << 22,
        "the buffer is full"
    );
    drop(source);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        all.len()
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "written");
    assert_eq!(reader.join().unwrap(), total.get());
}

/// 1024 descriptors of one socket, all readable again whenever a byte comes, and the first reader
/// of each batch sends the next one. In a process of its own, which may open that many.
#[cfg(unix)]
#[test]
fn r089_full_batches_are_followed_up_to_48_in_all() {
    let raise = "ulimit -n 4096; exec \"$@\"";
    let test = "r089_full_batches_are_followed_up_to_48_in_all";
    let child = in_child(&["sh", "-c", raise, "sh"], test, || {
        let (mut event_loop, handle, trace) = paused();
        let (ours, peer) = local_pair();
        let (calls, peer) = (Rc::new(Cell::new(0_usize)), Rc::new(peer));
        for _ in 0..1024 {
            let source = Source::new(&handle, ours.try_clone().unwrap()).unwrap();
            let (calls, peer) = (calls.clone(), peer.clone());
            drop(handle.spawn(async move {
                let never: std::io::Result<()> = source
                    .read_with(|_| {
                        if calls.get() % 1024 == 0 {
                            (&*peer).write_all(b"x").unwrap();
                        }
                        calls.set(calls.get() + 1);
                        Err(ErrorKind::WouldBlock.into())
                    })
                    .await;
                never.unwrap();
            }));
        }
        let (check, log, count) = (Check::new(&handle), trace.clone(), calls.clone());
        check.start(move |_| log.log(count.take())).unwrap();
        (&*peer).write_all(b"x").unwrap();
        turn(&mut event_loop);
        assert_eq!(trace.take(), "49152");
    });
    let Some(child) = child else { return };
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

#[test]
fn r090_an_event_for_nobody_does_not_end_the_wait() {
    let (mut event_loop, handle, trace) = paused();
    let (_source, mut peer) = stream_pair(&handle);
    // The socket is writable from the start, and readable now. No task waits for either.
    peer.write_all(b"x").unwrap();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "timer@10");
    assert_eq!(handle.turns(), 1);
}

/// Ours differs in R92: the second one makes the wait of libuv too short.
#[test]
fn r090_r092_events_without_a_waiter_do_not_shorten_the_wait() {
    // The timer counts from the time that the loop has cached, which is that of its creation.
    let start = Instant::now();
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let (_source, mut peer) = stream_pair(&handle);
    let fired = Rc::new(Cell::new(false));
    let (timer, mark) = (Timer::new(&handle), fired.clone());
    timer.start(ms(100), ZERO, move |_| mark.set(true)).unwrap();
    let writer = std::thread::spawn(move || {
        for _ in 0..5 {
            peer.write_all(b"x").unwrap();
            std::thread::sleep(ms(15));
        }
    });
    event_loop.run(RunMode::Once).unwrap();
    assert!(fired.get() && start.elapsed() >= ms(100));
    assert_eq!(handle.turns(), 1);
    writer.join().unwrap();
}

/// The wake-up counts, though its walk calls nothing.
#[test]
fn r090_a_send_to_a_handle_that_is_gone_ends_the_wait() {
    for dropped in [false, true] {
        let (mut event_loop, handle, trace) = paused();
        let check = Check::new(&handle);
        check.start(trace.on_stamped("check")).unwrap();
        let timer = Timer::new(&handle);
        timer
            .start(ms(10), ZERO, trace.on_stamped("timer"))
            .unwrap();
        let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
        sent.sender().send().unwrap();
        if dropped {
            drop(sent);
        } else {
            sent.close().then(trace.call("closed"));
        }
        event_loop.run(RunMode::Once).unwrap();
        let first = trace.take();
        assert_eq!(first, ["check@0 closed", "check@0"][usize::from(dropped)]);
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), "check@10 timer@10");
    }
}

#[test]
fn r090_a_send_served_by_the_walk_it_came_from_ends_the_next_wait() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on_stamped("check")).unwrap();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    let later: Rc<RefCell<Option<AsyncHandle>>> = Rc::default();
    let (log, to_later) = (trace.clone(), later.clone());
    let first = AsyncHandle::new(&handle, move |_| {
        log.log("first");
        if let Some(later) = &*to_later.borrow() {
            later.sender().send().unwrap();
        }
    })
    .unwrap();
    later.replace(Some(AsyncHandle::new(&handle, trace.on("later")).unwrap()));
    first.sender().send().unwrap();
    for expected in ["first later check@0", "check@0", "check@10 timer@10"] {
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), expected);
    }
}

#[test]
fn r090_a_wake_of_a_remote_is_one_turn() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    event_loop.remote().wake().unwrap();
    for expected in ["", "timer@10"] {
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), expected);
    }
}

/// A process that is stopped and continued again and again while it waits: each time its wait is
/// interrupted.
#[cfg(target_os = "linux")]
#[test]
fn r091_r092_a_signal_neither_ends_nor_shortens_the_wait() {
    let test = "r091_r092_a_signal_neither_ends_nor_shortens_the_wait";
    let child = in_child(&[], test, || {
        let start = Instant::now();
        let mut event_loop = EventLoop::new().unwrap();
        let fired = Rc::new(Cell::new(false));
        let (timer, mark) = (Timer::new(&event_loop.handle()), fired.clone());
        timer.start(ms(300), ZERO, move |_| mark.set(true)).unwrap();
        event_loop.run(RunMode::Once).unwrap();
        assert!(fired.get() && start.elapsed() >= ms(300));
        assert_eq!(event_loop.handle().turns(), 1);
    });
    let Some(mut child) = child else { return };
    let signals = format!("kill -STOP {0} && kill -CONT {0}", child.id());
    while child.try_wait().unwrap().is_none() {
        // Fails when the child has just ended, and its end is what counts.
        let _ = Command::new("sh").args(["-c", &signals]).output().unwrap();
        std::thread::sleep(ms(20));
    }
    let child = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{stderr}");
}

/// Whichever comes first of two in a batch takes the other one's wait back.
#[test]
fn r093_who_stops_waiting_in_the_batch_is_not_woken() {
    let (mut event_loop, handle, trace) = paused();
    let tasks: Rc<RefCell<Vec<JoinHandle<()>>>> = Rc::default();
    let mut peers = Vec::new();
    for _ in 0..2 {
        let (source, peer) = stream_pair(&handle);
        let (all, log) = (tasks.clone(), trace.clone());
        let task = handle.spawn(async move {
            source.readable().await.unwrap();
            log.log("woken");
            all.borrow().iter().for_each(JoinHandle::abort);
        });
        tasks.borrow_mut().push(task);
        peers.push(peer);
    }
    turn(&mut event_loop);
    peers
        .iter_mut()
        .for_each(|peer| peer.write_all(b"x").unwrap());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "woken");
}

/// Hundreds of sockets with something to read; the first reader of the batch stops all others.
#[test]
fn libuv_watcher_cross_stop() {
    let (mut event_loop, handle, _) = paused();
    let woken = Rc::new(Cell::new(0));
    let tasks: Rc<RefCell<Vec<JoinHandle<()>>>> = Rc::default();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut addresses = Vec::new();
    for _ in 0..200 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        addresses.push(socket.local_addr().unwrap());
        let source = Source::new(&handle, socket).unwrap();
        let (all, woken) = (tasks.clone(), woken.clone());
        let task = handle.spawn(async move {
            source
                .read_with(|socket| socket.recv(&mut [0; 8]))
                .await
                .unwrap();
            woken.set(woken.get() + 1);
            all.borrow().iter().for_each(JoinHandle::abort);
        });
        tasks.borrow_mut().push(task);
    }
    turn(&mut event_loop);
    for address in addresses {
        sender.send_to(b"x", address).unwrap();
    }
    finish(&mut event_loop);
    assert_eq!(woken.get(), 1);
    assert_eq!(handle.handles(), []);
}

/// Whichever comes first drops the other source and makes a new one, which gets its slot and, most
/// likely, its number.
#[test]
fn r094_a_new_source_does_not_inherit_events() {
    let (mut event_loop, handle, trace) = paused();
    let sources: Rc<RefCell<Vec<Option<Source<UdpSocket>>>>> = Rc::default();
    let mut peers = Vec::new();
    for index in 0..2_usize {
        let (socket, peer) = udp_pair();
        sources
            .borrow_mut()
            .push(Some(Source::new(&handle, socket).unwrap()));
        peers.push(peer);
        let (all, log) = (sources.clone(), trace.clone());
        drop(handle.spawn(async move {
            poll_fn(|cx| match &all.borrow()[index] {
                Some(source) => source.poll_readable(cx),
                None => Poll::Pending,
            })
            .await
            .unwrap();
            log.log("first");
            drop(all.borrow_mut()[1 - index].take());
            let (socket, peer) = udp_pair();
            // It would be writable; only the stale event could make it readable.
            let new = Source::new(&LoopHandle::current(), socket).unwrap();
            drop(spawn(async move {
                new.readable().await.unwrap();
                log.log("inherited");
                drop(peer);
            }));
        }));
    }
    turn(&mut event_loop);
    for peer in &peers {
        peer.send(b"x").unwrap();
    }
    turn(&mut event_loop);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first");
}

#[test]
fn r098_one_source_a_descriptor() {
    let (_event_loop, handle, _) = paused();
    let (socket, _peer) = udp_pair();
    let shared: &'static UdpSocket = Box::leak(Box::new(socket));
    let first = Source::new(&handle, shared).unwrap();
    let second = Source::new(&handle, shared);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(handle.handles().len(), 1);
    drop(first);
    Source::new(&handle, shared).unwrap();
    // Elsewhere, files are no sources by their type.
    #[cfg(unix)]
    {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let refused = Source::new(&handle, file);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    }
    assert_eq!(handle.handles(), []);
}

/// The descriptor of the source is closed, a copy of it is not; the kernel must have forgotten
/// both.
#[cfg(target_os = "linux")]
#[test]
fn r100_a_copy_of_a_closed_descriptor_makes_no_events() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    for close in [true, false] {
        let (mut event_loop, handle, _) = paused();
        let (socket, peer) = udp_pair();
        let copy = socket.try_clone().unwrap();
        let source = Source::new(&handle, socket).unwrap();
        let keep = AsyncHandle::new(&handle, |_| ()).unwrap();
        turn(&mut event_loop);
        if close {
            drop(source.close());
            turn(&mut event_loop);
        } else {
            drop(source);
        }
        peer.send(b"x").unwrap();
        let mut fds = [PollFd::new(&copy, PollFlags::IN)];
        assert_eq!(
            poll(&mut fds, None).unwrap(),
            1,
            "the copy has something to read"
        );
        let backend_fd = event_loop.backend_fd();
        let mut fds = [PollFd::from_borrowed_fd(backend_fd, PollFlags::IN)];
        let now = Timespec::default();
        assert_eq!(
            poll(&mut fds, Some(&now)).unwrap(),
            0,
            "the loop has nothing to do"
        );
        drop(keep);
    }
}

#[test]
fn those_who_wait_are_woken_in_order_with_a_drain_after_each() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    for (name, tick) in [("a", "tick-a"), ("b", "tick-b")] {
        let (source, log) = (source.clone(), trace.clone());
        drop(handle.spawn(async move {
            source.readable().await.unwrap();
            log.log(name);
            phaseloop::next_tick(log.call(tick));
        }));
    }
    turn(&mut event_loop);
    peer.write_all(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a tick-a b tick-b");
}

#[test]
fn the_poll_functions_remember_the_last_waker_only() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    for name in ["first", "last"] {
        let (source, log) = (source.clone(), trace.clone());
        drop(handle.spawn(async move {
            poll_fn(|cx| source.poll_readable(cx)).await.unwrap();
            log.log(name);
        }));
    }
    turn(&mut event_loop);
    peer.write_all(b"x").unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "last");
    assert!(!source.is_active());
}

#[test]
fn a_read_that_is_given_up_has_not_read() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    let given_up = read_byte(&handle, &source, &trace, "given-up");
    turn(&mut event_loop);
    given_up.abort();
    turn(&mut event_loop);
    assert!(!source.is_active() && !handle.is_alive());
    peer.write_all(b"x").unwrap();
    let _task = read_byte(&handle, &source, &trace, "read");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "read=x");
}

#[test]
fn both_directions_are_independent() {
    let (mut event_loop, handle, trace) = paused();
    let (source, mut peer) = stream_pair(&handle);
    let _reader = read_byte(&handle, &source, &trace, "read");
    let (writer, log) = (source.clone(), trace.clone());
    drop(handle.spawn(async move {
        writer
            .write_with(|mut stream| stream.write(b"y"))
            .await
            .unwrap();
        log.log("written");
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "written");
    assert!(source.is_active(), "the reader waits");
    let mut byte = [0];
    peer.read_exact(&mut byte).unwrap();
    peer.write_all(&byte).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "read=y");
}

/// Has many tasks wait for one source, takes some of them back out of the middle, and wakes the
/// others.
fn wait_by_the_thousand(waiters: usize) {
    let (event_loop, handle, _trace) = paused();
    let (ours, theirs) = udp_pair();
    let source = Rc::new(Source::new(&handle, ours).unwrap());
    let woken = Rc::new(RefCell::new(Vec::new()));
    event_loop.block_on(async {
        let tasks: Vec<_> = (0..waiters)
            .map(|number| {
                let (source, woken) = (source.clone(), woken.clone());
                spawn(async move {
                    source.readable().await.unwrap();
                    woken.borrow_mut().push(number);
                })
            })
            .collect();
        check().await;
        // From the back to the front: each has many before and behind it.
        for task in tasks[waiters / 4..waiters / 2].iter().rev() {
            task.abort();
        }
        check().await;
        theirs.send(b"x").unwrap();
        for task in tasks {
            drop(task.await);
        }
    });
    let stayed = (0..waiters / 4).chain(waiters / 2..waiters);
    assert!(woken.borrow().iter().copied().eq(stayed), "in their order");
}

// What one of a million of them costs is counted by the benchmarks; see `--growth`.
#[test]
fn thousands_wait_for_one_source_and_are_woken_in_their_order() {
    wait_by_the_thousand(40_000);
}
