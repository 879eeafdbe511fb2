//! The loop and other threads: `Remote`, wakes from elsewhere, and what outlives the loop. Wakes
//! arrive in the poll phase, in order, none is lost and none counts twice; a future is touched on
//! its own thread only; a loop that is gone says so to `Remote`s and is silent to wakers, also
//! while it goes.

use crate::util::child::in_child;
use crate::util::panics::panic_of;
use crate::util::trace::{Trace, ZERO, finish, paused, turn};
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;

use futures::channel::oneshot;
use phaseloop::observe::{Observer, Wants};
use phaseloop::phase::{Check, Prepare};
use phaseloop::task::{Info, yield_now};
use phaseloop::{
    AsyncHandle, Builder, EventLoop, Handle, LoopHandle, Remote, RemoteJoinHandle, RunMode,
    block_on, spawn,
};

/// Fails if it is dropped on another thread than the one that made it.
struct Homebound(thread::ThreadId);

impl Homebound {
    fn new() -> Self {
        Self(thread::current().id())
    }
}

impl Drop for Homebound {
    fn drop(&mut self) {
        if thread::current().id() != self.0 {
            // A panic might go unseen here.
            eprintln!("a future was dropped on a foreign thread");
            std::process::abort();
        }
    }
}

/// A future that never completes, sends its waker at its first poll, and must be dropped on its
/// owner thread.
fn waker_giver(wakers: Sender<Waker>) -> impl Future<Output = ()> {
    let (home, mut polls) = (Homebound::new(), 0);
    poll_fn(move |cx| {
        assert_eq!(thread::current().id(), home.0);
        polls += 1;
        if polls == 1 {
            wakers.send(cx.waker().clone()).unwrap();
        }
        Poll::Pending
    })
}

/// A loop with one task that waits for nothing but its waker.
fn loop_and_waker() -> (EventLoop, Waker) {
    let mut event_loop = EventLoop::new().unwrap();
    let (sender, wakers): (_, Receiver<Waker>) = channel();
    drop(event_loop.handle().spawn(waker_giver(sender)));
    turn(&mut event_loop);
    (event_loop, wakers.recv().unwrap())
}

// Calls.

#[test]
fn calls_arrive_in_the_poll_phase_in_order_each_with_a_drain() {
    let (mut event_loop, handle, _) = paused();
    thread_local!(static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) });
    let trace = Trace::new(&handle);
    TRACE.set(Some(trace.clone()));
    let log = |label: &'static str| TRACE.with_borrow(|trace| trace.as_ref().unwrap().log(label));
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    let remote = event_loop.remote();
    let sender = thread::spawn(move || {
        for (label, tick) in [("first", "tick"), ("second", "tock")] {
            let call = move || {
                log(label);
                phaseloop::next_tick(move || log(tick));
            };
            remote.call(call).unwrap();
        }
    });
    sender.join().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare first tick second tock check");
    TRACE.set(None);
}

#[test]
fn a_call_from_a_call_waits_for_the_next_turn() {
    let (mut event_loop, handle, _) = paused();
    let turns = Arc::new(Mutex::new(Vec::new()));
    let (remote, seen) = (event_loop.remote(), turns.clone());
    let outer = remote.clone();
    outer
        .call(move || {
            let inner = seen.clone();
            remote
                .call(move || inner.lock().unwrap().push(LoopHandle::current().turns()))
                .unwrap();
            seen.lock().unwrap().push(LoopHandle::current().turns());
        })
        .unwrap();
    assert!(turn(&mut event_loop), "alive because of what was sent");
    assert!(!turn(&mut event_loop));
    assert_eq!(*turns.lock().unwrap(), [1, 2]);
    assert!(!handle.is_alive());
}

/// So that a flood of them leaves the other phases their turn.
#[test]
fn a_flood_of_calls_is_spread_over_turns_in_order() {
    let (mut event_loop, handle, trace) = paused();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for n in 0..5000 {
        let seen = seen.clone();
        event_loop
            .remote()
            .call(move || seen.lock().unwrap().push(n))
            .unwrap();
    }
    let sent = AsyncHandle::new(&handle, trace.on("async")).unwrap();
    sent.unref();
    sent.sender().send().unwrap();
    turn(&mut event_loop);
    let first = seen.lock().unwrap().len();
    assert!(0 < first && first < 5000, "{first}");
    assert_eq!(trace.take(), "async", "the flood does not keep it waiting");
    assert_eq!(
        handle.next_timeout(),
        Some(ZERO),
        "the rest is not slept on"
    );
    finish(&mut event_loop);
    assert!(seen.lock().unwrap().iter().copied().eq(0..5000));
}

