//! The paused clock of the feature `test-util`: it moves by `advance`, and by itself when the loop
//! would wait; what is due fires in order; other threads are waited for in real time.

use crate::util::panics::panic_of;
use crate::util::sockets::udp_pair;
use crate::util::trace::{ZERO, finish, ms, paused, turn};
use std::thread;
use std::time::{Duration, Instant};

use phaseloop::phase::Check;
use phaseloop::time::{Timer, advance, is_paused, now, pause, resume, sleep};
use phaseloop::{AsyncHandle, EventLoop, Handle, LoopHandle, RunMode, block_on, spawn};

#[test]
fn a_paused_loop_jumps_to_the_next_deadline() {
    let (mut event_loop, handle, trace) = paused();
    for (name, days) in [("late", 300), ("early", 100)] {
        let log = trace.clone();
        drop(handle.spawn(async move {
            sleep(Duration::from_secs(days * 86_400)).await;
            log.log(name);
        }));
    }
    let start = handle.now();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "early late");
    assert_eq!(handle.now() - start, Duration::from_secs(300 * 86_400));
}

#[test]
fn a_clock_that_is_advanced_to_its_end_fires_what_is_due_and_no_more() {
    let (event_loop, _, trace) = paused();
    let log = trace.clone();
    event_loop.block_on(async {
        let for_ever = spawn(sleep(Duration::MAX));
        let late = trace.clone();
        spawn(async move {
            sleep(Duration::from_secs(1 << 30)).await;
            late.log("late");
        })
        .detach();
        phaseloop::task::yield_now_immediate().await;
        for _ in 0..2 {
            advance(Duration::MAX).await;
            trace.log("advanced");
        }
        assert!(!for_ever.is_finished());
    });
    assert_eq!(log.take(), "late advanced advanced");
}

#[test]
fn a_paused_clock_stands_still_while_there_is_something_to_do() {
    let (event_loop, _, _) = paused();
    event_loop.block_on(async {
        let start = now();
        thread::sleep(ms(2));
        for _ in 0..100 {
            phaseloop::task::yield_now_immediate().await;
        }
        assert_eq!(now(), start);
        assert_eq!(LoopHandle::current().now(), start.into_std());
    });
}

#[test]
fn a_callback_moves_the_clock_and_what_is_due_then_fires_in_the_next_timers_phase() {
    let (mut event_loop, handle, trace) = paused();
    let [first, second, late] = [(); 3].map(|()| Timer::new(&handle));
    let (log, clock) = (trace.clone(), handle.clone());
    let moving = move |_: &Timer| {
        let before = clock.now();
        clock.advance_time(ms(20));
        assert_eq!(clock.now() - before, ms(20), "refreshed at once");
        log.stamp("moved");
    };
    first.start(ms(10), ZERO, moving).unwrap();
    second.start(ms(20), ZERO, trace.on_stamped("due")).unwrap();
    late.start(ms(31), ZERO, trace.on_stamped("late")).unwrap();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    check.unref();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "check moved@30", "not in the pass that runs");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "check due@30");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "check late@31");
}

#[test]
fn the_clock_of_a_loop_that_does_not_run_can_be_moved() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ms(3), trace.on_stamped("once"))
        .unwrap();
    handle.advance_time(ms(25));
    assert_eq!((timer.due_in(), trace.take().as_str()), (ZERO, ""));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "once@25", "one jump, one call");
    assert_eq!(timer.due_in(), ms(3));
    let running = EventLoop::new().unwrap().handle();
    let text = panic_of(|| running.advance_time(ms(1)));
    assert!(text.contains("tests/time/virtual_clock.rs"), "{text}");
}

#[test]
fn advance_fires_what_has_become_due_in_order() {
    let (event_loop, _, trace) = paused();
    event_loop.block_on(async {
        for (name, milliseconds) in [("c", 30), ("a", 10), ("d", 31), ("b", 20)] {
            let log = trace.clone();
            drop(spawn(async move {
                sleep(ms(milliseconds)).await;
                log.log(name);
            }));
        }
        phaseloop::task::yield_microtask().await;
        advance(ms(30)).await;
        assert_eq!(trace.take(), "a b c");
        advance(ms(1)).await;
        assert_eq!(trace.take(), "d");
    });
}

