//! The two lanes, N1–N10, and immediates, N60–N66: ticks before microtasks, a full drain after
//! every callback of every phase, one batch of immediates a turn.
//!
//! N8: a tick has no arguments but what it captures. N64: immediates cannot be unref'd. N65 is
//! `yield_now_immediate`. N66 shows after a panic only, and ours ends the run then: the next one
//! begins with the drain.

use crate::util::trace::{Trace, ZERO, finish, ms, paused, turn};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use phaseloop::phase::{self, Check, Idle, Prepare};
use phaseloop::task::{yield_microtask, yield_now_immediate};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    AsyncHandle, Handle, Immediate, Keeper, LoopHandle, next_tick, queue_microtask, set_immediate,
    spawn,
};
use tokio_test::assert_pending;

/// What follows when `act` runs as an immediate.
fn trace_of(act: impl FnOnce(&Trace) + 'static) -> String {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || act(&log)));
    finish(&mut event_loop);
    trace.take()
}

/// Spawns a task that logs.
fn task(trace: &Trace, name: &'static str) {
    let log = trace.clone();
    drop(spawn(async move { log.log(name) }));
}

#[test]
fn n001_all_ticks_then_all_microtasks() {
    let order = trace_of(|trace| {
        queue_microtask(trace.call("micro1"));
        next_tick(trace.call("tick1"));
        task(trace, "task");
        next_tick(trace.call("tick2"));
        queue_microtask(trace.call("micro2"));
    });
    assert_eq!(order, "tick1 tick2 micro1 task micro2");
}

#[test]
fn n001_what_is_queued_meanwhile_belongs_to_the_drain() {
    let order = trace_of(|trace| {
        let log = trace.clone();
        next_tick(move || {
            log.log("tick");
            next_tick(log.call("tick-of-tick"));
        });
        let log = trace.clone();
        queue_microtask(move || {
            log.log("micro");
            queue_microtask(log.call("micro-of-micro"));
        });
        drop(set_immediate(trace.call("immediate")));
    });
    assert_eq!(order, "tick tick-of-tick micro micro-of-micro immediate");
}

#[test]
fn n002_a_tick_of_a_microtask_waits_for_all_microtasks() {
    let order = trace_of(|trace| {
        let log = trace.clone();
        queue_microtask(move || {
            log.log("micro1");
            next_tick(log.call("tick"));
            queue_microtask(log.call("micro3"));
        });
        queue_microtask(trace.call("micro2"));
    });
    assert_eq!(order, "micro1 micro2 micro3 tick");
}

#[test]
fn n003_a_microtask_of_a_tick_waits_for_all_ticks() {
    let order = trace_of(|trace| {
        let log = trace.clone();
        next_tick(move || {
            log.log("tick1");
            queue_microtask(log.call("micro"));
            next_tick(log.call("tick3"));
        });
        next_tick(trace.call("tick2"));
    });
    assert_eq!(order, "tick1 tick2 tick3 micro");
}

#[test]
fn n004_without_a_tick_the_microtasks_come_first() {
    let order = trace_of(|trace| {
        let log = trace.clone();
        queue_microtask(move || {
            log.log("micro");
            next_tick(log.call("tick"));
        });
    });
    assert_eq!(order, "micro tick");
}