#[test]
fn a_sleeping_loop_is_woken_by_a_call_a_stop_and_a_wake() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let _forever = AsyncHandle::new(&handle, |_| ()).unwrap();
    let ways: [fn(&Remote); 3] = [
        |remote| remote.call(|| ()).unwrap(),
        |remote| remote.stop().unwrap(),
        |remote| remote.wake().unwrap(),
    ];
    for wake in ways {
        let remote = event_loop.remote();
        let other = thread::spawn(move || wake(&remote));
        assert!(event_loop.run(RunMode::Once).unwrap());
        other.join().unwrap();
    }
    let remote = event_loop.remote();
    let other = thread::spawn(move || remote.stop().unwrap());
    assert!(event_loop.run(RunMode::Default).unwrap());
    other.join().unwrap();
}

/// libuv's `async_null_cb`: nothing to call, but the wait ends.
#[test]
fn libuv_async_null_cb() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let check = Check::new(&handle);
    check.start(Check::stop).unwrap();
    let remote = event_loop.remote();
    let other = thread::spawn(move || remote.wake());
    finish(&mut event_loop);
    assert_eq!(handle.turns(), 1);
    other.join().unwrap().unwrap();
}

// Wakes.

#[test]
fn a_wake_from_another_thread_resumes_block_on() {
    for _ in 0..100 {
        let (sender, receiver) = oneshot::channel();
        let other = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(
            block_on(receiver),
            Ok(7),
            "although nothing is left on the loop"
        );
        other.join().unwrap();
    }
}

#[test]
fn a_wake_from_another_thread_resumes_a_task() {
    let output = block_on(async {
        let (sender, receiver) = oneshot::channel();
        let task = spawn(async { receiver.await.unwrap() });
        thread::spawn(move || sender.send("sent").unwrap());
        task.await.unwrap()
    });
    assert_eq!(output, "sent");
}

