//! Closures that run once in a phase of choice: `LoopHandle::call_in`, `phase::call_in`, and the
//! future `phase::timers()`.

use crate::util::panics::panic_of;
use crate::util::trace::{ZERO, finish, paused, turn};
use std::rc::Rc;

use phaseloop::phase::{self, Check, Idle, Phase, Prepare};
use phaseloop::time::Timer;
use phaseloop::{AsyncHandle, EventLoop, Keeper, RunMode};

const PHASES: [Phase; 7] = [
    Phase::Pending,
    Phase::Idle,
    Phase::Prepare,
    Phase::Poll,
    Phase::Check,
    Phase::Closing,
    Phase::Timers,
];

#[test]
fn each_phase_runs_its_closures_once_and_in_the_order_of_the_turn() {
    let (mut event_loop, handle, trace) = paused();
    for phase in PHASES.into_iter().rev() {
        for name in ["a", "b"] {
            let log = trace.clone();
            handle.call_in(phase, move || log.log(format_args!("{phase}-{name}")));
        }
    }
    assert_eq!(handle.keepers(), [(Keeper::Queued, 14)]);
    assert_eq!(handle.next_timeout(), Some(ZERO));
    event_loop.run(RunMode::Once).unwrap();
    let expected = PHASES.map(|phase| format!("{phase}-a {phase}-b"));
    assert_eq!(trace.take(), expected.join(" "));
    assert!(!handle.is_alive());
    finish(&mut event_loop);
    assert_eq!((trace.take().as_str(), handle.turns()), ("", 1));
}

#[test]
fn a_closure_comes_behind_what_the_phase_is_there_for() {
    let (mut event_loop, handle, trace) = paused();
    for phase in PHASES {
        let log = trace.clone();
        handle.call_in(phase, move || log.log(phase));
    }
    let (idle, prepare) = (Idle::new(&handle), Prepare::new(&handle));
    idle.start(trace.on("hook-i")).unwrap();
    prepare.start(trace.on("hook-p")).unwrap();
    let check = Check::new(&handle);
    check.start(trace.on("hook-c")).unwrap();
    let sent = AsyncHandle::new(&handle, trace.on("sent")).unwrap();
    sent.send().unwrap();
    let [closed, timer] = [(); 2].map(|()| Timer::new(&handle));
    closed.close().then(trace.call("closed"));
    timer.start(ZERO, ZERO, trace.on("fired")).unwrap();
    turn(&mut event_loop);
    assert_eq!(
        trace.take(),
        "pending hook-i idle hook-p prepare sent poll hook-c check closed closing fired timers"
    );
}

#[test]
fn one_that_is_queued_while_its_phase_runs_waits_for_the_next_pass() {
    for phase in PHASES {
        let (mut event_loop, handle, trace) = paused();
        let (log, inner) = (trace.clone(), handle.clone());
        handle.call_in(phase, move || {
            log.log("first");
            inner.call_in(phase, log.call("second"));
            inner.next_tick(log.call("tick"));
        });
        handle.call_in(phase, trace.call("beside"));
        finish(&mut event_loop);
        assert_eq!(trace.take(), "first tick beside second", "{phase}");
        // A pass over the pending queue follows the poll phase of the same turn.
        let turns = match phase {
            Phase::Pending => 1,
            // The run begins with a pass over the timers.
            Phase::Timers => 1,
            _ => 2,
        };
        assert_eq!(handle.turns(), turns, "{phase}");
    }
}

#[test]
fn from_an_earlier_phase_it_runs_in_the_same_turn_and_from_a_later_one_in_the_next() {
    for (from, to) in PHASES.into_iter().flat_map(|a| PHASES.map(|b| (a, b))) {
        if from == to || to == Phase::Pending {
            continue;
        }
        let (mut event_loop, handle, trace) = paused();
        let (log, inner) = (trace.clone(), handle.clone());
        handle.call_in(from, move || {
            inner.call_in(to, log.call("called"));
        });
        turn(&mut event_loop);
        let is_same = from < to;
        assert_eq!(trace.take() == "called", is_same, "{from} {to}");
        turn(&mut event_loop);
        assert_eq!(trace.take() == "called", !is_same, "{from} {to}");
    }
}

#[test]
fn a_closure_is_taken_back_also_out_of_the_running_phase() {
    for phase in PHASES {
        let (mut event_loop, handle, trace) = paused();
        let token = Rc::new(());
        let [early, late] = [(); 2].map(|()| {
            let held = token.clone();
            handle.call_in(phase, move || drop(held))
        });
        assert!(early.clear() && !early.clear());
        assert_eq!(Rc::strong_count(&token), 2, "the closure was dropped");
        let log = trace.clone();
        assert!(late.clear());
        let last = Rc::new(std::cell::OnceCell::new());
        let slot: Rc<std::cell::OnceCell<phase::PhaseCall>> = last.clone();
        handle.call_in(phase, move || {
            log.log("cleared");
            assert!(slot.get().unwrap().clear(), "{phase}");
        });
        let beside = handle.call_in(phase, trace.call("never"));
        assert!(last.set(beside).is_ok());
        finish(&mut event_loop);
        assert_eq!(trace.take(), "cleared", "{phase}");
    }
}

#[test]
fn one_that_is_unrefd_neither_keeps_the_loop_alive_nor_awake() {
    for phase in PHASES {
        let (mut event_loop, handle, trace) = paused();
        let call = handle.call_in(phase, trace.call("called"));
        assert!(call.has_ref());
        call.unref();
        assert!(!call.has_ref() && !handle.is_alive(), "{phase}");
        finish(&mut event_loop);
        assert_eq!(trace.take(), "", "{phase}");
        let other = handle.call_in(phase, trace.call("other"));
        assert!(other.has_ref());
        finish(&mut event_loop);
        assert_eq!(trace.take(), "called other", "{phase}");
        assert!(!other.has_ref(), "it has run");
    }
}

#[test]
fn a_panic_leaves_the_rest_of_the_phase_to_the_next_run() {
    for phase in PHASES {
        let (mut event_loop, handle, trace) = paused();
        handle.call_in(phase, || panic!("of a closure"));
        handle.call_in(phase, trace.call("rest"));
        let text = panic_of(|| event_loop.run(RunMode::Default));
        assert_eq!((text.as_str(), trace.take().as_str()), ("of a closure", ""));
        finish(&mut event_loop);
        assert_eq!(trace.take(), "rest", "{phase}");
    }
}

#[test]
fn on_a_loop_that_is_gone_the_closure_is_dropped_unrun() {
    let token = Rc::new(());
    let event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    for phase in PHASES {
        let held = token.clone();
        handle.call_in(phase, move || drop(held));
    }
    assert_eq!(Rc::strong_count(&token), 8);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&token), 1);
    let call = handle.call_in(Phase::Poll, || unreachable!("the loop is gone"));
    assert!(!call.clear() && !call.has_ref());
}

#[test]
fn the_free_function_and_the_future_of_the_timers_phase() {
    let (event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    let log = trace.clone();
    event_loop.block_on(async move {
        phase::call_in(Phase::Timers, log.call("called"));
        phase::timers().await;
        log.log("awaited");
    });
    assert_eq!(trace.take(), "timer called awaited");
    let text = panic_of(|| phase::call_in(Phase::Idle, || ()));
    assert!(text.contains("no event loop runs"), "{text}");
}
