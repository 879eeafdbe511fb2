//! Timers and immediates that are awaited, and signals that time out, N120–N125.

use crate::util::trace::{Trace, busy, ms, paused};
use std::cell::Cell;
use std::rc::Rc;

use futures::StreamExt;
use phaseloop_node::timers::promises::{
    self, Options, scheduler, set_immediate_with, set_interval_with, set_timeout_with,
};
use phaseloop_node::{
    AbortController, AbortSignal, Error, call, next_tick, process, queue_microtask, race, run_on,
    set_immediate, set_timeout,
};

/// A chain of microtasks that log their number.
fn chain(trace: &Trace, from: u32, to: u32) {
    let trace = trace.clone();
    queue_microtask(move || {
        trace.log(format_args!("c{from}"));
        if from < to {
            chain(&trace, from + 1, to);
        }
    });
}

/// Runs a program on the paused clock and returns what it logs.
fn traced<F: Future<Output = ()>>(main: impl FnOnce(Trace) -> F) -> String {
    let (mut event_loop, _, trace) = paused();
    let exit = run_on(&mut event_loop, main(trace.clone()));
    assert_eq!(exit.code(), 0);
    trace.take()
}

#[test]
fn n120_a_sleep_resumes_in_the_drain_of_its_timer() {
    let trace = traced(|trace| async move {
        let [t1, t2, slept] = [(); 3].map(|()| trace.clone());
        set_timeout(1, move || t1.log("t1"));
        call(async move {
            slept.log(promises::set_timeout(1, "slept").await.unwrap());
            next_tick(slept.call("tick"));
        });
        set_timeout(1, move || t2.log("t2"));
        busy(ms(20));
    });
    assert_eq!(trace, "t1 slept tick t2");
}

#[test]
fn n120_a_sleep_begins_with_the_call_and_its_promise_can_be_awaited_twice() {
    let trace = traced(|trace| async move {
        let sleep = promises::set_timeout(10, 7);
        busy(ms(10));
        assert_eq!(sleep.clone().await.unwrap(), 7);
        assert_eq!(sleep.await.unwrap(), 7);
        trace.stamp("both");
    });
    assert_eq!(trace, "both@10");
}

#[test]
fn n120_losers_of_a_race_go_on() {
    let trace = traced(|trace| async move {
        let sleeps = [500, 50].map(|delay| promises::set_timeout(delay, delay));
        trace.stamp(race(sleeps.clone()).await.unwrap());
        let [slow, _] = sleeps;
        trace.stamp(slow.await.unwrap());
    });
    assert_eq!(trace, "50@50 500@500");
}

#[test]
fn n121_an_awaited_immediate_is_one_turn() {
    let trace = traced(|trace| async move {
        let (first, second) = (trace.clone(), trace.clone());
        set_immediate(trace.call("i1"));
        call(async move {
            promises::set_immediate(()).await.unwrap();
            first.log("a1");
            promises::set_immediate(()).await.unwrap();
            first.log("a2");
        });
        set_immediate(move || {
            second.log("i2");
            set_immediate(second.call("i3"));
        });
    });
    assert_eq!(trace, "i1 a1 i2 a2 i3");
}

#[test]
fn n125_the_scheduler_yields_and_waits() {
    let trace = traced(|trace| async move {
        set_immediate(trace.call("immediate"));
        scheduler::yield_now().await.unwrap();
        trace.log("yielded");
        scheduler::wait(5).await.unwrap();
        trace.stamp("waited");
        let aborted = Options::new().signal(&AbortSignal::abort(Error::new("no")));
        let reason = scheduler::wait_with(5, &aborted).await.unwrap_err();
        trace.stamp(reason.name());
    });
    assert_eq!(trace, "immediate yielded waited@5 AbortError@5");
}

#[test]
fn n123_an_abort_rejects_inside_the_call_and_takes_six_microtasks() {
    let trace = traced(|trace| async move {
        let controller = AbortController::new();
        let options = Options::new().signal(&controller.signal());
        let log = trace.clone();
        call(async move {
            let reason = set_timeout_with(60_000, (), &options).await.unwrap_err();
            log.log(reason.name());
        });
        set_immediate(move || {
            controller.abort();
            next_tick(trace.call("tick"));
            chain(&trace, 1, 6);
            set_immediate(trace.call("immediate"));
        });
    });
    assert_eq!(trace, "tick c1 c2 c3 c4 c5 AbortError c6 immediate");
}

