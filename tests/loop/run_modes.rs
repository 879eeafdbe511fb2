//! Running the loop: entry and exit (R13–R20), when the poll phase may wait (R28–R37), and the stop
//! flag (R38–R41).
//!
//! Whether a turn has waited shows on the paused clock: a wait jumps to the next deadline. Ours
//! differs in R15 and R46 (every run refreshes the time), in R19 (the real liveness is returned)
//! and in R36 (descriptors are registered at once, so the timeout needs no exception for those that
//! are not).

use crate::util::sockets::udp_pair;
use crate::util::trace::{Trace, ZERO, busy, finish, ms, paused, turn};
use std::rc::Rc;

use phaseloop::io::Source;
use phaseloop::phase::{self, Check, Idle, Prepare};
use phaseloop::time::{Timer, sleep};
use phaseloop::{AsyncHandle, Handle, LoopHandle, RunMode};

const MODES: [RunMode; 3] = [RunMode::Default, RunMode::Once, RunMode::NoWait];

/// libuv's `loop_update_time`, and `ref`: nothing to do is no reason to wait.
#[test]
fn r013_a_loop_that_is_not_alive_only_refreshes_its_time() {
    for mode in MODES {
        let (mut event_loop, handle, trace) = paused();
        let (idle, timer) = (Idle::new(&handle), Timer::new(&handle));
        idle.start(trace.on("idle")).unwrap();
        timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
        idle.unref();
        timer.unref();
        let before = handle.now();
        event_loop.enter(|| busy(ms(7)));
        assert!(!event_loop.run(mode).unwrap());
        assert_eq!(handle.now() - before, ms(7));
        assert_eq!(trace.take(), "", "{mode:?}");
        assert_eq!(handle.turns(), 0);
    }
}

#[test]
fn r013_a_stopped_loop_that_is_not_alive_refreshes_its_time() {
    for mode in MODES {
        let (mut event_loop, handle, _) = paused();
        let before = handle.now();
        event_loop.enter(|| busy(ms(7)));
        handle.stop();
        assert!(!event_loop.run(mode).unwrap());
        assert_eq!(handle.now() - before, ms(7));

        // One that is alive is left as it is (R40).
        let timer = Timer::new(&handle);
        timer.start(ms(1), ZERO, |_| ()).unwrap();
        event_loop.enter(|| busy(ms(7)));
        handle.stop();
        assert!(event_loop.run(mode).unwrap());
        assert_eq!(handle.now() - before, ms(7));
    }
}

#[test]
fn r014_r015_only_a_default_run_begins_with_due_timers() {
    for (mode, order) in [
        (RunMode::Default, "timer@5 check"),
        (RunMode::Once, "check timer@5"),
        (RunMode::NoWait, "check timer@5"),
    ] {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer.start(ms(5), ZERO, trace.on_stamped("timer")).unwrap();
        drop(handle.set_immediate(trace.call("check")));
        event_loop.enter(|| busy(ms(5)));
        event_loop.run(mode).unwrap();
        assert_eq!(trace.take(), order, "{mode:?}");
    }
}

#[test]
fn r016_a_whole_turn_follows_the_first_timers() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on_stamped("check")).unwrap();
    prepare.unref();
    check.unref();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer prepare check@0");
    assert_eq!(handle.turns(), 1);
}

/// libuv's `run_once` and `run_nowait` with an idle hook: a turn a call.
#[test]
fn r017_once_and_nowait_make_one_turn() {
    for mode in [RunMode::Once, RunMode::NoWait] {
        let (mut event_loop, handle, trace) = paused();
        let idle = Idle::new(&handle);
        let (log, mut left) = (trace.clone(), 3);
        let count = move |idle: &Idle| {
            log.log(left);
            left -= 1;
            if left == 0 {
                idle.stop();
            }
        };
        idle.start(count).unwrap();
        for (label, alive) in [("3", true), ("2", true), ("1", false)] {
            assert_eq!(event_loop.run(mode).unwrap(), alive);
            assert_eq!(trace.take(), label, "{mode:?}");
        }
    }
    let (mut event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    let mut left = 10;
    let count = move |timer: &Timer| {
        left -= 1;
        if left == 0 {
            timer.stop();
        }
    };
    timer.start(ms(1), ms(1), count).unwrap();
    finish(&mut event_loop);
    assert_eq!(handle.turns(), 10, "Default goes on");
}

#[test]
fn r018_a_run_returns_whether_something_is_left() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, trace.on("timer")).unwrap();
    assert!(event_loop.run(RunMode::NoWait).unwrap());
    handle.stop();
    assert!(
        event_loop.run(RunMode::Default).unwrap(),
        "stopped while alive"
    );
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert_eq!(trace.take(), "timer");

    // Measured after the last timers pass: what that has started counts.
    let log = trace.clone();
    timer
        .start(ZERO, ZERO, move |timer| {
            timer.start(ms(1), ZERO, log.on("second")).unwrap();
        })
        .unwrap();
    assert!(event_loop.run(RunMode::NoWait).unwrap());
}