/// The main future is a microtask, as the main program is in an ES module.
#[test]
fn n005_in_the_main_future_microtasks_come_first() {
    let (mut event_loop, _, trace) = paused();
    let main = async {
        next_tick(trace.call("tick"));
        queue_microtask(trace.call("micro"));
        trace.log("main");
    };
    event_loop.run_until_done(main).unwrap();
    assert_eq!(trace.take(), "main micro tick");

    // `enter` is the other way, that of a script.
    event_loop.enter(|| {
        queue_microtask(trace.call("micro"));
        next_tick(trace.call("tick"));
        trace.log("main");
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "main tick micro");
}

#[test]
fn n006_tasks_and_closures_share_one_queue() {
    let order = trace_of(|trace| {
        queue_microtask(trace.call("a"));
        task(trace, "b");
        queue_microtask(trace.call("c"));
        let log = trace.clone();
        drop(spawn(async move {
            log.log("d");
            yield_microtask().await;
            log.log("f");
        }));
        queue_microtask(trace.call("e"));
    });
    assert_eq!(order, "a b c d e f");
}

/// Bounded here; without a budget nothing else would ever come.
#[test]
fn n007_the_drain_has_no_limit() {
    let order = trace_of(|trace| {
        let log = trace.clone();
        next_tick(move || log.log("tick-before"));
        let log = trace.clone();
        drop(spawn(async move {
            next_tick(log.call("tick-after"));
            for _ in 0..10_000 {
                yield_microtask().await;
            }
            log.log("task");
        }));
        let (timer, log) = (Timer::new(&LoopHandle::current()), trace.clone());
        let keep = Rc::new(RefCell::new(None));
        let own = keep.clone();
        let fire = move |_: &Timer| {
            log.log("timer");
            drop(own.take());
        };
        timer.start(ZERO, ZERO, fire).unwrap();
        keep.replace(Some(timer));
    });
    assert_eq!(order, "tick-before task tick-after timer");
}

/// Logs a name now and its tick after the callback.
fn with_tick(trace: &Trace, name: &'static str) -> impl Fn() + Clone + 'static {
    let trace = trace.clone();
    move || {
        trace.log(name);
        let log = trace.clone();
        next_tick(move || log.log(format_args!("({name})")));
    }
}

#[test]
fn n009_a_drain_after_every_timer_and_immediate() {
    let (mut event_loop, handle, trace) = paused();
    let (first, second) = (Timer::new(&handle), Timer::new(&handle));
    let (a, b) = (with_tick(&trace, "a"), with_tick(&trace, "b"));
    first.start(ms(1), ZERO, move |_| a()).unwrap();
    second.start(ms(1), ZERO, move |_| b()).unwrap();
    drop(handle.set_immediate(with_tick(&trace, "c")));
    drop(handle.set_immediate(with_tick(&trace, "d")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "c (c) d (d) a (a) b (b)");
}

#[test]
fn n009_a_drain_after_every_hook() {
    let (mut event_loop, handle, trace) = paused();
    let hooks = [(); 2].map(|()| {
        (
            Idle::new(&handle),
            Prepare::new(&handle),
            Check::new(&handle),
        )
    });
    for ((idle, prepare, check), names) in hooks.iter().zip([["b", "d", "f"], ["a", "c", "e"]]) {
        let [i, p, c] = names.map(|name| with_tick(&trace, name));
        idle.start(move |_| i()).unwrap();
        prepare.start(move |_| p()).unwrap();
        check.start(move |_| c()).unwrap();
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "a (a) b (b) c (c) d (d) e (e) f (f)");
}

#[test]
fn n009_a_drain_after_everything_else() {
    let (mut event_loop, handle, trace) = paused();
    let sent = ["a", "b"].map(|name| {
        let act = with_tick(&trace, name);
        AsyncHandle::new(&handle, move |_| act()).unwrap()
    });
    sent.iter().for_each(|sent| sent.sender().send().unwrap());
    for name in ["d", "c"] {
        Timer::new(&handle).close().then(with_tick(&trace, name));
    }
    for name in ["e", "f"] {
        let act = with_tick(&trace, name);
        drop(handle.spawn(async move {
            phase::closing().await;
            act();
        }));
    }
    for name in ["g", "h"] {
        let act = with_tick(&trace, name);
        drop(handle.spawn(async move {
            sleep(ZERO).await;
            act();
        }));
    }
    turn(&mut event_loop);
    let order = "a (a) b (b) c (c) d (d) e (e) f (f) g (g) h (h)";
    assert_eq!(trace.take(), order);
}

#[test]
fn n010_only_the_end_of_the_callback_drains() {
    let order = trace_of(|trace| {
        next_tick(trace.call("tick"));
        // Neither a nested entry nor a wake nor a synchronous call drains.
        let handle = LoopHandle::current();
        let inner = phaseloop::EventLoop::new().unwrap();
        inner.enter(|| next_tick(|| unreachable!("that loop never runs")));
        handle.next_tick(trace.call("tick2"));
        trace.log("end");
    });
    assert_eq!(order, "end tick tick2");
}

/// A wake puts the task at the end of the lane; it is polled in the current drain.
#[test]
fn a_wake_on_the_loops_thread_is_served_in_the_current_drain() {
    let (mut event_loop, handle, trace) = paused();
    let (sender, receiver) = futures::channel::oneshot::channel();
    let log = trace.clone();
    drop(handle.spawn(async move {
        receiver.await.unwrap();
        log.log("woken");
    }));
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        queue_microtask(log.call("before"));
        sender.send(()).unwrap();
        queue_microtask(log.call("after"));
        log.log("end");
    }));
    drop(handle.set_immediate(trace.call("next")));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "end before woken after next");
}

#[test]
fn a_task_woken_often_is_polled_once() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let mut polls = 0;
    drop(handle.spawn(std::future::poll_fn(move |cx| {
        polls += 1;
        log.log(polls);
        if polls == 1 {
            for _ in 0..5 {
                cx.waker().wake_by_ref();
            }
        }
        Poll::<()>::Pending
    })));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "1 2");
}

