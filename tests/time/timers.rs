//! Timer handles, R49–R70: the order of firing, the ready list of a pass, repeating, restarting,
//! liveness.
//!
//! All but one run on the paused clock. Ours differs from libuv in R52: time is counted in
//! nanoseconds and a timer is never early.

use crate::util::trace::{Trace, ZERO, busy, finish, ms, paused, turn};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use phaseloop::phase::{Check, Prepare};
use phaseloop::time::Timer;
use phaseloop::{EventLoop, Handle, Keeper, LoopHandle, RunMode};

/// A one-shot timer that logs its name.
fn one_shot(
    handle: &LoopHandle,
    trace: &Trace,
    name: &'static str,
    timeout: Duration,
) -> Rc<Timer> {
    let timer = Rc::new(Timer::new(handle));
    timer.start(timeout, ZERO, trace.on(name)).unwrap();
    timer
}

#[test]
fn r049_order_is_by_due_time_then_by_start() {
    let (mut event_loop, handle, trace) = paused();
    let _timers = [
        one_shot(&handle, &trace, "late", ms(30)),
        one_shot(&handle, &trace, "a", ms(20)),
        one_shot(&handle, &trace, "b", ms(20)),
        one_shot(&handle, &trace, "early", ms(10)),
        one_shot(&handle, &trace, "c", ms(20)),
    ];
    event_loop.enter(|| busy(ms(40)));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "early a b c late");
}

#[test]
fn r049_a_restart_goes_behind_others_of_the_same_due_time() {
    let (mut event_loop, handle, trace) = paused();
    let a = one_shot(&handle, &trace, "a", ms(5));
    let _b = one_shot(&handle, &trace, "b", ms(5));
    a.start(ms(5), ZERO, trace.on("a")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "b a");
}

#[test]
fn r049_thousands_in_disorder_fire_in_order() {
    let (mut event_loop, handle, _) = paused();
    let fired = Rc::new(Cell::new((0, 0)));
    let timers: Vec<_> = (0..3000_u64)
        .map(|n| {
            let due = n * 7919 % 500;
            let (timer, fired) = (Timer::new(&handle), fired.clone());
            let fire = move |_: &Timer| {
                assert!(fired.get() < (due, n + 1), "after {:?}: {due}", fired.get());
                fired.set((due, n + 1));
            };
            timer.start(ms(due), ZERO, fire).unwrap();
            timer
        })
        .collect();
    // Holes in the heap, to be closed without disorder.
    timers.iter().step_by(3).for_each(Timer::stop);
    finish(&mut event_loop);
    assert_eq!(fired.get().0, 499);
}

#[test]
fn r050_the_due_time_counts_from_the_cached_time() {
    let (mut event_loop, handle, trace) = paused();
    // 7 ms pass that the loop has not looked at.
    event_loop.enter(|| busy(ms(7)));
    let timer = Timer::new(&handle);
    timer
        .start(ms(10), ZERO, trace.on_stamped("fired"))
        .unwrap();
    assert_eq!(timer.due_in(), ms(10));
    handle.update_time();
    assert_eq!(timer.due_in(), ms(3));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "fired@10");
}

/// libuv's `timer_huge_timeout`: beyond the range of the clock is never, and the sum does not wrap.
#[test]
fn r050_a_huge_timeout_is_never_reached() {
    let (mut event_loop, handle, trace) = paused();
    event_loop.enter(|| busy(ms(1)));
    handle.update_time();
    let huge = [
        Duration::MAX,
        Duration::from_nanos(u64::MAX),
        Duration::from_secs(u64::MAX),
    ];
    let never = huge.map(|timeout| one_shot(&handle, &trace, "never", timeout));
    let timer = Timer::new(&handle);
    let stop = move |_: &Timer| never.iter().for_each(|timer| timer.stop());
    timer.start(ms(1), ZERO, stop).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[test]
fn r051_r052_due_at_the_very_nanosecond_and_not_before() {
    let (mut event_loop, handle, trace) = paused();
    let _timer = one_shot(&handle, &trace, "fired", ms(10));
    event_loop.enter(|| busy(ms(10) - Duration::from_nanos(1)));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    event_loop.enter(|| busy(Duration::from_nanos(1)));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "fired");
}