#[test]
fn wakes_coalesce_into_one_poll() {
    let mut event_loop = EventLoop::new().unwrap();
    let polls = Rc::new(RefCell::new(0));
    let (sender, wakers) = channel();
    let count = polls.clone();
    drop(event_loop.handle().spawn(poll_fn(move |cx| {
        *count.borrow_mut() += 1;
        sender.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    })));
    turn(&mut event_loop);
    assert_eq!(polls.take(), 1);
    let waker = wakers.recv().unwrap();
    for _ in 0..3 {
        let threads = [(); 4].map(|()| {
            let waker = waker.clone();
            thread::spawn(move || (0..50).for_each(|_| waker.wake_by_ref()))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(event_loop.handle().is_alive());
        turn(&mut event_loop);
        assert_eq!(polls.take(), 1);
        assert!(!event_loop.handle().is_alive());
    }
}

#[test]
fn a_wake_on_the_loops_thread_but_outside_a_run_is_not_lost() {
    let (mut event_loop, waker) = loop_and_waker();
    waker.wake();
    assert!(event_loop.handle().is_alive());
    turn(&mut event_loop);
    assert!(!event_loop.handle().is_alive());
}

#[test]
fn a_wake_from_another_loop_of_the_thread_is_not_lost() {
    let (mut ours, handle, trace) = paused();
    let (theirs, _, _) = paused();
    let (sender, receiver) = oneshot::channel();
    let log = trace.clone();
    drop(handle.spawn(async move {
        receiver.await.unwrap();
        log.log("woken");
    }));
    turn(&mut ours);
    theirs.block_on(async { sender.send(()).unwrap() });
    assert_eq!(trace.take(), "", "not by the loop that runs");
    finish(&mut ours);
    assert_eq!(trace.take(), "woken");
}

/// Ping-pong of 1000 rounds: each round parks one side or the other.
#[test]
fn no_wake_is_lost_between_a_sleeping_loop_and_a_thread() {
    let (request, requests) = channel::<oneshot::Sender<u32>>();
    let server = thread::spawn(move || {
        for (n, reply) in (0..).zip(requests) {
            reply.send(n).unwrap();
        }
    });
    block_on(async move {
        for n in 0..1000 {
            let (reply, replied) = oneshot::channel();
            request.send(reply).unwrap();
            assert_eq!(replied.await, Ok(n));
        }
    });
    server.join().unwrap();
}

/// Many producers, a burst each; the loop counts.
#[test]
fn calls_of_many_threads_all_arrive() {
    let mut event_loop = EventLoop::new().unwrap();
    let _forever = AsyncHandle::new(&event_loop.handle(), |_| ()).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let threads = [(); 4].map(|()| {
        let (remote, count) = (event_loop.remote(), count.clone());
        thread::spawn(move || {
            for _ in 0..500 {
                let count = count.clone();
                let call = move || {
                    if count.fetch_add(1, Ordering::Relaxed) + 1 == 2000 {
                        LoopHandle::current().stop();
                    }
                };
                remote.call(call).unwrap();
            }
        })
    });
    assert!(event_loop.run(RunMode::Default).unwrap());
    assert_eq!(count.load(Ordering::Relaxed), 2000);
    for thread in threads {
        thread.join().unwrap();
    }
}

// Tasks from elsewhere.

#[test]
fn a_remote_task_may_hold_an_rc_and_its_output_comes_back() {
    let mut event_loop = EventLoop::new().unwrap();
    let _forever = AsyncHandle::new(&event_loop.handle(), |_| ()).unwrap();
    let remote = event_loop.remote();
    let home = thread::current().id();
    let other = thread::spawn(move || {
        let task = remote.spawn(move || async move {
            let local = Rc::new(Homebound::new());
            yield_now().await;
            assert_eq!(local.0, home);
            20 + 1
        });
        let output = task.unwrap().join();
        remote.stop().unwrap();
        output
    });
    event_loop.run(RunMode::Default).unwrap();
    assert_eq!(other.join().unwrap().unwrap(), 21);
}

#[test]
fn a_remote_task_can_be_awaited_by_any_executor() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.remote();
    let other = thread::spawn(move || {
        let task = remote.spawn(|| async { "output" }).unwrap();
        tokio_test::block_on(task)
    });
    while !other.is_finished() {
        turn(&mut event_loop);
    }
    assert_eq!(other.join().unwrap().unwrap(), "output");
}

#[test]
fn a_panic_in_a_remote_task_or_its_maker_goes_to_the_handle() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.remote();
    let in_task = remote.spawn(|| async { panic!("in the task") }).unwrap();
    let in_maker = remote
        .spawn(|| {
            if true {
                panic!("in the maker");
            }
            async {}
        })
        .unwrap();
    finish(&mut event_loop);
    assert!(in_task.is_finished() && in_maker.is_finished());
    let (in_task, in_maker): (Result<(), _>, _) = (in_task.join(), in_maker.join());
    assert_eq!(
        in_task.unwrap_err().to_string(),
        "the task panicked: in the task"
    );
    assert_eq!(
        in_maker.unwrap_err().to_string(),
        "the task panicked: in the maker"
    );
}

#[test]
fn a_remote_task_can_be_aborted_from_its_thread() {
    let mut event_loop = EventLoop::new().unwrap();
    let (started, starts) = channel();
    let remote = event_loop.remote();
    let other = thread::spawn(move || {
        let task = remote
            .spawn(move || async move {
                let _home = Homebound::new();
                started.send(()).unwrap();
                pending::<()>().await;
            })
            .unwrap();
        starts.recv().unwrap();
        task.abort();
        task.join()
    });
    while !other.is_finished() {
        turn(&mut event_loop);
    }
    assert!(other.join().unwrap().unwrap_err().is_cancelled());
    assert_eq!(event_loop.handle().tasks().len(), 0);

    // Before the loop has seen the task at all.
    let task = event_loop.remote().spawn(pending::<()>).unwrap();
    task.abort();
    finish(&mut event_loop);
    assert!(task.join().unwrap_err().is_cancelled());
}

