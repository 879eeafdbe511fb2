//! Promises: how they are settled, and which handlers run. How many microtasks they take is tested
//! by the programs of `conformance`.

use crate::util::trace::{Trace, paused};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures::FutureExt;
use phaseloop::{phase, spawn, time};
use phaseloop_node as node;
use phaseloop_node::{
    AggregateError, Deferred, Error, Promise, Reason, all, all_settled, any, call, catch,
    in_callbacks, next_tick, process, queue_microtask, race, set_immediate, throw, try_call,
};
use tokio_test::assert_pending;

/// Runs an async program on the paused clock and returns its trace.
fn trace_of<F: Future<Output = ()>>(main: impl FnOnce(Trace) -> F) -> String {
    let (mut event_loop, _, trace) = paused();
    let exit = node::run_on(&mut event_loop, main(trace.clone()));
    assert_eq!(exit.code(), 0);
    trace.take()
}

fn failed(text: &'static str) -> Promise<u32> {
    Promise::rejected(Reason::new(text))
}

#[test]
fn values_and_reasons_go_down_the_chain() {
    let trace = trace_of(|trace| async move {
        let doubled = Promise::resolved(20).then(|n| n * 2);
        trace.log(doubled.await.unwrap());
        let caught = failed("no").then(|n| n + 1).catch(|reason| {
            assert_eq!(reason.to_string(), "no");
            7
        });
        trace.log(caught.await.unwrap());
        let thrown = Promise::resolved(1).then(|_| -> u32 { throw("thrown") });
        trace.log(thrown.await.unwrap_err());
        let inner = Promise::resolved(1).and_then(|n| Promise::resolved(n + 1));
        trace.log(inner.await.unwrap());
        let rejected_inner = Promise::resolved(1).and_then(|_| failed("inner"));
        trace.log(rejected_inner.await.unwrap_err());
        let either = failed("e").then_result(|result| result.is_err());
        trace.log(either.await.unwrap());
        trace.log(failed("kept").finally(|| ()).await.unwrap_err());
        let replaced = Promise::resolved(1).finally(|| throw("by-finally"));
        trace.log(replaced.await.unwrap_err());
    });
    assert_eq!(trace, "40 7 thrown 2 inner true kept by-finally");
}

#[test]
fn a_promise_is_settled_once() {
    let trace = trace_of(|trace| async move {
        let deferred = Deferred::new();
        deferred.resolve(1);
        deferred.resolve(2);
        deferred.reject(Reason::new("no"));
        deferred.adopt(&Promise::resolved(3));
        trace.log(deferred.promise().await.unwrap());
        let adopting = Deferred::new();
        let other = Deferred::new();
        adopting.adopt(&other.promise());
        adopting.resolve(4);
        assert!(!adopting.promise().is_settled(), "it waits for the other");
        other.resolve(5);
        trace.log(adopting.promise().await.unwrap());
        let own = Deferred::<u32>::new();
        own.adopt(&own.promise());
        trace.log(
            own.promise()
                .await
                .unwrap_err()
                .to_string()
                .replace(' ', "-"),
        );
    });
    assert_eq!(trace, "1 5 Chaining-cycle-detected-for-promise-#<Promise>");
}

#[test]
fn n019_what_an_executor_or_an_async_function_throws_rejects_its_promise() {
    let trace = trace_of(|trace| async move {
        let executor = Promise::<u32>::new(|_| throw("executor"));
        trace.log(executor.await.unwrap_err());
        let late = Promise::new(|deferred| {
            deferred.resolve(1);
            throw("too late")
        });
        trace.log(late.await.unwrap());
        let first_segment = call(async {
            if true {
                throw("first");
            }
        });
        trace.log(first_segment.await.unwrap_err());
        let panic = call(async {
            time::sleep(Duration::from_millis(1)).await;
            if time::is_paused() {
                panic!("later");
            }
        });
        let reason = panic.await.unwrap_err();
        assert!(reason.panic().is_some() && reason.error().is_none());
        trace.log(reason);
        let error = try_call(async { "x".parse::<u32>() }).await.unwrap_err();
        assert!(error.error().unwrap().is::<std::num::ParseIntError>());
    });
    assert_eq!(trace, "executor 1 first later");
}