/// libuv's `timer_early_check`, and ours is stricter: by the clock of the OS, not the loop's.
#[test]
fn r052_never_early_in_real_time() {
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    for microseconds in [100, 900, 1000, 1100, 2999] {
        let timeout = Duration::from_micros(microseconds);
        let timer = Timer::new(&handle);
        let started = handle.now();
        let fire = move |_: &Timer| assert!(started.elapsed() >= timeout);
        timer.start(timeout, ZERO, fire).unwrap();
        finish(&mut event_loop);
    }
}

#[test]
fn r053_a_pass_fires_what_was_due_when_it_began() {
    let (mut event_loop, handle, trace) = paused();
    let (soon, at_once) = (Timer::new(&handle), Timer::new(&handle));
    soon.start(ms(5), ZERO, trace.on("soon")).unwrap();
    let first = Timer::new(&handle);
    let log = trace.clone();
    let work = move |first: &Timer| {
        log.log("first");
        // From here on both others are due, too.
        busy(ms(10));
        first.event_loop().update_time();
        at_once.start(ZERO, ZERO, log.on("at-once")).unwrap();
    };
    first.start(ZERO, ZERO, work).unwrap();
    let _second = one_shot(&handle, &trace, "second", ZERO);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first second");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "soon at-once");
}

#[test]
fn r054_a_ready_timer_is_neither_active_nor_alive() {
    let (mut event_loop, handle, trace) = paused();
    let first = Timer::new(&handle);
    let second = Rc::new(Timer::new(&handle));
    let (log, ready) = (trace.clone(), second.clone());
    let look = move |first: &Timer| {
        assert!(!ready.is_active());
        assert_eq!(first.event_loop().keepers(), []);
        log.log("looked");
    };
    first.start(ZERO, ZERO, look).unwrap();
    second.start(ZERO, ZERO, trace.on("second")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "looked second");
}

/// What a timer does to the next one of the same pass.
fn first_does(act: impl Fn(&Timer) + 'static, repeat: Duration) -> String {
    let (mut event_loop, handle, trace) = paused();
    let first = Timer::new(&handle);
    let second = Rc::new(Timer::new(&handle));
    let other = second.clone();
    first.start(ms(10), ZERO, move |_| act(&other)).unwrap();
    second
        .start(ms(10), repeat, trace.on_stamped("second"))
        .unwrap();
    let third = Timer::new(&handle);
    let end = move |_: &Timer| second.stop();
    third.start(ms(25), ZERO, end).unwrap();
    finish(&mut event_loop);
    trace.take()
}

#[test]
fn r055_a_ready_timer_that_is_stopped_or_closed_does_not_fire() {
    assert_eq!(first_does(|_| (), ZERO), "second@10", "the case without");
    assert_eq!(first_does(Timer::stop, ZERO), "");
    assert_eq!(first_does(|second| drop(second.close()), ZERO), "");
}

#[test]
fn r055_a_ready_timer_that_is_dropped_does_not_fire() {
    let (mut event_loop, handle, trace) = paused();
    let first = Timer::new(&handle);
    let second = Rc::new(Cell::new(None));
    let other = second.clone();
    first
        .start(ZERO, ZERO, move |_| drop(other.take()))
        .unwrap();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("second")).unwrap();
    second.set(Some(timer));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[test]
fn r056_a_ready_timer_that_is_started_anew_waits_for_another_pass() {
    let (mut event_loop, handle, trace) = paused();
    let first = Timer::new(&handle);
    let second = Rc::new(Timer::new(&handle));
    let (other, log) = (second.clone(), trace.clone());
    let restart = move |_: &Timer| other.start(ZERO, ZERO, log.on("anew")).unwrap();
    first.start(ZERO, ZERO, restart).unwrap();
    second.start(ZERO, ZERO, trace.on("second")).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "");
    assert!(second.is_active());
    turn(&mut event_loop);
    assert_eq!(trace.take(), "anew");
    assert!(!handle.is_alive());
}

#[test]
fn r057_again_puts_off_a_ready_timer_only_if_it_repeats() {
    let again = |second: &Timer| second.again().unwrap();
    assert_eq!(first_does(again, ms(7)), "second@17 second@24");
    assert_eq!(first_does(again, ZERO), "second@10");
}

