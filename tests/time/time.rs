//! The loop's time, R42–R48 and N38: cached, refreshed at known points, the base of timers.
//!
//! Ours differs in R42/R43 (nanoseconds of the monotonic clock, not rounded) and in R46 (a run
//! begins with a fresh time in every mode).

use crate::util::trace::{ZERO, busy, finish, ms, paused, turn};
use std::time::{Duration, Instant};

use phaseloop::phase::{self, Check, Idle, Phase, Prepare};
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, EventLoop, Handle, RunMode};

#[test]
fn r042_r043_the_time_is_the_systems_and_not_rounded() {
    let before = Instant::now();
    let event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    handle.update_time();
    assert!(before <= handle.now() && handle.now() <= Instant::now());

    let (event_loop, handle, _) = paused();
    let start = handle.now();
    event_loop.enter(|| busy(Duration::from_nanos(1)));
    handle.update_time();
    assert_eq!(handle.now() - start, Duration::from_nanos(1));
}

/// Every phase is busy for a while; the label of each shows the time it sees itself.
#[test]
fn r044_the_time_is_refreshed_after_poll_and_before_timers() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, prepare, check) = (
        Idle::new(&handle),
        Prepare::new(&handle),
        Check::new(&handle),
    );
    let work = |label: &'static str| {
        let log = trace.clone();
        move || {
            log.stamp(label);
            busy(ms(1));
        }
    };
    let (in_idle, in_prepare, in_poll) = (work("idle"), work("prepare"), work("poll"));
    let (in_poll2, in_check, in_timer) = (work("poll2"), work("check"), work("timer"));
    let (in_pending, in_closing) = (work("pending"), work("closing"));
    drop(handle.spawn(async move {
        phase::pending().await;
        in_pending();
        phase::closing().await;
        in_closing();
    }));
    idle.start(move |_| in_idle()).unwrap();
    prepare.start(move |_| in_prepare()).unwrap();
    let poll = AsyncHandle::new(&handle, move |_| in_poll()).unwrap();
    let poll2 = AsyncHandle::new(&handle, move |_| in_poll2()).unwrap();
    poll.sender().send().unwrap();
    poll2.sender().send().unwrap();
    check.start(move |_| in_check()).unwrap();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, move |_| in_timer()).unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "pending@0 idle@0 prepare@0 poll@3 poll2@3 check@3 closing@3 timer@7"
    );
    assert_eq!(handle.now(), handle.now(), "and not by asking");
}

#[test]
fn r044_n038_the_time_is_refreshed_by_the_entry_of_a_run() {
    for mode in [RunMode::Default, RunMode::Once, RunMode::NoWait] {
        let (mut event_loop, handle, trace) = paused();
        let idle = Idle::new(&handle);
        let log = trace.clone();
        let stop = move |idle: &Idle| {
            log.stamp("idle");
            idle.stop();
        };
        idle.start(stop).unwrap();
        event_loop.enter(|| busy(ms(5)));
        event_loop.run(mode).unwrap();
        assert_eq!(trace.take(), "idle@5", "{mode:?}");
    }
}

#[test]
fn r045_all_timers_of_a_pass_see_the_same_time() {
    let (mut event_loop, handle, trace) = paused();
    let timers = [(); 3].map(|()| Timer::new(&handle));
    for timer in &timers {
        let log = trace.clone();
        let work = move |_: &Timer| {
            log.stamp("timer");
            busy(ms(10));
        };
        timer.start(ms(1), ZERO, work).unwrap();
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer@1 timer@1 timer@1");
}

/// Ours: 100 ms outside the loop are not waited for once more.
#[test]
fn r046_once_does_not_wait_for_what_has_passed() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(50), ZERO, trace.on_stamped("timer"))
        .unwrap();
    event_loop.enter(|| busy(ms(100)));
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "timer@100");
    assert_eq!(handle.turns(), 1);
}

/// A callback of the poll phase that takes 60 ms and then starts a timer of 40; returns when that
/// fires.
fn timer_after_long_work(update_time: bool) -> String {
    let (mut event_loop, handle, trace) = paused();
    let (timer, log) = (Timer::new(&handle), trace.clone());
    let work = move |sent: &AsyncHandle| {
        busy(ms(60));
        if update_time {
            sent.event_loop().update_time();
        }
        timer.start(ms(40), ZERO, log.on_stamped("timer")).unwrap();
        sent.unref();
    };
    let sent = AsyncHandle::new(&handle, work).unwrap();
    sent.sender().send().unwrap();
    finish(&mut event_loop);
    trace.take()
}

#[test]
fn r047_a_timer_counts_from_the_cached_time() {
    assert_eq!(
        timer_after_long_work(false),
        "timer@60",
        "due when it was started"
    );
    assert_eq!(
        timer_after_long_work(true),
        "timer@100",
        "unless the time is refreshed"
    );
}

/// Here the wait that follows is computed from the same old time, so it is the whole timeout.
#[test]
fn r048_started_in_a_timer_it_waits_its_whole_timeout() {
    let (mut event_loop, handle, trace) = paused();
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    let log = trace.clone();
    let work = move |_: &Timer| {
        busy(ms(60));
        let log = log.clone();
        second
            .start(ms(40), ZERO, move |_| log.stamp("timer"))
            .unwrap();
    };
    first.start(ZERO, ZERO, work).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer@100");
}

/// Without timers the loop reads the clock before the next callback in place of the timers phase.
#[test]
fn r044_without_timers_a_callback_before_the_poll_phase_sees_a_fresh_time() {
    let queued = |phase| {
        let (mut event_loop, handle, trace) = paused();
        let log = trace.clone();
        handle.clone().set_immediate(move || {
            busy(ms(5));
            handle.call_in(phase, move || log.stamp("called"));
        });
        finish(&mut event_loop);
        trace.take()
    };
    for phase in [Phase::Pending, Phase::Idle, Phase::Prepare, Phase::Timers] {
        assert_eq!(queued(phase), "called@5", "{phase}");
    }

    let (mut event_loop, handle, trace) = paused();
    let (prepare, log) = (Prepare::new(&handle), trace.clone());
    prepare.start(move |_| log.stamp("hook")).unwrap();
    prepare.unref();
    handle.clone().set_immediate(move || {
        busy(ms(5));
        handle.set_immediate(|| ());
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "hook@0 hook@5");
}

#[test]
fn r044_without_timers_the_time_is_fresh_when_a_run_returns() {
    let (mut event_loop, handle, _) = paused();
    let start = handle.now();
    for after in 1..3 {
        handle.set_immediate(|| busy(ms(5)));
        turn(&mut event_loop);
        assert_eq!(handle.now() - start, ms(5 * after));
    }
}