/// A task that a phase wakes is the first microtask of its drain: what it queues follows as after
/// any other, the microtasks before the ticks, and all of it before the next callback.
#[test]
fn n002_a_task_woken_by_a_phase_is_a_microtask() {
    fn woken_by<F: Future<Output = ()> + 'static>(wait: impl Fn() -> F) -> String {
        let (event_loop, handle, trace) = paused();
        let tasks = [(); 2].map(|()| {
            let (log, wait) = (trace.clone(), event_loop.enter(&wait));
            handle.spawn(async move {
                wait.await;
                log.log("woken");
                next_tick(log.call("tick"));
                queue_microtask(log.call("micro"));
                task(&log, "task");
            })
        });
        event_loop.block_on(futures::future::join_all(tasks));
        trace.take()
    }

    let expected = "woken micro task tick woken micro task tick";
    assert_eq!(woken_by(|| sleep(ms(1))), expected);
    assert_eq!(woken_by(phase::pending), expected);
    assert_eq!(woken_by(phase::idle), expected);
    assert_eq!(woken_by(phase::prepare), expected);
    assert_eq!(woken_by(phase::poll), expected);
    assert_eq!(woken_by(phase::closing), expected);
    assert_eq!(woken_by(yield_now_immediate), expected);
    let of_another_thread = || {
        let mut is_woken = false;
        std::future::poll_fn(move |cx| {
            if std::mem::replace(&mut is_woken, true) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            let (polled, is_polled) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                is_polled.recv().unwrap();
                waker.wake();
            });
            // A task that is woken during its poll joins the lane at once.
            queue_microtask(move || polled.send(()).unwrap());
            Poll::Pending
        })
    };
    assert_eq!(woken_by(of_another_thread), expected);
}

/// The first of two tasks that one event wakes aborts the other, which was not polled for it.
#[test]
fn a_task_that_is_woken_and_aborted_before_its_turn_is_not_polled() {
    let (mut event_loop, handle, trace) = paused();
    let second = Rc::new(RefCell::new(None::<phaseloop::JoinHandle<()>>));
    let (log, other) = (trace.clone(), second.clone());
    drop(handle.spawn(async move {
        sleep(ms(1)).await;
        log.log("first");
        other.borrow().as_ref().unwrap().abort();
    }));
    let log = trace.clone();
    *second.borrow_mut() = Some(handle.spawn(async move {
        sleep(ms(1)).await;
        log.log("second");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first");
    let aborted = second.borrow_mut().take().unwrap();
    assert!(event_loop.block_on(aborted).unwrap_err().is_cancelled());
}

// Immediates.

#[test]
fn n060_n063_an_immediate_of_an_immediate_waits_for_the_next_turn() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.set_immediate(move || {
        log.log("first");
        drop(set_immediate(log.call("nested")));
    }));
    drop(handle.set_immediate(trace.call("second")));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first second");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "nested");
}

#[test]
fn n061_a_drain_between_two_immediates() {
    let (mut event_loop, handle, trace) = paused();
    for (name, micro) in [("a", "micro-a"), ("b", "micro-b")] {
        let log = trace.clone();
        drop(handle.set_immediate(move || {
            log.log(name);
            queue_microtask(log.call(micro));
        }));
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a micro-a b micro-b");
}

#[test]
fn n062_an_immediate_of_the_running_batch_can_be_taken_back() {
    let (mut event_loop, handle, trace) = paused();
    let later: Rc<RefCell<Vec<Immediate>>> = Rc::default();
    let (log, all) = (trace.clone(), later.clone());
    drop(handle.set_immediate(move || {
        log.log("first");
        assert!(all.borrow()[0].clear(), "from a callback");
        assert!(!all.borrow()[0].clear(), "only once");
        next_tick(move || assert!(all.borrow()[1].clear(), "from a drain"));
    }));
    for name in ["second", "third", "fourth"] {
        later
            .borrow_mut()
            .push(handle.set_immediate(trace.call(name)));
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first fourth");
    assert!(!later.borrow()[2].clear(), "it has run");
}

#[test]
fn n064_an_immediate_keeps_the_loop_alive_and_awake() {
    let (mut event_loop, handle, trace) = paused();
    let timer = Timer::new(&handle);
    timer
        .start(ms(100), ZERO, trace.on_stamped("timer"))
        .unwrap();
    timer.unref();
    drop(handle.set_immediate(trace.call("immediate")));
    assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "immediate", "the timer was not waited for");
}

#[test]
fn n065_yield_now_immediate_is_an_immediate() {
    let (mut event_loop, handle, trace) = paused();
    drop(handle.set_immediate(trace.call("before")));
    let log = trace.clone();
    drop(handle.spawn(async move {
        for round in 1..=2 {
            yield_now_immediate().await;
            log.log(format_args!("task{round}"));
        }
    }));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "before task1");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "task2");
}

#[test]
fn an_awaited_phase_that_is_given_up_is_taken_out() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    drop(handle.spawn(async move {
        let mut given_up = yield_now_immediate();
        let polled = std::future::poll_fn(|cx| {
            assert_pending!(std::pin::Pin::new(&mut given_up).poll(cx));
            Poll::Ready(())
        });
        polled.await;
        assert_eq!(LoopHandle::current().keepers(), [(Keeper::Queued, 1)]);
        drop(given_up);
        assert_eq!(LoopHandle::current().keepers(), []);
        log.log("given-up");
    }));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "given-up");
    assert_eq!(handle.turns(), 0);
}
