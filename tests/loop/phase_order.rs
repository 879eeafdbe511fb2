//! The order of one turn, R21–R27, and N30, N33–N36: which phase follows which, and where a thing
//! that is started in one phase runs. The pending queue stands for libuv's finished writes (R27):
//! `phase::pending()` waits in it.

use crate::util::facts::{Fact, facts};
use crate::util::trace::{Trace, ZERO, finish, paused};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use phaseloop::phase::{self, Check, Idle, Phase, Prepare};
use phaseloop::time::{Timer, sleep};
use phaseloop::{AsyncHandle, Builder, EventLoop, Handle, LoopHandle, RunMode};

/// The phases one run goes through, from a loop that is kept alive by a started hook.
fn phases_of(mode: RunMode) -> Vec<Phase> {
    let phases = Rc::new(RefCell::new(Vec::new()));
    let seen = phases.clone();
    let mut event_loop = Builder::new()
        .start_paused(true)
        .observer(facts(move |fact: &Fact| {
            if let Fact::PhaseStart(phase) = fact {
                seen.borrow_mut().push(*phase);
            }
        }))
        .build()
        .unwrap();
    let idle = Idle::new(&event_loop.handle());
    idle.start(|idle| idle.stop()).unwrap();
    event_loop.run(mode).unwrap();
    phases.take()
}

const ONE_TURN: [Phase; 7] = [
    Phase::Pending,
    Phase::Idle,
    Phase::Prepare,
    Phase::Poll,
    Phase::Check,
    Phase::Closing,
    Phase::Timers,
];

#[test]
fn r021_n030_one_turn_in_order() {
    assert_eq!(phases_of(RunMode::Once), ONE_TURN);
    assert_eq!(phases_of(RunMode::NoWait), ONE_TURN);
    assert!(ONE_TURN.is_sorted(), "and that is how `Phase` is ordered");
}

#[test]
fn r014_r021_a_run_to_the_end_begins_with_the_timers() {
    let mut expected = vec![Phase::Timers];
    expected.extend(ONE_TURN);
    assert_eq!(phases_of(RunMode::Default), expected);
}

/// One callback in every phase.
fn everywhere(event_loop: &mut EventLoop, handle: &LoopHandle, trace: &Trace, mode: RunMode) {
    let (idle, prepare, check) = (Idle::new(handle), Prepare::new(handle), Check::new(handle));
    idle.start(trace.on("idle")).unwrap();
    prepare.start(trace.on("prepare")).unwrap();
    check.start(trace.on("check")).unwrap();
    let timer = Timer::new(handle);
    timer.start(ZERO, ZERO, trace.on("timer")).unwrap();
    let poll = AsyncHandle::new(handle, trace.on("poll")).unwrap();
    poll.sender().send().unwrap();
    let closed = Timer::new(handle);
    closed.close().then(trace.call("closing"));
    let log = trace.clone();
    drop(handle.spawn(async move {
        phase::pending().await;
        log.log("pending");
        LoopHandle::current().stop();
    }));
    event_loop.run(mode).unwrap();
}

#[test]
fn r021_r022_a_callback_in_every_phase() {
    for (mode, order) in [
        (
            RunMode::Default,
            "timer pending idle prepare poll check closing",
        ),
        (
            RunMode::Once,
            "pending idle prepare poll check closing timer",
        ),
        (
            RunMode::NoWait,
            "pending idle prepare poll check closing timer",
        ),
    ] {
        let (mut event_loop, handle, trace) = paused();
        everywhere(&mut event_loop, &handle, &trace, mode);
        assert_eq!(trace.take(), order, "{mode:?}");
    }
}

/// What follows when `act` is called in a callback of the given phase, on a loop that logs its idle
/// and check phases.
fn act_in(phase: Phase, act: impl FnOnce(&LoopHandle, &Trace) + 'static) -> String {
    let (mut event_loop, handle, trace) = paused();
    let (idle, check) = (Idle::new(&handle), Check::new(&handle));
    idle.start(trace.on("idle")).unwrap();
    check.start(trace.on("check")).unwrap();
    idle.unref();
    check.unref();
    let log = trace.clone();
    let act = async move {
        log.log("act");
        act(&LoopHandle::current(), &log);
    };
    match phase {
        Phase::Pending => after(&handle, phase::pending(), act),
        Phase::Idle => after(&handle, phase::idle(), act),
        Phase::Prepare => after(&handle, phase::prepare(), act),
        Phase::Poll => after(&handle, another_thread(), act),
        Phase::Check => after(&handle, phase::check(), act),
        Phase::Closing => after(&handle, phase::closing(), act),
        _ => after(&handle, event_loop.enter(|| sleep(ZERO)), act),
    }
    finish(&mut event_loop);
    trace.take()
}

