//! Node's timers and immediates: odd input, panics, and what outlives what. Their order is tested
//! by the programs of `conformance`.

use crate::util::panics::panic_of;
use crate::util::trace::{Trace, busy, finish, ms, paused};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use phaseloop::{EventLoop, Keeper};
use phaseloop_node as node;
use phaseloop_node::{
    Timeout, clear_timeout, clear_timeout_by_id, next_tick, process, set_immediate, set_interval,
    set_timeout, set_timeout_mut, throw,
};

/// Runs a program on the paused clock; returns how long it took by that clock.
fn run(main: impl FnOnce() + 'static) -> Duration {
    let (mut event_loop, handle, _) = paused();
    let start = handle.now();
    let exit = node::run_on(&mut event_loop, async { main() });
    assert_eq!(exit.code(), 0);
    handle.update_time();
    handle.now() - start
}

#[test]
fn n040_what_is_no_delay_is_one_millisecond() {
    for delay in [0.0, -0.0, 0.999, -5.0, f64::NAN, f64::NEG_INFINITY] {
        let took = run(move || drop(set_timeout(delay, || ())));
        assert_eq!(took, ms(1), "{delay}");
    }
    let took = run(|| drop(set_timeout(Duration::from_micros(2_999), || ())));
    assert_eq!(took, ms(2), "fractions are cut off");
    let took = run(|| drop(set_timeout(i32::MAX, || ())));
    assert_eq!(took, ms(i32::MAX as u64), "the longest");
}

#[test]
fn n040_a_delay_that_does_not_fit_is_one_millisecond_and_a_warning() {
    let warnings = Rc::new(RefCell::new(Vec::new()));
    for delay in [f64::from(i32::MAX) + 1.0, f64::INFINITY, f64::MAX] {
        let seen = warnings.clone();
        let took = run(move || {
            process::on_warning(move |warning| seen.borrow_mut().push(warning.to_string()));
            set_timeout(delay, || ());
        });
        assert_eq!(took, ms(1), "{delay}");
    }
    let took = run(|| {
        process::on_warning(|_| ());
        set_timeout(Duration::MAX, || ());
    });
    assert_eq!(took, ms(1));
    let warnings = warnings.borrow();
    assert_eq!(warnings.len(), 3);
    let text = "does not fit into a 32-bit signed integer.\nTimeout duration was set to 1.";
    assert_eq!(
        warnings[0],
        format!("TimeoutOverflowWarning: 2147483648 {text}")
    );
}

#[test]
fn an_interval_of_nothing_waits_a_millisecond_each_time() {
    for delay in [0.0, -1.0, f64::NAN] {
        let took = run(move || {
            let mut left = 5;
            set_interval(delay, move |interval| {
                left -= 1;
                if left == 0 {
                    interval.close();
                }
            });
        });
        assert_eq!(took, ms(5), "{delay}");
    }
}

#[test]
fn n050_a_timer_may_clear_itself_again_and_again() {
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    let took = run(move || {
        let clear_own = move |own: &Timeout| {
            count.set(count.get() + 1);
            own.close().close();
            clear_timeout(own);
            own.refresh();
        };
        set_timeout_mut(3, clear_own.clone());
        set_interval(3, clear_own);
    });
    assert_eq!(calls.get(), 2);
    assert_eq!(took, ms(3), "a refresh after the clear does nothing");
}

#[test]
fn n049_a_timer_that_fired_and_was_cleared_can_be_refreshed_and_calls_nothing() {
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    let took = run(move || {
        let timer = set_timeout_mut(5, move |_| count.set(count.get() + 1));
        set_timeout(10, move || {
            timer.close();
            timer.refresh();
        });
    });
    assert_eq!(calls.get(), 1);
    assert_eq!(took, ms(15), "it keeps the loop alive all the same");
}

