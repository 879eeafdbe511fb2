//! Driving the loop from elsewhere, R330: the backend descriptor becomes readable when the poll
//! phase has something to do and is quiet after the turn; `next_timeout` says how long that may
//! take; `turn` waits no longer than its limit.
#![cfg(target_os = "linux")]

use crate::util::sockets::udp_pair;
use crate::util::trace::{ZERO, busy, ms, paused};
use std::thread;

use phaseloop::io::Source;
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, EventLoop, LoopHandle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether the descriptor is readable, now or, with `wait`, in the end.
fn is_readable(event_loop: &EventLoop, wait: bool) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(
        event_loop.backend_fd(),
        PollFlags::IN,
    )];
    let now = Timespec::default();
    poll(&mut fds, (!wait).then_some(&now)).unwrap() == 1
}

#[test]
fn r330_libuv_embed() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
    event_loop.turn(Some(ZERO)).unwrap();
    for _ in 0..3 {
        assert!(!is_readable(&event_loop, false));
        let sender = sent.sender();
        let other = thread::spawn(move || sender.send().unwrap());
        assert!(
            is_readable(&event_loop, true),
            "for ever if the send went unseen"
        );
        other.join().unwrap();
        assert!(event_loop.turn(Some(ZERO)).unwrap());
        assert_eq!(trace.take(), "async");
        assert!(!is_readable(&event_loop, false), "quiet again");
        event_loop.turn(Some(ZERO)).unwrap();
        assert_eq!(trace.take(), "");
    }
}

/// Whoever drives the loop may wait before its first turn.
#[test]
fn r330_a_send_before_the_first_turn_makes_it_readable() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
    assert!(!is_readable(&event_loop, false));
    sent.sender().send().unwrap();
    assert!(is_readable(&event_loop, false));
    event_loop.turn(Some(ZERO)).unwrap();
    assert_eq!(trace.take(), "async");
    assert!(!is_readable(&event_loop, false));
}

#[test]
fn r330_a_socket_makes_it_readable() {
    let (mut event_loop, handle, trace) = paused();
    let (socket, peer) = udp_pair();
    let source = Source::new(&handle, socket).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        loop {
            source
                .read_with(|socket| socket.recv(&mut [0; 8]))
                .await
                .unwrap();
            log.log("read");
        }
    }));
    event_loop.turn(Some(ZERO)).unwrap();
    for _ in 0..3 {
        assert!(!is_readable(&event_loop, false));
        peer.send(b"x").unwrap();
        assert!(is_readable(&event_loop, true));
        event_loop.turn(Some(ZERO)).unwrap();
        assert_eq!(trace.take(), "read");
    }
}

#[test]
fn r330_timers_are_waited_for_by_the_timeout() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(20), ZERO, trace.on_stamped("timer"))
        .unwrap();
    let timeout = handle.next_timeout().unwrap();
    assert_eq!(timeout, ms(20));
    assert!(event_loop.turn(Some(ZERO)).unwrap());
    assert_eq!(trace.take(), "");
    event_loop.enter(|| busy(timeout));
    assert!(!event_loop.turn(Some(ZERO)).unwrap());
    assert_eq!(trace.take(), "timer@20");
}

/// Something is sent while the loop runs, and it does not get to it in that run.
#[test]
fn r330_what_a_turn_leaves_behind_makes_it_readable_at_once() {
    let (mut event_loop, handle, _) = paused();
    let remote = event_loop.remote();
    drop(handle.set_immediate(move || remote.call(|| LoopHandle::current().stop()).unwrap()));
    event_loop.turn(Some(ZERO)).unwrap();
    assert!(is_readable(&event_loop, false));
    assert!(!event_loop.turn(Some(ZERO)).unwrap());
    assert!(!is_readable(&event_loop, false));
}

/// A wake of a task from the loop's own thread, but outside a run, is one from elsewhere.
#[test]
fn r330_a_wake_outside_the_run_makes_it_readable() {
    let (mut event_loop, handle, _) = paused();
    let (sender, receiver) = futures::channel::oneshot::channel();
    let task = handle.spawn(receiver);
    event_loop.turn(Some(ZERO)).unwrap();
    sender.send(7).unwrap();
    assert!(is_readable(&event_loop, false));
    event_loop.turn(Some(ZERO)).unwrap();
    assert!(task.is_finished());
}

#[test]
fn a_turn_waits_at_most_as_long_as_it_is_told() {
    let (mut event_loop, handle, trace) = paused();
    let (timer, start) = (Timer::new(&handle), handle.now());
    timer
        .start(ms(100), ZERO, trace.on_stamped("timer"))
        .unwrap();
    assert!(event_loop.turn(Some(ms(30))).unwrap());
    assert_eq!(handle.now() - start, ms(30));
    assert_eq!(trace.take(), "");
    assert!(
        !event_loop.turn(Some(ms(1000))).unwrap(),
        "the timer comes first"
    );
    assert_eq!(trace.take(), "timer@100");
    timer
        .start(ms(100), ZERO, trace.on_stamped("timer"))
        .unwrap();
    assert!(!event_loop.turn(None).unwrap());
    assert_eq!(trace.take(), "timer@200");
    assert_eq!(handle.turns(), 3);
    assert!(
        !event_loop.turn(None).unwrap(),
        "nothing is alive, nothing to wait for"
    );
}