/// Spawns a task that waits for a phase and goes on in it.
fn after(
    handle: &LoopHandle,
    phase: impl Future<Output = ()> + 'static,
    act: impl Future<Output = ()> + 'static,
) {
    drop(handle.spawn(async move {
        phase.await;
        act.await;
    }));
}

/// Is woken as by another thread, that is, in the poll phase.
async fn another_thread() {
    let mut sent = false;
    std::future::poll_fn(|cx| {
        if sent {
            return Poll::Ready(());
        }
        sent = true;
        let waker = cx.waker().clone();
        LoopHandle::current()
            .remote()
            .call(|| waker.wake())
            .unwrap();
        Poll::Pending
    })
    .await;
}

/// A 0 ms timer that ends up in the trace. It is dropped when it has fired, not before.
fn zero_timer(handle: &LoopHandle, trace: &Trace) {
    let timer = Rc::new(Timer::new(handle));
    let (log, keep) = (trace.clone(), timer.clone());
    let fire = move |_: &Timer| {
        log.log("timer");
        let _ = &keep;
    };
    timer.start(ZERO, ZERO, fire).unwrap();
}

#[test]
fn r023_a_timer_of_zero_fires_in_the_same_turn_wherever_it_was_started() {
    for (phase, order) in [
        (Phase::Pending, "act idle check timer"),
        (Phase::Idle, "idle act check timer"),
        (Phase::Prepare, "idle act check timer"),
        (Phase::Poll, "idle act check timer"),
        (Phase::Check, "idle check act timer"),
        (Phase::Closing, "idle check act timer"),
    ] {
        assert_eq!(act_in(phase, zero_timer), order, "{phase}");
    }
}

#[test]
fn r024_but_in_the_next_turn_when_started_by_a_timer() {
    assert_eq!(act_in(Phase::Timers, zero_timer), "act idle check timer");
}

#[test]
fn r025_an_idle_hook_started_in_check_or_timers_runs_in_the_next_turn() {
    let start_idle = |handle: &LoopHandle, trace: &Trace| {
        let idle = Rc::new(Idle::new(handle));
        let (log, keep) = (trace.clone(), idle.clone());
        let run = move |idle: &Idle| {
            log.log("new-idle");
            idle.stop();
            let _ = &keep;
        };
        idle.start(run).unwrap();
    };
    assert_eq!(
        act_in(Phase::Check, start_idle),
        "idle check act new-idle idle check"
    );
    assert_eq!(act_in(Phase::Timers, start_idle), "act new-idle idle check");
}

#[test]
fn r026_n033_from_poll_an_immediate_comes_before_a_timer() {
    let both = |handle: &LoopHandle, trace: &Trace| {
        zero_timer(handle, trace);
        drop(handle.set_immediate(trace.call("immediate")));
    };
    assert_eq!(act_in(Phase::Poll, both), "idle act check immediate timer");
}

#[test]
fn n034_from_a_timer_an_immediate_comes_before_new_timers() {
    let both = |handle: &LoopHandle, trace: &Trace| {
        zero_timer(handle, trace);
        drop(handle.set_immediate(trace.call("immediate")));
    };
    assert_eq!(
        act_in(Phase::Timers, both),
        "act idle check immediate timer"
    );
}

#[test]
fn n035_from_an_immediate_a_timer_comes_before_new_immediates() {
    let both = |handle: &LoopHandle, trace: &Trace| {
        zero_timer(handle, trace);
        drop(handle.set_immediate(trace.call("immediate")));
    };
    assert_eq!(
        act_in(Phase::Check, both),
        "idle check act timer idle check immediate"
    );
}

#[test]
fn r027_a_pending_completion_is_delivered_after_poll_or_before_the_next_idle() {
    let completion = |handle: &LoopHandle, trace: &Trace| {
        let log = trace.clone();
        after(handle, phase::pending(), async move { log.log("done") });
    };
    for (phase, order) in [
        (Phase::Idle, "idle act done check"),
        (Phase::Prepare, "idle act done check"),
        (Phase::Poll, "idle act done check"),
        (Phase::Check, "idle check act done idle check"),
        (Phase::Closing, "idle check act done idle check"),
        (Phase::Timers, "act done idle check"),
    ] {
        assert_eq!(act_in(phase, completion), order, "{phase}");
    }
}

/// libuv's `close_order`.
#[test]
fn n036_libuv_close_order() {
    let (mut event_loop, handle, trace) = paused();
    let check = Rc::new(Check::new(&handle));
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    let log = trace.clone();
    let close_check = check.clone();
    first
        .start(ZERO, ZERO, move |timer| {
            log.log("timer");
            timer.close().then(log.call("timer-closed"));
        })
        .unwrap();
    let log = trace.clone();
    check
        .start(move |_| {
            log.log("check");
            close_check.close().then(log.call("check-closed"));
            second.close().then(log.call("other-closed"));
        })
        .unwrap();
    finish(&mut event_loop);
    assert_eq!(
        trace.take(),
        "timer check other-closed check-closed timer-closed"
    );
}