#[test]
fn n049_a_cleared_timer_that_was_refreshed_can_be_unrefd_but_not_cleared_again() {
    let refreshed_and = |end: fn(&Timeout)| {
        run(move || {
            let timer = set_timeout_mut(5, |_| ());
            set_timeout(10, move || {
                timer.close().refresh();
                end(&timer);
                end(timer.refresh());
            });
        })
    };
    assert_eq!(refreshed_and(clear_timeout), ms(15));
    assert_eq!(refreshed_and(|timer| drop(timer.unref().clone())), ms(10));
    let twice = |timer: &Timeout| drop(timer.unref().ref_().clone());
    assert_eq!(refreshed_and(twice), ms(15));
}

#[test]
fn n050_a_timer_cleared_in_its_own_callback_stays_so_without_a_warning() {
    let warnings = Rc::new(Cell::new(0));
    let seen = warnings.clone();
    let took = run(move || {
        process::on_warning(move |_| seen.set(seen.get() + 1));
        let own = Rc::new(OnceCell::<Timeout>::new());
        let kept = own.clone();
        let timer = set_timeout(5, move || {
            let own = kept.get().unwrap();
            own.close().refresh();
        });
        own.set(timer).unwrap();
    });
    assert_eq!((took, warnings.get()), (ms(5), 0));
}

#[test]
fn n049_a_one_shot_timer_can_be_refreshed_until_it_has_fired_and_warns_afterwards() {
    let calls = Rc::new(Cell::new(0));
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let (count, seen) = (calls.clone(), warnings.clone());
    let took = run(move || {
        process::on_warning(move |warning| seen.borrow_mut().push(warning.name().to_owned()));
        let timer = set_timeout(5, move || count.set(count.get() + 1));
        let later = timer.clone();
        set_timeout(3, move || drop(timer.refresh().clone()));
        set_timeout(20, move || drop(later.refresh().clone()));
    });
    assert_eq!((calls.get(), took), (1, ms(20)));
    assert_eq!(*warnings.borrow(), ["TimeoutRefreshWarning"]);
}

#[test]
fn a_one_shot_timer_lets_go_of_what_its_closure_owns_when_it_is_called() {
    let (mut event_loop, _, _) = paused();
    let alive = Rc::new(());
    let held = alive.clone();
    let timer = event_loop.enter(|| set_timeout(1, move || drop(held)));
    finish(&mut event_loop);
    assert_eq!(Rc::strong_count(&alive), 1);
    drop(timer);
}

#[test]
fn timers_ticks_microtasks_and_immediates_take_one_closure() {
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    run(move || {
        let called = move || count.set(count.get() + 1);
        set_timeout(1, called.clone());
        next_tick(called.clone());
        node::queue_microtask(called.clone());
        set_immediate(called);
    });
    assert_eq!(calls.get(), 4);
}

#[test]
fn n051_unreferenced_timers_do_not_keep_the_loop_alive_and_keepers_count_one_for_all() {
    let (mut event_loop, handle, _) = paused();
    let timers: Vec<_> = event_loop.enter(|| (1..4).map(|n| set_timeout(n, || ())).collect());
    assert_eq!(handle.keepers(), [(Keeper::Timer, 1)]);
    timers[0].unref();
    timers[1].unref().unref();
    assert!(timers[2].has_ref() && !timers[1].has_ref());
    assert!(handle.is_alive());
    timers[2].close();
    assert!(!handle.is_alive());
    timers[1].ref_();
    assert!(handle.is_alive());
    finish(&mut event_loop);
    assert!(
        handle.handles().is_empty(),
        "they are not handles of the loop"
    );
    assert!(event_loop.close().is_ok());
}

#[test]
fn a_panic_without_a_listener_leaves_the_loop_usable_with_the_rest_of_the_pass() {
    let (mut event_loop, _, trace) = paused();
    event_loop.enter(|| {
        let mut calls = 0;
        let logger = trace.clone();
        set_interval(1, move |interval| {
            calls += 1;
            logger.log("interval");
            if calls == 2 {
                interval.close();
            }
            assert!(calls != 1, "the first call");
        });
        let logger = trace.clone();
        set_timeout(1, move || logger.log("same-list"));
        let logger = trace.clone();
        set_timeout(2, move || logger.log("next-list"));
        busy(ms(5));
    });
    let message = panic_of(|| finish(&mut event_loop));
    assert_eq!(message, "the first call");
    assert_eq!(trace.take(), "interval");
    finish(&mut event_loop);
    assert_eq!(trace.take(), "same-list next-list interval");
}