/// Ours: the answer is the real one, not that from before the timers.
#[test]
fn r019_a_stop_in_the_first_timers_ends_the_run_with_the_real_liveness() {
    let (mut event_loop, handle, trace) = paused();
    let (timer, check) = (Timer::new(&handle), Check::new(&handle));
    check.start(trace.on("check")).unwrap();
    check.unref();
    timer
        .start(ZERO, ZERO, |timer| timer.event_loop().stop())
        .unwrap();
    assert!(!event_loop.run(RunMode::Default).unwrap());
    assert_eq!(trace.take(), "", "no turn was made");
    assert_eq!(handle.turns(), 0);
}

/// libuv's `run_nowait`.
#[test]
fn r028_nowait_never_waits() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, trace.on("timer")).unwrap();
    let start = handle.now();
    for _ in 0..3 {
        assert!(event_loop.run(RunMode::NoWait).unwrap());
    }
    assert_eq!(handle.now(), start);
    assert_eq!(trace.take(), "");
}

/// Which time the check phase of the first turn sees if an idle hook stops itself in it.
fn time_after_an_idle_hook_stopped_itself(mode: RunMode) -> String {
    let (mut event_loop, handle, trace) = paused();
    let (idle, check, timer) = (Idle::new(&handle), Check::new(&handle), Timer::new(&handle));
    idle.start(Idle::stop).unwrap();
    check.start(trace.on_stamped("check")).unwrap();
    check.unref();
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    event_loop.run(mode).unwrap();
    trace.take()
}

#[test]
fn r029_default_decides_about_the_wait_after_idle_and_prepare() {
    let first_turn = time_after_an_idle_hook_stopped_itself(RunMode::Default);
    assert_eq!(first_turn, "check@100");
}

#[test]
fn r030_once_decides_before_pending_and_idle() {
    let first_turn = time_after_an_idle_hook_stopped_itself(RunMode::Once);
    assert_eq!(first_turn, "check@0");

    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, trace.on("timer")).unwrap();
    drop(handle.spawn(phase::pending()));
    assert!(event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), "", "the pending entry kept it from waiting");
}

#[test]
fn r031_once_waits_for_a_timer_and_runs_it() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(100), ZERO, trace.on_stamped("timer"))
        .unwrap();
    assert!(!event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), "timer@100");
    assert_eq!(handle.turns(), 1);
}

/// libuv's `loop_backend_timeout`.
#[test]
fn r032_how_long_the_loop_would_wait() {
    let (mut event_loop, handle, _) = paused();
    assert_eq!(handle.next_timeout(), Some(ZERO), "nothing is alive");
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    assert_eq!(handle.next_timeout(), Some(ms(100)));
    event_loop.enter(|| busy(ms(30)));
    handle.update_time();
    assert_eq!(handle.next_timeout(), Some(ms(70)));
    event_loop.enter(|| busy(ms(80)));
    handle.update_time();
    assert_eq!(handle.next_timeout(), Some(ZERO), "due");
    finish(&mut event_loop);
    assert_eq!(handle.next_timeout(), Some(ZERO), "nothing is alive");
}