#[test]
fn r058_missed_periods_are_not_made_up_for_and_the_schedule_drifts() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let (log, mut calls) = (trace.clone(), 0);
    let tick = move |timer: &Timer| {
        calls += 1;
        log.stamp("tick");
        match calls {
            2 => busy(ms(35)),
            4 => timer.stop(),
            _ => {}
        }
    };
    timer.start(ms(10), ms(10), tick).unwrap();
    finish(&mut event_loop);
    // The wait after the long call is measured from before it, so it takes its whole period (R48).
    assert_eq!(trace.take(), "tick@10 tick@20 tick@65 tick@75");
}

#[test]
fn r059_in_its_callback_a_repeating_timer_is_armed_and_a_one_shot_is_not() {
    let (mut event_loop, handle, trace) = paused();
    let (repeating, single) = (Timer::new(&handle), Timer::new(&handle));
    let log = trace.clone();
    let look = move |timer: &Timer| {
        log.log(format_args!("{}/{:?}", timer.is_active(), timer.due_in()));
        timer.stop();
    };
    repeating.start(ms(1), ms(20), look.clone()).unwrap();
    single.start(ms(2), ZERO, look).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "true/20ms false/0ns");
}

#[test]
fn r060_a_repeat_set_in_the_callback_counts_one_firing_later() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let (log, mut left) = (trace.clone(), 3);
    let tick = move |timer: &Timer| {
        log.stamp("tick");
        timer.set_repeat(ms(50));
        left -= 1;
        if left == 0 {
            timer.stop();
        }
    };
    timer.start(ms(10), ms(10), tick).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick@10 tick@20 tick@70");
}

#[test]
fn r061_a_repeat_set_in_the_callback_of_a_one_shot_does_not_arm_it() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let log = trace.clone();
    let fire = move |timer: &Timer| {
        log.log("fired");
        timer.set_repeat(ms(5));
        assert!(!timer.is_active());
    };
    timer.start(ms(1), ZERO, fire).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "fired");
    timer.again().unwrap();
    assert!(timer.is_active(), "with a repeat, `again` starts it");
}

#[test]
fn r062_a_repeat_set_before_the_first_firing_makes_the_timer_repeat() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let (log, mut left) = (trace.clone(), 2);
    let fire = move |timer: &Timer| {
        log.stamp("fired");
        left -= 1;
        if left == 0 {
            timer.stop();
        }
    };
    timer.start(ms(10), ZERO, fire).unwrap();
    timer.set_repeat(ms(5));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "fired@10 fired@15");
}

/// libuv's `timer_is_closing`. A missing callback cannot be expressed.
#[test]
fn r063_a_closed_timer_does_not_start() {
    let (mut event_loop, handle, trace) = paused();
    let timer = one_shot(&handle, &trace, "first", ms(1));
    drop(timer.close());
    for _ in 0..2 {
        assert!(
            timer
                .start(ZERO, ZERO, |_| ())
                .unwrap_err()
                .is_handle_closed()
        );
        assert!(timer.again().unwrap_err().is_handle_closed());
        // Once while it is closing, once when it is closed.
        finish(&mut event_loop);
    }
    assert_eq!(trace.take(), "");
}

#[test]
fn r063_a_timer_of_a_dropped_loop_does_not_start() {
    let (event_loop, handle, trace) = paused();
    let timer = one_shot(&handle, &trace, "first", ms(1));
    drop(event_loop);
    assert!(!timer.is_active());
    assert!(
        timer
            .start(ZERO, ZERO, |_| ())
            .unwrap_err()
            .is_loop_closed()
    );
    assert!(timer.again().unwrap_err().is_loop_closed());
}

/// libuv's `timer_start_twice`.
#[test]
fn r064_a_second_start_replaces_callback_timeout_and_repeat() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(1000), ms(1000), trace.on("old")).unwrap();
    timer.start(ms(10), ZERO, trace.on_stamped("new")).unwrap();
    assert_eq!(timer.repeat(), ZERO);
    assert_eq!(handle.keepers(), [(Keeper::Timer, 1)]);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "new@10");
}

/// libuv's `timer_again`: the beginning, and that it puts a repeating timer off.
#[test]
fn r065_again_needs_a_start_and_a_repeat() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    assert!(timer.again().unwrap_err().is_never_started());
    assert!(!timer.is_active());

    timer
        .start(ms(10), ZERO, trace.on_stamped("single"))
        .unwrap();
    event_loop.enter(|| busy(ms(4)));
    handle.update_time();
    timer.again().unwrap();
    assert_eq!(timer.due_in(), ms(6), "without a repeat nothing changes");
    timer.set_repeat(ms(30));
    timer.again().unwrap();
    assert_eq!(timer.due_in(), ms(30));
    timer.set_repeat(ZERO);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "single@34");
    timer.again().unwrap();
    assert!(!timer.is_active(), "without a repeat it stays stopped");
}