#[test]
fn callbacks_are_dropped_when_they_are_not_needed_any_more() {
    let (mut event_loop, _, _) = paused();
    let alive = Rc::new(());
    let hold = || {
        let alive = alive.clone();
        move |_: &Timeout| {
            let _ = &alive;
        }
    };
    let (fired, cleared, waiting) = event_loop.enter(|| {
        (
            set_timeout_mut(1, hold()),
            set_timeout_mut(1, hold()),
            set_timeout_mut(100, hold()),
        )
    });
    assert_eq!(Rc::strong_count(&alive), 4);
    cleared.close();
    assert_eq!(Rc::strong_count(&alive), 3, "at once");
    waiting.unref();
    finish(&mut event_loop);
    assert_eq!(Rc::strong_count(&alive), 3, "it may be refreshed");
    drop(fired);
    assert_eq!(Rc::strong_count(&alive), 2);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&alive), 1, "with the loop");
    waiting.refresh().ref_().unref().close();
    let _ = waiting.id();
}

#[test]
fn a_callback_that_owns_its_timer_does_not_leak_with_the_loop() {
    let (event_loop, _, _) = paused();
    let alive = Rc::new(());
    let own = Rc::new(RefCell::new(None));
    let (inside, held) = (own.clone(), alive.clone());
    let interval = event_loop.enter(|| {
        set_interval(1, move |_| {
            let _ = (&inside, &held);
        })
    });
    *own.borrow_mut() = Some(interval);
    drop(own);
    assert_eq!(Rc::strong_count(&alive), 2);
    drop(event_loop);
    assert_eq!(Rc::strong_count(&alive), 1);
}

#[test]
fn n053_numbers_of_timers_are_their_own_and_unknown_ones_do_nothing() {
    run(|| {
        let (a, b) = (set_timeout(1, || unreachable!()), set_timeout(1, || ()));
        assert_ne!(a.id(), b.id());
        assert_eq!(a.id(), a.clone().id());
        let id = a.id();
        clear_timeout_by_id(id);
        clear_timeout_by_id(id);
        clear_timeout_by_id("4711".parse().unwrap());
        assert!("soon".parse::<node::TimeoutId>().is_err());
    });
}

/// A timer that is over leaves its memory to the next one, and nothing else.
#[test]
fn a_new_timer_has_nothing_of_the_one_whose_place_it_takes() {
    let calls = Rc::new(Cell::new(0));
    let seen = calls.clone();
    let took = run(move || {
        let called = |calls: &Rc<Cell<u32>>| {
            let calls = calls.clone();
            move |_: &Timeout| calls.set(calls.get() + 1)
        };
        // An interval that keeps nothing alive and has a number; cleared and dropped.
        let old = set_interval(5, |_| unreachable!());
        let id = old.unref().id();
        clear_timeout(&old);
        drop(old);
        let new = set_timeout_mut(20, called(&seen));
        assert!(new.has_ref());
        clear_timeout_by_id(id);
        // The state of a fired timer is not reused while a handle holds it.
        let fired = set_timeout_mut(1, called(&seen));
        let (again, third) = (fired.clone(), called(&seen));
        set_timeout(10, move || {
            drop(set_timeout_mut(1, third));
            again.refresh();
        });
    });
    assert_eq!((calls.get(), took), (4, ms(20)));
}

/// The drop of a callback may set timers, which must not get the place that is being given back.
#[test]
fn a_callback_may_set_timers_when_it_is_dropped() {
    struct SetsOne(Rc<Cell<u32>>);
    impl Drop for SetsOne {
        fn drop(&mut self) {
            let calls = self.0.clone();
            set_timeout(1, move || calls.set(calls.get() + 1));
        }
    }
    let calls = Rc::new(Cell::new(0));
    let seen = calls.clone();
    run(move || {
        let [fired, cleared] = [(); 2].map(|()| SetsOne(seen.clone()));
        set_timeout(1, move || assert!(Rc::strong_count(&fired.0) > 0));
        clear_timeout(&set_timeout(1, move || {
            unreachable!("{}", Rc::strong_count(&cleared.0))
        }));
    });
    assert_eq!(calls.get(), 2);
}

