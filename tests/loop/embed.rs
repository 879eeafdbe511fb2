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
fn a_turn_waits_at_most_as_long_as_it_is_asked() {
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

/// The owned descriptor: its readiness alone is enough for a host.
mod backend {
    use super::*;
    use phaseloop::{Backend, NextWait, RunMode, spawn, time::sleep};
    use std::cell::Cell;
    use std::os::fd::AsFd;
    use std::rc::Rc;
    use std::sync::mpsc;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);
    /// The portable poller has no timer.
    const HAS_TIMER: bool = !cfg!(phaseloop_portable_poller);

    fn is_readable(backend: &Backend, wait: bool) -> bool {
        let mut fds = [PollFd::new(backend, PollFlags::IN)];
        let now = Timespec::default();
        poll(&mut fds, (!wait).then_some(&now)).unwrap() == 1
    }

    /// A host that waits for nothing but the descriptor, until `is_done`. It would hang if the
    /// descriptor did not report something.
    fn drive(event_loop: &mut EventLoop, backend: &Backend, is_done: impl Fn() -> bool) -> usize {
        let mut turns = 0;
        while !is_done() {
            let timeout = event_loop.handle().next_wait().timeout();
            let timeout = timeout.filter(|_| !HAS_TIMER);
            let timeout = timeout.map(|timeout| Timespec::try_from(timeout).unwrap());
            poll(&mut [PollFd::new(backend, PollFlags::IN)], timeout.as_ref()).unwrap();
            event_loop.turn(Some(ZERO)).unwrap();
            turns += 1;
        }
        turns
    }

    fn embedded() -> (EventLoop, LoopHandle, Backend) {
        let event_loop = EventLoop::new().unwrap();
        let (handle, backend) = (event_loop.handle(), event_loop.backend().unwrap());
        (event_loop, handle, backend)
    }

    #[test]
    fn timers_make_it_readable_when_they_are_due_and_not_before() {
        let (mut event_loop, handle, backend) = embedded();
        let far = Timer::new(&handle);
        far.start(HOUR, ZERO, |_| unreachable!("not within an hour"))
            .unwrap();
        assert!(!is_readable(&backend, false));
        let fired = Rc::new(Cell::new(0));
        let near = Timer::new(&handle);
        let count = fired.clone();
        near.start(ms(5), ms(5), move |_| count.set(count.get() + 1))
            .unwrap();
        drive(&mut event_loop, &backend, || fired.get() == 3);
        near.stop();
        event_loop.turn(Some(ZERO)).unwrap();
        assert!(!is_readable(&backend, false), "only the far timer is left");
        far.stop();
        assert_eq!(handle.next_wait(), NextWait::Idle);
    }

    #[test]
    fn a_host_makes_few_turns_for_sleeps() {
        let (mut event_loop, handle, backend) = embedded();
        let task = handle.spawn(async {
            for _ in 0..5 {
                sleep(ms(3)).await;
            }
        });
        let turns = drive(&mut event_loop, &backend, || task.is_finished());
        // One for the first poll, and for each sleep one, or two if the timer fires in between.
        assert!(turns <= 12, "{turns} turns for five sleeps");
    }

    #[test]
    fn what_the_host_queues_outside_of_a_turn_makes_it_readable() {
        let (mut event_loop, handle, backend) = embedded();
        let quiet = |event_loop: &mut EventLoop| {
            event_loop.turn(Some(ZERO)).unwrap();
            event_loop.turn(Some(ZERO)).unwrap();
            assert!(!is_readable(&backend, false));
        };
        quiet(&mut event_loop);
        drop(handle.spawn(async {}));
        assert!(is_readable(&backend, false), "a task");
        quiet(&mut event_loop);
        handle.next_tick(|| {});
        assert!(is_readable(&backend, false), "a tick");
        quiet(&mut event_loop);
        handle.queue_microtask(|| {});
        assert!(is_readable(&backend, false), "a microtask");
        quiet(&mut event_loop);
        drop(handle.set_immediate(|| {}));
        assert!(is_readable(&backend, false), "an immediate");
        quiet(&mut event_loop);
        drop(handle.enter(|| spawn(async {})));
        assert!(is_readable(&backend, false), "an entered loop");
        quiet(&mut event_loop);
        let idle = phaseloop::phase::Idle::new(&handle);
        idle.start(|_| {}).unwrap();
        assert!(is_readable(&backend, false), "an idle hook");
        drop(idle);
        quiet(&mut event_loop);
        let timer = Timer::new(&handle);
        drop(timer.close());
        assert!(is_readable(&backend, false), "a close");
        quiet(&mut event_loop);
        handle.stop();
        assert!(is_readable(&backend, false), "a stop");
        quiet(&mut event_loop);
    }

    #[test]
    fn a_sleep_that_begins_inside_enter_is_waited_for() {
        let (mut event_loop, handle, backend) = embedded();
        let task = handle.enter(|| spawn(sleep(ms(2))));
        drive(&mut event_loop, &backend, || task.is_finished());
    }

    #[test]
    fn the_end_of_a_job_makes_it_readable_and_the_job_is_waited_for_without_a_limit() {
        let (mut event_loop, handle, backend) = embedded();
        let (go, wait) = mpsc::channel::<()>();
        let done = Rc::new(Cell::new(false));
        let mark = done.clone();
        let job = handle.queue_work(
            move || wait.recv().unwrap(),
            move |end| {
                end.unwrap();
                mark.set(true);
            },
        );
        job.unwrap();
        event_loop.turn(Some(ZERO)).unwrap();
        assert_eq!(handle.next_wait(), NextWait::Event);
        assert_eq!(handle.next_timeout(), None);
        assert!(!is_readable(&backend, false));
        go.send(()).unwrap();
        drive(&mut event_loop, &backend, || done.get());
        assert_eq!(handle.next_wait(), NextWait::Idle);
    }

    #[test]
    fn now_a_timeout_an_event_and_idle_are_distinguished() {
        let (mut event_loop, handle, trace) = paused();
        assert_eq!(handle.next_wait(), NextWait::Idle);
        assert_eq!(handle.next_wait().timeout(), None, "a host does not spin");
        handle.next_tick(|| {});
        assert_eq!(handle.next_wait(), NextWait::Now);
        event_loop.run(RunMode::NoWait).unwrap();
        let timer = Timer::new(&handle);
        timer.start(ms(20), ZERO, trace.on("timer")).unwrap();
        assert_eq!(handle.next_wait(), NextWait::Timeout(ms(20)));
        timer.stop();
        let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
        assert_eq!(handle.next_wait(), NextWait::Event);
        handle.stop();
        assert_eq!(handle.next_wait(), NextWait::Now);
        assert_eq!(handle.next_wait().timeout(), Some(ZERO));
        event_loop.run(RunMode::NoWait).unwrap();
        drop(sent);
        assert_eq!(handle.next_wait(), NextWait::Idle);
        handle.stop();
        assert_eq!(handle.next_wait(), NextWait::Now, "a stop, also when idle");
    }

    /// Without the turn, the host would find the descriptor readable for ever.
    #[test]
    fn a_turn_delivers_to_what_is_unrefd_although_nothing_keeps_the_loop_alive() {
        use phaseloop::Handle as _;
        let (mut event_loop, handle, backend) = embedded();
        let sends = Rc::new(Cell::new(0));
        let count = sends.clone();
        let sent = AsyncHandle::new(&handle, move |_| count.set(count.get() + 1)).unwrap();
        sent.unref();
        assert_eq!(handle.next_wait(), NextWait::Idle);
        for n in 1..=3 {
            sent.sender().send().unwrap();
            assert!(is_readable(&backend, false));
            assert!(!event_loop.turn(Some(ZERO)).unwrap());
            assert_eq!(sends.get(), n);
            assert!(!is_readable(&backend, false));
        }
    }

    #[test]
    fn the_descriptor_may_move_to_other_threads_and_outlive_the_loop() {
        fn is_free<T: Send + Sync + Clone + AsFd + 'static>(_: &T) {}
        let (event_loop, handle, backend) = embedded();
        is_free(&backend);
        let timer = Timer::new(&handle);
        timer.start(ms(1), ZERO, |_| {}).unwrap();
        let copy = backend.clone();
        drop(event_loop);
        drop((timer, handle));
        drop(backend);
        thread::sleep(ms(5));
        assert!(!is_readable(&copy, false));
    }

    #[test]
    fn a_paused_clock_makes_nothing_readable() {
        let (event_loop, handle, trace) = paused();
        let backend = event_loop.backend().unwrap();
        let timer = Timer::new(&handle);
        timer.start(ms(1), ZERO, trace.on("timer")).unwrap();
        thread::sleep(ms(5));
        assert!(!is_readable(&backend, false));
    }

    #[test]
    fn enter_nests_and_gives_the_former_loop_back() {
        let (one, two) = (EventLoop::new().unwrap(), EventLoop::new().unwrap());
        one.handle().enter(|| {
            let task = two.handle().enter(|| spawn(async {}));
            assert_eq!(two.handle().tasks().len(), 1);
            assert_eq!(LoopHandle::current().tasks().len(), 0);
            drop(task);
        });
        assert!(LoopHandle::try_current().is_none());
    }
}