#[test]
fn combinators_do_not_cancel_the_losers() {
    let trace = trace_of(|trace| async move {
        let sleeper = |ms: u64| {
            let trace = trace.clone();
            call(async move {
                time::sleep(Duration::from_millis(ms)).await;
                trace.log(ms);
                ms
            })
        };
        let first = race([sleeper(20), sleeper(10)]).await.unwrap();
        assert_eq!(first, 10);
        trace.log("raced");
        assert_eq!(all([sleeper(5), sleeper(3)]).await.unwrap(), [5, 3]);
        trace.log("all");
    });
    assert_eq!(trace, "10 raced 3 5 all 20");
}

#[test]
fn combinators_of_failures() {
    trace_of(|_| async {
        let both = || [failed("a"), failed("b")];
        assert_eq!(all(both()).await.unwrap_err().to_string(), "a");
        assert_eq!(race(both()).await.unwrap_err().to_string(), "a");
        let none = any(both()).await.unwrap_err();
        let none: &AggregateError = none.error().unwrap().downcast_ref().unwrap();
        let reasons: Vec<_> = none.reasons().iter().map(Reason::to_string).collect();
        assert_eq!(reasons, ["a", "b"]);
        assert!(any(Vec::<Promise<()>>::new()).await.is_err());
        let settled = all_settled([failed("c"), Promise::resolved(4)]).await;
        let settled = settled.unwrap();
        assert_eq!(settled[0].as_ref().unwrap_err().to_string(), "c");
        assert_eq!(*settled[1].as_ref().unwrap(), 4);
        assert_pending!(
            tokio_test::task::spawn(race(Vec::<Promise<()>>::new()).into_future()).poll()
        );
    });
}

#[test]
fn n017_promises_of_different_types_are_awaited_together_in_a_tuple() {
    let trace = trace_of(|trace| async move {
        let both = all((Promise::resolved(1), call(async { "a".to_owned() })));
        assert_eq!(both.await.unwrap(), (1, "a".to_owned()));
        let failing = all((failed("no"), Promise::resolved(())));
        assert_eq!(failing.await.unwrap_err().to_string(), "no");
        let (first, second) = all_settled((failed("x"), Promise::resolved("y")))
            .await
            .unwrap();
        assert_eq!(first.unwrap_err().to_string(), "x");
        assert_eq!(second.unwrap(), "y");
        // As many microtasks as an array.
        let (tuple, array) = (trace.clone(), trace.clone());
        all((Promise::resolved(()), Promise::resolved(1))).then(move |_| tuple.log("tuple"));
        all([Promise::resolved(1), Promise::resolved(2)]).then(move |_| array.log("array"));
        let mut chain = Promise::resolved(());
        for link in 1..=3 {
            let trace = trace.clone();
            chain = chain.then(move |()| trace.log(link));
        }
        chain.await.unwrap();
    });
    assert_eq!(trace, "1 tuple array 2 3");
}

#[test]
fn what_is_thrown_is_caught_with_its_name_its_code_and_its_type() {
    let caught = |error: Error| catch(|| throw(error)).unwrap_err();
    let reason = caught(Error::type_error("bad"));
    assert_eq!((reason.name(), reason.code()), ("TypeError", None));
    let code = format!("E{}", 404);
    let reason = caught(Error::named("HttpError", "gone").coded(code));
    assert_eq!((reason.name(), reason.code()), ("HttpError", Some("E404")));
    assert_eq!(reason.to_string(), "gone");
    assert_eq!(reason.downcast_ref::<Error>().unwrap().message(), "gone");
    let reason = Reason::from(std::io::Error::from(std::io::ErrorKind::NotFound));
    assert_eq!((reason.name(), reason.code()), ("Error", Some("ENOENT")));
    let reason = catch(|| throw("a text")).unwrap_err();
    assert_eq!((reason.name(), reason.code()), ("Error", None));
    assert!(reason.downcast_ref::<Error>().is_none());
    assert_eq!(catch(|| 7).unwrap(), 7);
    trace_of(|_| async {
        let none = any([failed("a"), failed("b")]).await.unwrap_err();
        assert_eq!(none.name(), "AggregateError");
        assert!(none.downcast_ref::<AggregateError>().is_some());
    });
}