#[test]
fn r064_a_restart_keeps_the_callback_and_changes_the_times() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    assert!(timer.restart(ms(1), ZERO).unwrap_err().is_never_started());
    assert!(!timer.is_active());

    timer.start(ms(10), ms(5), trace.on_stamped("a")).unwrap();
    let other = Timer::new(&handle);
    other.start(ms(20), ZERO, trace.on_stamped("b")).unwrap();
    timer.restart(ms(20), ZERO).unwrap();
    assert_eq!((timer.due_in(), timer.repeat()), (ms(20), ZERO));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "b@20 a@20", "behind those of its time");

    timer.restart(ms(1), ms(2)).unwrap();
    other.restart(ms(4), ZERO).unwrap();
    timer.unref();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a@21 a@23 b@24");
    drop(timer.close());
    assert!(timer.restart(ms(1), ZERO).unwrap_err().is_handle_closed());
}

#[test]
fn r064_a_timer_restarts_itself_in_its_callback_with_other_times() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let (log, mut left) = (trace.clone(), 3);
    let backing_off = move |timer: &Timer| {
        log.stamp("try");
        left -= 1;
        if left > 0 {
            timer.restart(ms(10 << (3 - left)), ZERO).unwrap();
        }
    };
    timer.start(ms(10), ZERO, backing_off).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "try@10 try@30 try@70");
}

#[test]
fn r066_stop_may_be_called_at_any_time() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.stop();
    timer.start(ms(1), ms(1), trace.on("fired")).unwrap();
    timer.stop();
    timer.stop();
    assert!(!timer.is_active());
    assert!(!handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
}

#[test]
fn r067_due_in_reports_also_a_stopped_timer() {
    let (event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    assert_eq!(timer.due_in(), ZERO);
    timer.start(ms(10), ZERO, |_| ()).unwrap();
    event_loop.enter(|| busy(ms(4)));
    assert_eq!(timer.due_in(), ms(10), "counted from the cached time");
    handle.update_time();
    timer.stop();
    assert_eq!(timer.due_in(), ms(6));
    event_loop.enter(|| busy(ms(10)));
    handle.update_time();
    assert_eq!(timer.due_in(), ZERO, "and not less");
}

/// libuv's `timer_no_run_on_unref`.
#[test]
fn r068_an_unrefd_due_timer_runs_only_if_something_else_is_alive() {
    for mode in [RunMode::Default, RunMode::Once, RunMode::NoWait] {
        let (mut event_loop, handle, trace) = paused();
        let timer = one_shot(&handle, &trace, "fired", ZERO);
        timer.unref();
        assert!(!event_loop.run(mode).unwrap());
        assert_eq!(trace.take(), "", "{mode:?}");
        let _immediate = handle.set_immediate(|| ());
        event_loop.run(mode).unwrap();
        assert_eq!(trace.take(), "fired", "{mode:?}");
    }
}

/// libuv's `timer_huge_repeat`.
#[test]
fn r069_a_huge_repeat_never_fires_again() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Rc::new(Timer::new(&handle));
    timer
        .start(ms(1), Duration::MAX, trace.on_stamped("fired"))
        .unwrap();
    let end = Timer::new(&handle);
    let other = timer.clone();
    end.start(ms(5), ZERO, move |_| {
        assert!(other.is_active());
        other.stop();
    })
    .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "fired@1");
}

/// libuv's `timer_no_double_call_once` and `timer_no_double_call_nowait`.
#[test]
fn r070_an_overdue_repeating_timer_fires_once_a_run() {
    for mode in [RunMode::Once, RunMode::NoWait] {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer
            .start(ms(10), ms(10), trace.on_stamped("tick"))
            .unwrap();
        event_loop.enter(|| busy(ms(35)));
        assert!(event_loop.run(mode).unwrap());
        assert_eq!(trace.take(), "tick@35", "{mode:?}");
    }
}