#[test]
fn advance_is_one_jump() {
    let (event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ms(10), trace.on_stamped("tick"))
        .unwrap();
    event_loop.block_on(advance(ms(35)));
    assert_eq!(trace.take(), "tick@35");
    event_loop.block_on(advance(ms(10)));
    assert_eq!(trace.take(), "tick@45");
}

#[test]
fn advance_refuses_a_clock_that_runs() {
    let message = panic_of(|| block_on(advance(ms(1))));
    assert!(message.contains("phaseloop::time::pause()"), "{message}");
}

#[test]
fn outside_a_loop_there_is_no_clock() {
    let uses: [fn(); 3] = [pause, resume, || assert!(is_paused())];
    for bad_use in uses {
        assert!(panic_of(bad_use).contains("phaseloop::block_on"));
    }
}

#[test]
fn a_clock_can_be_paused_and_resumed() {
    block_on(async {
        assert!(!is_paused());
        pause();
        pause();
        assert!(is_paused());
        let stopped = now();
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(now() - stopped, Duration::from_secs(3600));
        resume();
        resume();
        assert!(!is_paused());
        let resumed = now();
        assert!(
            resumed - stopped >= Duration::from_secs(3600),
            "it never goes back"
        );
        let (real, start) = (Instant::now(), now());
        sleep(ms(3)).await;
        assert!(real.elapsed() >= ms(3) && now() - start >= ms(3));
        assert!(now() - stopped < Duration::from_secs(7200));
        // And once more, from where it is.
        pause();
        let stopped = now();
        advance(ms(5)).await;
        assert_eq!(now() - stopped, ms(5));
    });
}

#[test]
fn what_has_arrived_comes_before_a_jump() {
    let (mut event_loop, handle, trace) = paused();
    let sent = AsyncHandle::new(&handle, trace.on_stamped("async")).unwrap();
    sent.unref();
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    let sender = sent.sender();
    thread::spawn(move || sender.send().unwrap())
        .join()
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "async@0 timer@10");
}

/// An event in the kernel comes first, too.
#[test]
fn what_is_readable_comes_before_a_jump() {
    let (mut event_loop, handle, trace) = paused();
    let (socket, peer) = udp_pair();
    let source = phaseloop::io::Source::new(&handle, socket).unwrap();
    let log = trace.clone();
    drop(handle.spawn(async move {
        source.readable().await.unwrap();
        log.stamp("readable");
    }));
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    peer.send(b"x").unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "readable@0 timer@10");
}

/// Without a deadline there is nothing to jump to.
#[test]
fn without_a_deadline_another_thread_is_waited_for() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let sent = AsyncHandle::new(&handle, move |sent| {
        log.stamp("async");
        sent.unref();
    });
    let sender = sent.as_ref().unwrap().sender();
    let other = thread::spawn(move || {
        thread::sleep(ms(2));
        sender.send().unwrap();
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "async@0");
    other.join().unwrap();
}

/// Work on the pool takes real time, and the clock waits for it.
#[test]
fn no_jump_while_work_is_in_flight() {
    let (event_loop, _, trace) = paused();
    event_loop.block_on(async {
        let log = trace.clone();
        let late = spawn(async move {
            sleep(ms(1)).await;
            log.stamp("slept");
        });
        let work = phaseloop::spawn_blocking(|| thread::sleep(ms(5)));
        work.await.unwrap();
        trace.stamp("worked");
        late.await.unwrap();
    });
    assert_eq!(trace.take(), "worked@0 slept@1");
}

#[test]
fn a_jump_is_seen_by_all_of_the_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (check, timer) = (Check::new(&handle), Timer::new(&handle));
    check.start(trace.on_stamped("check")).unwrap();
    check.unref();
    timer
        .start(ms(10), ZERO, trace.on_stamped("timer"))
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "check@10 timer@10");
}