#[test]
fn an_error_that_is_shared_keeps_its_code_when_a_clone_gets_another() {
    let first = Error::range_error("far").coded("A");
    let second = first.clone().coded("B");
    assert_eq!((first.code(), second.code()), (Some("A"), Some("B")));
    assert_eq!((second.name(), second.message()), ("RangeError", "far"));
    let outer = Error::new("outer").caused_by(first);
    let source = std::error::Error::source(&outer).unwrap();
    assert_eq!(source.to_string(), "far");
}

#[test]
fn the_end_of_a_program_is_not_caught() {
    let exit = node::run(async {
        let _ = catch(|| process::exit(3));
        unreachable!("the program is over");
    });
    assert_eq!(exit.code(), 3);
}

/// Await in tasks, in the main future and in several at once: all are woken, in their order.
#[test]
fn n018_all_who_wait_are_told_in_order() {
    let trace = trace_of(|trace| async move {
        let gate = Deferred::new();
        for name in ["a", "b"] {
            let (gate, trace) = (gate.promise(), trace.clone());
            drop(spawn(async move {
                gate.await.unwrap();
                trace.log(name);
            }));
        }
        let given_up = gate.promise().into_future().now_or_never();
        assert!(given_up.is_none());
        set_immediate({
            let gate = gate.clone();
            move || gate.resolve(())
        });
        gate.promise().await.unwrap();
        trace.log("main");
    });
    assert_eq!(
        trace, "main a b",
        "the main future began to wait before the tasks ran"
    );
}

#[test]
fn n023_a_handler_in_the_same_drain_is_in_time() {
    let trace = trace_of(|trace| async move {
        let report = trace.clone();
        process::on_unhandled_rejection(move |reason| report.log(format_args!("!{reason}")));
        let late = failed("in-time");
        let never = failed("never");
        // Deep in the drain: ticks and microtasks by turns.
        let trace = trace.clone();
        queue_microtask(move || {
            next_tick(move || {
                queue_microtask(move || {
                    next_tick(move || {
                        late.catch(|_| 0);
                        trace.log("handled");
                    });
                });
            });
        });
        drop(never);
    });
    assert_eq!(trace, "handled !never");
}

/// N23: the look at rejections waits while ticks and microtasks go on, and does not keep the drain
/// from either.
#[test]
fn n023_rejections_are_looked_at_when_both_lanes_are_empty() {
    fn tick(trace: Trace, left: u32) {
        next_tick(move || microtask(trace, left));
    }
    fn microtask(trace: Trace, left: u32) {
        queue_microtask(move || match left {
            0 => trace.log("done"),
            _ => tick(trace, left - 1),
        });
    }
    let trace = trace_of(|trace| async move {
        let report = trace.clone();
        process::on_unhandled_rejection(move |_| report.log("reported"));
        failed("x");
        tick(trace.clone(), 20);
        microtask(trace, 20);
    });
    assert_eq!(trace, "done done reported");
}

#[test]
fn an_unhandled_rejection_without_any_listener_ends_the_program() {
    let (mut event_loop, _, trace) = paused();
    let logger = trace.clone();
    let exit = node::run_on(&mut event_loop, async move {
        let logger_at_exit = logger.clone();
        process::on_exit(move |code| logger_at_exit.log(format_args!("exit-{code}")));
        failed("unhandled");
        set_immediate(move || logger.log("never"));
    });
    assert_eq!(exit.code(), 1);
    assert_eq!(trace.take(), "exit-1");
}