#[test]
fn libuv_timer() {
    let (mut event_loop, handle, trace) = paused();
    let shots = Rc::new(Cell::new(0));
    let timers: Vec<_> = (0..10_u64)
        .map(|n| {
            let (timer, shots) = (Timer::new(&handle), shots.clone());
            let due = handle.now() + ms(50 * n);
            let fire = move |timer: &Timer| {
                assert!(timer.event_loop().now() >= due);
                shots.set(shots.get() + 1);
                drop(timer.close());
            };
            timer.start(ms(50 * n), ZERO, fire).unwrap();
            timer
        })
        .collect();
    let (repeating, log, mut calls) = (Timer::new(&handle), trace.clone(), 0);
    let tick = move |timer: &Timer| {
        calls += 1;
        log.stamp("tick");
        if calls == 5 {
            timer.close().then(log.call("closed"));
        }
    };
    repeating.start(ms(100), ms(100), tick).unwrap();
    let never = Timer::new(&handle);
    never.start(ms(100), ms(100), trace.on("never")).unwrap();
    never.stop();
    never.unref();
    finish(&mut event_loop);
    assert_eq!(shots.get(), 10);
    assert!(timers.iter().all(Handle::is_closing));
    assert_eq!(
        trace.take(),
        "tick@100 tick@200 tick@300 tick@400 tick@500 closed"
    );
}

#[test]
fn libuv_timer_init() {
    let (_event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    assert_eq!(timer.repeat(), ZERO);
    assert!(!timer.is_active() && !timer.is_closing() && timer.has_ref());
}

#[test]
fn libuv_timer_zero_timeout() {
    let (mut event_loop, handle, trace) = paused();
    let check = Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    check.unref();
    let timer = Timer::new(&handle);
    fn restart(timer: &Timer, log: &Trace, left: u32) {
        log.log("timer");
        let log = log.clone();
        if left > 0 {
            let next = move |timer: &Timer| restart(timer, &log, left - 1);
            timer.start(ZERO, ZERO, next).unwrap();
        }
    }
    let log = trace.clone();
    timer
        .start(ZERO, ZERO, move |timer| restart(timer, &log, 2))
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer check timer check timer");
}

#[test]
fn libuv_timer_run_once() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    for timeout in [ZERO, ms(1)] {
        timer
            .start(timeout, ZERO, trace.on_stamped("timer"))
            .unwrap();
        assert!(!event_loop.run(RunMode::Once).unwrap());
    }
    assert_eq!(trace.take(), "timer@0 timer@1");
    timer.close().then(trace.call("closed"));
    assert!(!event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), "closed");
}

#[test]
fn libuv_timer_from_check() {
    let (mut event_loop, handle, trace) = paused();
    let (check, prepare) = (Check::new(&handle), Rc::new(Prepare::new(&handle)));
    let timer = Rc::new(Timer::new(&handle));
    let (log, tick, before) = (trace.clone(), timer.clone(), prepare.clone());
    let on_check = move |check: &Check| {
        log.log("check");
        let (stop_both, log_timer) = (before.clone(), log.clone());
        let fire = move |_: &Timer| {
            log_timer.log("timer");
            stop_both.stop();
        };
        tick.start(ms(50), ZERO, fire).unwrap();
        before.start(log.on("prepare")).unwrap();
        check.stop();
    };
    check.start(on_check).unwrap();
    timer.start(ZERO, ZERO, trace.on("too-early")).unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "check", "started anew before its pass");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "prepare timer");
}

/// The drop of a replaced callback may run user code: here it starts the very timer that is being
/// started.
#[test]
fn a_replaced_callback_may_restart_the_timer_in_its_drop() {
    struct Restart(std::rc::Weak<Timer>);
    impl Drop for Restart {
        fn drop(&mut self) {
            if let Some(timer) = self.0.upgrade() {
                timer.start(ms(5), ZERO, |_| ()).unwrap();
            }
        }
    }
    let (mut event_loop, handle, trace) = paused();
    let timer = Rc::new(Timer::new(&handle));
    let restart = Restart(Rc::downgrade(&timer));
    let held = move |_: &Timer| _ = &restart;
    timer.start(ms(1), ZERO, held).unwrap();
    timer.start(ms(2), ZERO, trace.on("second")).unwrap();
    assert_eq!(timer.due_in(), ms(5), "the last start counts");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    assert!(!timer.is_active() && !handle.is_alive());
}