/// The abort comes between the look of the call for one, and the task that it can reach: an
/// observer stands in for the other thread, so that the moment is always met.
#[test]
fn an_abort_that_meets_the_spawn_on_the_loop_is_not_lost() {
    type Place = Arc<Mutex<Option<RemoteJoinHandle<()>>>>;
    struct AbortsAtSpawn(Place);
    impl Observer for AbortsAtSpawn {
        fn wants(&self) -> Wants {
            Wants::TASKS
        }

        fn spawned(&self, _: &Info) {
            self.0.lock().unwrap().as_ref().unwrap().abort();
        }
    }

    let place = Place::default();
    let observer = AbortsAtSpawn(place.clone());
    let mut event_loop = Builder::new().observer(observer).build().unwrap();
    let is_polled = Arc::new(AtomicBool::new(false));
    let seen = is_polled.clone();
    let task = event_loop.remote().spawn(move || async move {
        seen.store(true, Ordering::Relaxed);
        pending::<()>().await;
    });
    *place.lock().unwrap() = Some(task.unwrap());
    finish(&mut event_loop);
    let task = place.lock().unwrap().take().unwrap();
    assert!(task.is_finished(), "the abort was lost");
    assert!(task.join().unwrap_err().is_cancelled());
    assert!(!is_polled.load(Ordering::Relaxed));
}

#[test]
fn a_remote_task_goes_on_without_its_handle_and_knows_its_line() {
    let mut event_loop = EventLoop::new().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let mark = done.clone();
    let make = move || async move {
        let info = phaseloop::task::current().unwrap();
        assert!(info.spawned_at().file().ends_with("remote.rs"));
        mark.store(true, Ordering::Relaxed);
    };
    drop(event_loop.remote().spawn(make).unwrap());
    finish(&mut event_loop);
    assert!(done.load(Ordering::Relaxed));
}

// After the end.

#[test]
fn a_loop_that_is_gone_refuses_and_drops_on_the_spot() {
    let event_loop = EventLoop::new().unwrap();
    let (remote, handle) = (event_loop.remote(), event_loop.handle());
    let async_handle = AsyncHandle::new(&handle, |_| ()).unwrap();
    let sender = async_handle.sender();
    assert!(!remote.is_closed());
    drop(event_loop);
    assert!(remote.is_closed() && handle.is_closed());
    let held = Arc::new(());
    let inside = held.clone();
    assert!(
        remote
            .call(move || drop(inside))
            .unwrap_err()
            .is_loop_closed()
    );
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(remote.spawn(|| async {}).unwrap_err().is_loop_closed());
    assert!(remote.stop().unwrap_err().is_loop_closed());
    assert!(remote.wake().unwrap_err().is_loop_closed());
    assert!(sender.send().is_err());
    assert!(
        AsyncHandle::new(&handle, |_| ())
            .unwrap_err()
            .is_loop_closed()
    );
    assert!(!async_handle.is_active());
}

#[test]
fn what_was_sent_and_not_received_is_dropped_with_the_loop() {
    let event_loop = EventLoop::new().unwrap();
    let held = Arc::new(());
    let inside = held.clone();
    event_loop.remote().call(move || drop(inside)).unwrap();
    let task = event_loop.remote().spawn(|| async {}).unwrap();
    drop(event_loop);
    assert_eq!(Arc::strong_count(&held), 1);
    assert!(task.join().unwrap_err().is_cancelled());
}

#[test]
fn wakers_outlive_the_loop() {
    let (event_loop, waker) = loop_and_waker();
    let clone = waker.clone();
    drop(event_loop);
    waker.wake_by_ref();
    thread::spawn(move || {
        waker.wake_by_ref();
        drop(waker.clone());
        waker.wake();
    })
    .join()
    .unwrap();
    clone.wake();

    // Also the waker of the future of `block_on`.
    let event_loop = EventLoop::new().unwrap();
    let waker = event_loop.block_on(poll_fn(|cx| Poll::Ready(cx.waker().clone())));
    waker.wake_by_ref();
    assert_eq!(event_loop.block_on(async { 1 }), 1);
    drop(event_loop);
    waker.wake_by_ref();
    thread::spawn(move || waker.wake()).join().unwrap();
}

#[test]
fn wakers_outlive_the_thread_of_the_loop() {
    let waker = thread::spawn(|| loop_and_waker().1).join().unwrap();
    waker.wake_by_ref();
    waker.wake();
}

#[test]
fn a_woken_task_is_dropped_at_home_with_the_loop() {
    for _ in 0..50 {
        let (event_loop, waker) = loop_and_waker();
        thread::spawn(move || waker.wake()).join().unwrap();
        drop(event_loop);
    }
}

