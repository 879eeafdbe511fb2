//! The lane budget: a drain ends after so many entries, the rest goes on after the next callback or
//! at the start of the next turn, nothing is lost or waited for meanwhile, and the loop counts how
//! often that happened. The opposite of N7.

use crate::util::trace::{Trace, ZERO, finish, ms, turn};
use phaseloop::task::yield_microtask;
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    Builder, EventLoop, Handle, LoopHandle, next_tick, queue_microtask, set_immediate,
};

fn with_budget(entries: u64) -> (EventLoop, LoopHandle, Trace) {
    let builder = Builder::new().start_paused(true);
    let event_loop = builder
        .lane_budget(entries.try_into().unwrap())
        .build()
        .unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace)
}

#[test]
fn a_task_that_always_wakes_itself_does_not_starve_the_rest() {
    // In real time: a paused clock would stand still as long as there is something to do.
    let builder = Builder::new().lane_budget(100.try_into().unwrap());
    let mut event_loop = builder.build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    let greedy = handle.spawn(async {
        loop {
            yield_microtask().await;
        }
    });
    event_loop.block_on(async {
        sleep(ms(1)).await;
        trace.log("slept");
        phaseloop::task::yield_now_immediate().await;
        trace.log("check");
    });
    assert_eq!(trace.take(), "slept check");
    assert!(handle.budget_hits() > 0);
    greedy.abort();
    finish(&mut event_loop);
}

#[test]
fn below_the_budget_nothing_changes() {
    let (mut event_loop, handle, trace) = with_budget(3);
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        queue_microtask(log.call("micro"));
        next_tick(log.call("tick1"));
        next_tick(log.call("tick2"));
    }));
    drop(handle.set_immediate(trace.call("next")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick1 tick2 micro next");
}

#[test]
fn the_rest_goes_on_after_the_next_callback() {
    let (mut event_loop, handle, trace) = with_budget(2);
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        for label in ["1", "2", "3", "4", "5"] {
            queue_microtask(log.call(label));
        }
    }));
    drop(handle.set_immediate(trace.call("next")));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "1 2 next 3 4");
    assert_eq!(handle.budget_hits(), 2);
    assert!(handle.is_alive());
    turn(&mut event_loop);
    assert_eq!(trace.take(), "5", "or at the start of the next turn");
    assert_eq!(handle.budget_hits(), 2);
}

#[test]
fn ticks_and_microtasks_count_alike() {
    let (mut event_loop, handle, trace) = with_budget(2);
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        queue_microtask(log.call("micro1"));
        queue_microtask(log.call("micro2"));
        next_tick(log.call("tick"));
    }));
    drop(handle.set_immediate(trace.call("next")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "tick micro1 next micro2");
}

/// A drain that was cut short is followed by a whole one: ticks first.
#[test]
fn the_rest_begins_with_ticks() {
    let (mut event_loop, handle, trace) = with_budget(1);
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        queue_microtask(log.call("micro1"));
        queue_microtask(log.call("micro2"));
    }));
    let log = trace.clone();
    drop(handle.set_immediate(move || next_tick(log.call("tick"))));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "micro1 tick micro2");
}

/// A task that a phase wakes is the first entry of its drain.
#[test]
fn a_task_woken_by_a_phase_counts() {
    let (mut event_loop, handle, trace) = with_budget(3);
    let log = trace.clone();
    drop(handle.spawn(async move {
        phaseloop::phase::check().await;
        log.log("woken");
        for label in ["1", "2", "3"] {
            queue_microtask(log.call(label));
        }
    }));
    let log = trace.clone();
    drop(handle.spawn(async move { drop(set_immediate(log.call("next"))) }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "woken 1 2 next 3");
    assert_eq!(handle.budget_hits(), 1);
}

/// What is left in the lanes is work: the poll phase does not sleep on it, and the run does not
/// end.
#[test]
fn the_rest_is_not_slept_on() {
    let (mut event_loop, handle, trace) = with_budget(1);
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    timer.unref();
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        for _ in 0..3 {
            let log = log.clone();
            queue_microtask(move || log.stamp("micro"));
        }
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "micro@0 micro@0 micro@0");
}