#[test]
fn n123_an_abort_clears_a_timer_of_the_running_pass_and_an_immediate_of_the_running_phase() {
    let trace = traced(|trace| async move {
        let controller = AbortController::new();
        let options = Options::new().signal(&controller.signal());
        let first = controller.clone();
        set_timeout(1, move || first.abort());
        let log = trace.clone();
        let sleep = set_timeout_with(1, "slept", &options);
        call(async move { log.log(sleep.await.unwrap_or("aborted")) });
        let second = AbortController::new();
        let options = Options::new().signal(&second.signal());
        set_immediate(move || second.abort());
        let immediate = set_immediate_with("ran", &options);
        call(async move { trace.log(immediate.await.unwrap_or("aborted")) });
        busy(ms(20));
    });
    assert_eq!(trace, "aborted aborted");
}

#[test]
fn an_aborted_sleep_that_nobody_awaits_is_an_unhandled_rejection() {
    let trace = traced(|trace| async move {
        process::on_unhandled_rejection(move |reason| trace.log(reason.name()));
        let controller = AbortController::new();
        let options = Options::new().signal(&controller.signal());
        drop(set_timeout_with(60_000, (), &options));
        controller.abort();
    });
    assert_eq!(trace, "AbortError");
}

#[test]
fn a_sleep_that_has_ended_leaves_its_signal() {
    let trace = traced(|trace| async move {
        let controller = AbortController::new();
        let held = Rc::new(());
        let options = Options::new().signal(&controller.signal());
        set_timeout_with(5, held.clone(), &options).await.unwrap();
        controller.abort();
        trace.log(Rc::strong_count(&held));
    });
    assert_eq!(trace, "1");
}

#[test]
fn unref_d_sleeps_keep_nothing_alive() {
    let trace = traced(|trace| async move {
        let options = Options::new().unref();
        let sleep = set_timeout_with(1_000, (), &options);
        let immediate = set_immediate_with((), &options);
        let log = trace.clone();
        call(async move {
            sleep.await.unwrap();
            log.log("no");
        });
        call(async move {
            immediate.await.unwrap();
            trace.log("no");
        });
    });
    assert_eq!(trace, "");
}

#[test]
fn n124_a_signal_times_out_in_the_timers_phase_between_timers_of_its_duration() {
    let trace = traced(|trace| async move {
        let [t1, t2] = [trace.clone(), trace.clone()];
        set_timeout(50, move || t1.log("t1"));
        let signal = AbortSignal::timeout(50);
        let (log, seen) = (trace.clone(), signal.clone());
        signal.on_abort(move || {
            log.log(seen.reason().unwrap().name());
            next_tick(log.call("tick"));
        });
        set_timeout(50, move || t2.log("t2"));
        set_immediate(trace.call("immediate"));
        let never = AbortSignal::timeout(60_000);
        never.on_abort(|| unreachable!("the loop is not kept alive"));
        busy(ms(100));
    });
    assert_eq!(trace, "t1 TimeoutError tick t2 immediate");
}

#[test]
fn n124_a_signal_that_nobody_holds_times_out_if_somebody_listens() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let exit = run_on(&mut event_loop, async move {
        AbortSignal::timeout(10).on_abort(log.call("received"));
        let signal = AbortSignal::timeout(10);
        let listener = signal.on_abort(log.call("taken off"));
        signal.off(listener);
        drop(signal);
        let either =
            AbortSignal::any([&AbortSignal::timeout(20), &AbortController::new().signal()]);
        scheduler::wait(30).await.unwrap();
        log.log(either.aborted());
    });
    assert_eq!(exit.code(), 0);
    assert_eq!(trace.take(), "received true");
    drop(handle);
}

#[test]
fn n122_an_interval_counts_what_nobody_has_asked_for() {
    let trace = traced(|trace| async move {
        let mut ticks = promises::set_interval(20, "i");
        let count = Cell::new(0);
        while let Some(Ok(tick)) = ticks.next().await {
            count.set(count.get() + 1);
            trace.stamp(format_args!("{tick}{}", count.get()));
            match count.get() {
                1 => drop(promises::set_timeout(70, ()).await),
                5 => break,
                _ => {}
            }
            chain(&trace, 1, 3);
        }
        trace.log("end");
    });
    assert_eq!(
        trace,
        "i1@20 c1 c2 i2@90 c3 c1 c2 i3@90 c3 c1 c2 i4@90 c3 c1 c2 c3 i5@100 end"
    );
}

#[test]
fn n122_an_interval_ends_with_its_signal() {
    let trace = traced(|trace| async move {
        let controller = AbortController::new();
        let options = Options::new().signal(&controller.signal());
        let mut ticks = set_interval_with(10, (), &options);
        let stop = controller.clone();
        set_timeout(25, move || stop.abort());
        while let Some(tick) = ticks.next().await {
            trace.stamp(tick.map_or_else(|error| error.name().to_owned(), |()| "tick".to_owned()));
        }
        trace.log("end");
        let mut late = set_interval_with(10, (), &options);
        trace.stamp(late.next().await.unwrap().unwrap_err().name());
        assert!(late.next().await.is_none());
    });
    assert_eq!(trace, "tick@10 tick@20 AbortError@25 end AbortError@25");
}