/// Other threads wake, call and send for as long as they can, while the loop runs a little and
/// goes.
#[test]
fn teardown_races_with_senders() {
    for round in 0..100 {
        let mut event_loop = EventLoop::new().unwrap();
        let (sender, wakers) = channel();
        for _ in 0..4 {
            drop(event_loop.handle().spawn(waker_giver(sender.clone())));
        }
        turn(&mut event_loop);
        let wakers: Vec<_> = wakers.try_iter().collect();
        let async_handle = AsyncHandle::new(&event_loop.handle(), |_| ()).unwrap();
        let threads = [(); 2].map(|()| {
            let (remote, wakers) = (event_loop.remote(), wakers.clone());
            let async_sender = async_handle.sender();
            thread::spawn(move || {
                while !remote.is_closed() {
                    for waker in &wakers {
                        waker.wake_by_ref();
                    }
                    let _ = async_sender.send();
                    let call = remote.call(|| ());
                    let spawned = remote.spawn(|| async { Homebound::new().0 });
                    // It returns or is cancelled; it never hangs.
                    let joined = spawned.map(|task| task.join().is_ok());
                    if call.is_err() {
                        assert!(joined.is_err(), "once closed, closed for good");
                    }
                }
                wakers.into_iter().for_each(Waker::wake);
            })
        });
        for _ in 0..round % 5 {
            turn(&mut event_loop);
        }
        drop(event_loop);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

/// In a process of its own, because other tests open and close descriptors, too.
#[cfg(target_os = "linux")]
#[test]
fn a_loop_that_is_gone_holds_no_descriptor_whatever_outlives_it() {
    let test = "a_loop_that_is_gone_holds_no_descriptor_whatever_outlives_it";
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let child = in_child(&[], test, || {
        let before = open();
        let mut strays = Vec::new();
        for _ in 0..3 {
            let mut event_loop = EventLoop::new().unwrap();
            let remote = event_loop.handle().remote();
            let far = remote.spawn(pending::<()>).unwrap();
            let near = event_loop.handle().spawn(pending::<()>());
            let abort = near.abort_handle();
            let wakers: Rc<RefCell<Vec<Waker>>> = Rc::default();
            event_loop.block_on(poll_fn(|cx| {
                wakers.borrow_mut().push(cx.waker().clone());
                Poll::Ready(())
            }));
            let kept = wakers.clone();
            let task = event_loop.handle().spawn(poll_fn(move |cx| {
                kept.borrow_mut().push(cx.waker().clone());
                Poll::<()>::Pending
            }));
            turn(&mut event_loop);
            assert!(open() > before);
            drop(event_loop);
            strays.push((remote, far, near, abort, wakers, task));
        }
        assert_eq!(open(), before);
        for (remote, _, near, abort, wakers, _) in &strays {
            assert!(remote.wake().is_err());
            near.abort();
            abort.abort();
            wakers.borrow().iter().for_each(Waker::wake_by_ref);
        }
        assert_eq!(open(), before);
    });
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
    }
}

#[test]
fn a_handle_that_is_polled_after_its_output_panics() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.remote();
    let thread = thread::spawn(move || {
        let mut handle = remote.spawn(|| async { 7 }).unwrap();
        let output = tokio_test::block_on(&mut handle);
        let text = panic_of(|| tokio_test::block_on(&mut handle));
        (output.unwrap(), handle.is_finished(), text)
    });
    while !thread.is_finished() {
        event_loop.run(RunMode::NoWait).unwrap();
    }
    let (output, is_finished, text) = thread.join().unwrap();
    assert_eq!((output, is_finished), (7, true));
    assert_eq!(text, "`RemoteJoinHandle` polled after completion");
}

#[test]
fn a_join_on_the_loops_own_thread_panics_in_place_of_waiting_for_ever() {
    let event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let spawn_one = || remote.spawn(|| async { 1 }).unwrap();
    let outside = spawn_one();
    let text = panic_of(|| outside.join());
    assert!(text.contains("would wait for ever: `.await` the handle"));
    let inside = spawn_one();
    event_loop.block_on(async {
        assert!(panic_of(|| inside.join()).contains("would wait for ever"));
        let done = spawn_one();
        while !done.is_finished() {
            phaseloop::task::yield_now_immediate().await;
        }
        assert_eq!(done.join().unwrap(), 1, "it has completed");
    });
}
