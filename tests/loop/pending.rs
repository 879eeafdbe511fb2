//! The pending queue, R81–R86, through `phase::pending()`: first in, first out, a snapshot a pass,
//! one pass at the top of a turn and at most eight after the poll phase.
//!
//! R84 (an entry never causes a read) is about streams; ours wakes the waiting task.

use crate::util::trace::{ZERO, finish, ms, paused, turn};
use phaseloop::Keeper;
use phaseloop::phase::{Check, Idle, pending};
use phaseloop::time::Timer;

#[test]
fn r081_first_in_first_out_each_once() {
    let (mut event_loop, handle, trace) = paused();
    for name in ["a", "b", "c"] {
        let log = trace.clone();
        drop(handle.spawn(async move {
            pending().await;
            log.log(name);
        }));
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a b c");
    assert_eq!(handle.turns(), 1);
}

#[test]
fn r082_what_is_added_during_a_pass_waits_for_the_next() {
    let (mut event_loop, handle, trace) = paused();
    for name in ["a", "b"] {
        let log = trace.clone();
        drop(handle.spawn(async move {
            for round in 1..=2 {
                pending().await;
                log.log(format_args!("{name}{round}"));
            }
        }));
    }
    finish(&mut event_loop);
    assert_eq!(trace.take(), "a1 b1 a2 b2");
}

#[test]
fn r083_nine_passes_a_turn() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, check) = (Idle::new(&handle), Check::new(&handle));
    idle.start(trace.on("idle")).unwrap();
    check.start(trace.on("check")).unwrap();
    let log = trace.clone();
    let task = handle.spawn(async move {
        for n in 1.. {
            pending().await;
            log.log(n);
        }
    });
    turn(&mut event_loop);
    assert_eq!(trace.take(), "1 idle 2 3 4 5 6 7 8 9 check");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "10 idle 11 12 13 14 15 16 17 18 check");
    drop(task);
}

#[test]
fn r085_what_is_left_keeps_the_loop_alive_and_awake() {
    let (mut event_loop, handle, _) = paused();
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    let task = handle.spawn(async {
        loop {
            pending().await;
        }
    });
    let start = handle.now();
    for _ in 0..3 {
        assert!(event_loop.run(phaseloop::RunMode::Once).unwrap());
        assert_eq!(handle.keepers(), [(Keeper::Timer, 1), (Keeper::Queued, 1)]);
        assert_eq!(handle.next_timeout(), Some(ZERO));
    }
    assert_eq!(handle.now(), start);
    drop(task);
}

#[test]
fn r086_who_is_gone_leaves_no_entry() {
    let (mut event_loop, handle, trace) = paused();
    let log = trace.clone();
    let second = std::rc::Rc::new(std::cell::RefCell::new(None::<phaseloop::JoinHandle<()>>));
    let abort = second.clone();
    drop(handle.spawn(async move {
        pending().await;
        log.log("first");
        abort.borrow().as_ref().unwrap().abort();
    }));
    let log = trace.clone();
    second.replace(Some(handle.spawn(async move {
        pending().await;
        log.log("second");
    })));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "first");
    assert_eq!(handle.keepers(), []);
}