#[test]
fn r032_what_keeps_the_loop_from_waiting() {
    let (mut event_loop, handle, _) = paused();
    let keep = AsyncHandle::new(&handle, |_| ()).unwrap();
    assert_eq!(handle.next_timeout(), None, "for ever");

    let idle = Idle::new(&handle);
    idle.start(|_| ()).unwrap();
    assert_eq!(handle.next_timeout(), Some(ZERO), "an idle hook");
    idle.unref();
    assert_eq!(handle.next_timeout(), Some(ZERO), "also an unref'd one");
    idle.stop();
    assert_eq!(handle.next_timeout(), None);

    let immediate = handle.set_immediate(|| ());
    assert_eq!(handle.next_timeout(), Some(ZERO), "an immediate");
    immediate.clear();
    assert_eq!(handle.next_timeout(), None);

    for awaited in [phase::pending, phase::idle, phase::prepare, phase::closing] {
        let task = handle.spawn(awaited());
        assert_eq!(
            handle.next_timeout(),
            Some(ZERO),
            "a lane that is not empty"
        );
        event_loop.enter(|| handle.next_tick(|| LoopHandle::current().stop()));
        // Drains the lanes and stops there: now the task waits for its phase.
        event_loop.run(RunMode::NoWait).unwrap();
        assert!(!task.is_finished());
        assert_eq!(handle.next_timeout(), Some(ZERO), "an awaited phase");
        turn(&mut event_loop);
        assert!(task.is_finished());
        assert_eq!(handle.next_timeout(), None);
    }

    drop(Timer::new(&handle).close());
    assert_eq!(handle.next_timeout(), Some(ZERO), "a closing handle");
    turn(&mut event_loop);
    assert_eq!(handle.next_timeout(), None);

    event_loop.remote().wake().unwrap();
    assert_eq!(handle.next_timeout(), Some(ZERO), "another thread");
    turn(&mut event_loop);
    assert_eq!(handle.next_timeout(), None);

    handle.stop();
    assert_eq!(handle.next_timeout(), Some(ZERO), "stopped");
    turn(&mut event_loop);
    keep.unref();
    assert_eq!(handle.next_timeout(), Some(ZERO), "nothing is alive");
}

#[test]
fn r033_an_unrefd_timer_limits_the_wait_too() {
    let (mut event_loop, handle, trace) = paused();
    let (unrefd, other) = (Timer::new(&handle), Timer::new(&handle));
    unrefd
        .start(ms(10), ZERO, trace.on_stamped("unrefd"))
        .unwrap();
    unrefd.unref();
    other
        .start(ms(50), ZERO, trace.on_stamped("other"))
        .unwrap();
    assert_eq!(handle.next_timeout(), Some(ms(10)));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "unrefd@10 other@50");
}

#[test]
fn r034_the_timeout_has_a_limit_and_longer_waits_go_on() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    let year = ms(365 * 24 * 3600 * 1000);
    timer.start(year, ZERO, trace.on_stamped("timer")).unwrap();
    assert_eq!(handle.next_timeout(), Some(ms(i32::MAX as u64)));
    assert!(!event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), format!("timer@{}", year.as_millis()));
}

#[test]
fn r035_an_unrefd_idle_hook_makes_the_loop_spin() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, timer) = (Idle::new(&handle), Timer::new(&handle));
    // A turn takes 5 ms, and nothing is waited for in between.
    idle.start(|_| busy(ms(5))).unwrap();
    idle.unref();
    timer
        .start(ms(20), ZERO, trace.on_stamped("timer"))
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "timer@20");
    assert_eq!(handle.turns(), 4);
}

/// Ours: a source is registered when it is created, so the timeout is the real one at once.
#[test]
fn r036_r037_descriptors_leave_no_work_behind() {
    let (mut event_loop, handle, trace) = paused();
    let (ours, theirs) = udp_pair();
    let source = Source::new(&handle, ours).unwrap();
    let log = trace.clone();
    let task = handle.spawn(async move {
        let mut byte = [0];
        loop {
            source.read_with(|s| s.recv(&mut byte)).await.unwrap();
            source.write_with(|s| s.send(&byte)).await.unwrap();
            log.log("echo");
        }
    });
    turn(&mut event_loop);
    assert_eq!(handle.next_timeout(), None);
    for _ in 0..2 {
        theirs.send(b"x").unwrap();
        turn(&mut event_loop);
        assert_eq!(trace.take(), "echo");
        assert_eq!(handle.next_timeout(), None);
    }
    drop(task);
}