/// N42: the delay counts from the call, also on a loop that does not run.
#[test]
fn n042_timers_may_be_set_before_the_loop_runs() {
    let (mut event_loop, _, trace) = paused();
    event_loop.enter(|| {
        let logger = trace.clone();
        set_timeout(10, move || logger.log("second"));
        busy(ms(4));
        let logger = trace.clone();
        set_timeout(5, move || logger.log("first"));
    });
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first second");
}

#[test]
#[should_panic(expected = "no event loop runs on this thread")]
fn timers_need_a_loop() {
    set_timeout(1, || ());
}

/// N74, N76: both in one, with a listener that is removed in between.
#[test]
fn without_listeners_again_a_panic_comes_out() {
    let (mut event_loop, _, trace) = paused();
    let logger = trace.clone();
    let message = panic_of(|| {
        drop(node::run_on(&mut event_loop, async move {
            let listener = {
                let logger = logger.clone();
                process::on_uncaught_exception(move |_, _| logger.log("caught"))
            };
            set_immediate(|| throw("the first"));
            set_immediate(move || {
                logger.log("second");
                assert!(listener.remove());
                assert!(!listener.remove());
            });
            set_immediate(|| panic!("the third"));
        }));
    });
    assert_eq!(message, "the third");
    assert_eq!(trace.take(), "caught second");
}

#[test]
fn n064_an_unreferenced_immediate_lets_the_loop_end() {
    let (mut event_loop, handle, trace) = paused();
    let logger = trace.clone();
    let immediate = handle.set_immediate(move || logger.log("immediate"));
    assert!(immediate.has_ref());
    immediate.unref();
    immediate.unref();
    assert!(!immediate.has_ref() && !handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    immediate.ref_();
    assert!(handle.is_alive());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "immediate");
    immediate.ref_();
    assert!(!immediate.has_ref() && !handle.is_alive(), "it has run");
    assert!(!immediate.clear());
}

#[test]
fn an_unreferenced_immediate_can_be_taken_back() {
    let (mut event_loop, handle, _) = paused();
    let immediate = handle.set_immediate(|| unreachable!());
    immediate.unref();
    assert!(immediate.clear());
    immediate.ref_();
    assert!(!handle.is_alive());
    finish(&mut event_loop);
}

/// Ticks of one timer run before the next timer, also on a loop without `node::run`.
#[test]
fn n009_a_plain_loop_has_the_same_timers() {
    let event_loop = EventLoop::new().unwrap();
    let trace = Trace::new(&event_loop.handle());
    event_loop.block_on(async {
        for name in ["a", "b"] {
            let trace = trace.clone();
            set_timeout(1, move || {
                trace.log(name);
                let trace = trace.clone();
                next_tick(move || trace.log(format!("{name}.tick")));
            });
        }
        phaseloop::time::sleep(ms(30)).await;
    });
    assert_eq!(trace.take(), "a a.tick b b.tick");
}

#[test]
fn n049_a_refreshed_timer_that_is_unrefd_stays_so() {
    // Refreshed before it fires, and after.
    for (delay, calls_expected) in [(20, 0), (5, 1)] {
        let calls = Rc::new(Cell::new(0));
        let count = calls.clone();
        let took = run(move || {
            let timer = set_timeout_mut(delay, move |_| count.set(count.get() + 1));
            timer.unref();
            set_timeout(10, move || {
                timer.refresh();
                assert!(!timer.has_ref());
            });
        });
        assert_eq!((calls.get(), took), (calls_expected, ms(10)), "{delay}");
    }
    // With company it fires, and is counted again once it has a reference.
    let calls = Rc::new(Cell::new(0));
    let count = calls.clone();
    let took = run(move || {
        let timer = set_timeout_mut(5, move |_| count.set(count.get() + 1));
        timer.unref();
        set_timeout(10, move || drop(timer.refresh().ref_().clone()));
    });
    assert_eq!((calls.get(), took), (2, ms(15)));
}