/// What follows an await runs in the phase's callback, before its ticks and microtasks.
#[test]
fn futures_in_callbacks_run_before_the_drain() {
    let trace = trace_of(|trace| async move {
        let in_task = trace.clone();
        drop(spawn(async move {
            phase::check().await;
            in_task.log("task");
        }));
        let in_callback = trace.clone();
        queue_microtask(move || {
            in_callbacks(async move {
                phase::check().await;
                let trace = in_callback.clone();
                queue_microtask(move || trace.log("microtask"));
                let trace = in_callback.clone();
                next_tick(move || trace.log("tick"));
                in_callback.log("callback");
                phaseloop::task::yield_microtask().await;
                in_callback.log("woken-by-itself");
            });
        });
    });
    assert_eq!(trace, "task callback tick microtask woken-by-itself");
}

/// An await of a promise that is settled wakes its task while that is polled. It is a microtask of
/// the drain, however many follow each other.
#[test]
fn awaits_of_settled_promises_stay_in_the_drain() {
    let trace = trace_of(|trace| async move {
        let immediate = trace.clone();
        drop(set_immediate(move || immediate.log("immediate")));
        for _ in 0..1_000 {
            Promise::resolved(1).await.unwrap();
        }
        trace.log("main");
        let awaits = trace.clone();
        spawn(async move {
            for _ in 0..1_000 {
                Promise::resolved(1).await.unwrap();
            }
            awaits.log("task");
        })
        .await
        .unwrap();
    });
    assert_eq!(trace, "main task immediate");
}

/// It gives way as a task does: by a turn, and after 61 wakes of itself.
#[test]
fn futures_in_callbacks_let_io_and_timers_in() {
    let trace = trace_of(|trace| async move {
        let spins = trace.clone();
        let is_over = Rc::new(std::cell::Cell::new(false));
        let seen = is_over.clone();
        in_callbacks(async move {
            std::future::poll_fn(|cx| {
                if seen.get() {
                    return std::task::Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await;
            spins.log("spun");
        });
        let yields = trace.clone();
        in_callbacks(async move {
            for round in 1..=2 {
                phaseloop::task::yield_now().await;
                yields.log(round);
            }
            is_over.set(true);
        });
        set_immediate(move || trace.log("immediate"));
    });
    assert_eq!(trace, "1 immediate 2 spun");
}

#[test]
fn futures_in_callbacks_are_woken_from_other_threads_in_the_poll_phase() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let seen = log.clone();
    let _ = node::run(async move {
        in_callbacks(async move {
            let (sender, receiver) = futures::channel::oneshot::channel();
            let keep_alive = phaseloop::spawn_blocking(move || sender.send(7));
            let received = receiver.await.unwrap();
            seen.borrow_mut().push(received);
            keep_alive.await.unwrap().unwrap();
        });
    });
    assert_eq!(*log.borrow(), [7]);
}

#[test]
fn promises_may_outlive_their_loop() {
    let (event_loop, _, _) = paused();
    let (deferred, settled) =
        event_loop.block_on(async { (Deferred::new(), Promise::resolved(1)) });
    deferred.promise().then(|()| unreachable!());
    drop(event_loop);
    deferred.resolve(());
    assert!(deferred.promise().is_settled());
    settled.then(|_| unreachable!());
    Deferred::clone(&deferred).reject(Reason::new("ignored"));
}

/// A value whose clone looks at its own promise, and waits for it.
#[derive(Default)]
struct Curious(Rc<RefCell<Option<Promise<Self>>>>);

impl Clone for Curious {
    fn clone(&self) -> Self {
        let promise = self.0.take();
        if let Some(promise) = &promise {
            let _ = promise.is_settled();
            drop(promise.then(|_| ()));
        }
        Self(Rc::new(RefCell::new(promise)))
    }
}

#[test]
fn a_value_whose_clone_uses_its_promise_is_delivered() {
    trace_of(|_| async {
        let (value, deferred) = (Curious::default(), Deferred::new());
        value.0.replace(Some(deferred.promise()));
        deferred.resolve(value);
        deferred.promise().await.unwrap();
        let (value, deferred) = (Curious::default(), Deferred::new());
        let cell = value.0.clone();
        deferred.resolve(value);
        let promise = deferred.promise();
        cell.replace(Some(promise.clone()));
        promise.then(|_| ()).await.unwrap();
    });
}