/// libuv's `loop_stop`.
#[test]
fn r038_r041_a_stop_ends_the_run_after_the_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    let (due, later) = (Timer::new(&handle), Timer::new(&handle));
    let log = trace.clone();
    let stop = move |prepare: &Prepare| {
        log.stamp("prepare");
        prepare.event_loop().stop();
        drop(Timer::new(&prepare.event_loop()).close());
        phase_closing(&prepare.event_loop(), &log);
        prepare.stop();
        busy(ms(5));
    };
    prepare.start(stop).unwrap();
    check.start(trace.on_stamped("check")).unwrap();
    due.start(ms(5), ZERO, trace.on_stamped("due")).unwrap();
    later
        .start(ms(100), ZERO, trace.on_stamped("later"))
        .unwrap();
    assert!(event_loop.run(RunMode::Default).unwrap());
    assert_eq!(trace.take(), "prepare@0 check@5 closing@5 due@5");
    assert!(event_loop.run(RunMode::NoWait).unwrap());
    assert_eq!(trace.take(), "check@5");
    check.stop();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "later@100");
}

fn phase_closing(handle: &LoopHandle, trace: &Trace) {
    let trace = trace.clone();
    drop(handle.spawn(async move {
        phase::closing().await;
        trace.stamp("closing");
    }));
}

#[test]
fn r039_the_flag_is_gone_when_the_run_returns() {
    for mode in MODES {
        let (mut event_loop, handle, trace) = paused();
        let stop = handle.clone();
        drop(handle.set_immediate(move || stop.stop()));
        let timer = Timer::new(&handle);
        timer.start(ms(10), ZERO, trace.on("timer")).unwrap();
        event_loop.run(mode).unwrap();
        assert_eq!(trace.take(), "");
        finish(&mut event_loop);
        assert_eq!(trace.take(), "timer", "{mode:?}");
    }
}

/// libuv's `loop_stop_before_run`.
#[test]
fn r040_a_stop_before_the_run_makes_it_return_at_once() {
    for mode in MODES {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
        handle.stop();
        assert!(event_loop.run(mode).unwrap());
        assert_eq!(trace.take(), "");
        assert!(!event_loop.run(mode).unwrap());
        assert_eq!(trace.take(), "timer", "{mode:?}");
    }
}

#[test]
fn block_on_is_not_ended_by_a_stop() {
    let (event_loop, handle, _) = paused();
    handle.stop();
    let output = event_loop.block_on(async {
        LoopHandle::current().stop();
        sleep(ms(1)).await;
        7
    });
    assert_eq!(output, 7);
}

#[test]
fn block_on_leaves_the_rest_for_the_next_run() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        sleep(ms(20)).await;
        log.stamp("other");
    }));
    let borrowed = String::from("borrowed");
    let output = event_loop.block_on(async {
        sleep(ms(10)).await;
        borrowed.as_str()
    });
    assert_eq!((output, trace.take().as_str()), ("borrowed", ""));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "other@20");
}

#[test]
fn run_until_done_says_why_it_ended_without_an_output() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let output = event_loop.run_until_done(async {
        drop(phaseloop::spawn(async move {
            sleep(ms(20)).await;
            log.stamp("left-behind");
        }));
        "output"
    });
    assert_eq!(output.unwrap(), "output");
    assert_eq!(trace.take(), "left-behind@20", "it waits for everything");

    let dry = event_loop.run_until_done(std::future::pending::<()>());
    assert!(dry.unwrap_err().is_deadlock());

    let timer = Rc::new(Timer::new(&handle));
    let stopped = event_loop.run_until_done(async {
        timer.start(ms(10), ZERO, |_| ()).unwrap();
        LoopHandle::current().stop();
        sleep(ms(5)).await;
    });
    assert!(stopped.unwrap_err().is_stopped());
}

/// Stopped by the main future itself, with nothing else to do: that is a stop, not a loop that ran
/// dry.
#[test]
fn a_main_future_that_stops_the_loop_is_told_so() {
    let (mut event_loop, handle, _) = paused();
    let stopped = event_loop.run_until_done(async move {
        handle.stop();
        std::future::pending::<()>().await;
    });
    assert!(stopped.unwrap_err().is_stopped());
    let dry = event_loop.run_until_done(std::future::pending::<()>());
    assert!(dry.unwrap_err().is_deadlock());
}
