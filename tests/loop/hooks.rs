//! Idle, prepare and check hooks, R71–R80. The three share one structure, so each rule is proven
//! for all of them: reverse order of start, stable from turn to turn, and what a running pass makes
//! of changes to its own list.

use crate::util::trace::{Trace, ZERO, busy, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use phaseloop::phase::{Check, Hook, HookPhase, Idle, Prepare};
use phaseloop::time::Timer;
use phaseloop::{Handle, LoopHandle, RunMode};

/// Makes a hook of one kind.
type New<P> = fn(&LoopHandle) -> Hook<P>;

/// Runs a proof for idle, prepare and check.
macro_rules! each_kind {
    ($proof:ident) => {
        $proof(Idle::new);
        $proof(Prepare::new);
        $proof(Check::new);
    };
}

/// Three started hooks, A, B and C. They log their names; one of them also acts, once, in the first
/// turn.
fn three<P: HookPhase>(
    new: New<P>,
    actor: &'static str,
    act: impl Fn(&Hook<P>, &[Rc<Hook<P>>; 3], &Trace) + 'static,
) -> [String; 3] {
    let (mut event_loop, handle, trace) = paused();
    let hooks = ["A", "B", "C"].map(|_| Rc::new(new(&handle)));
    let act = Rc::new(Cell::new(Some(act)));
    for (hook, name) in hooks.iter().zip(["A", "B", "C"]) {
        let (log, all, act) = (trace.clone(), hooks.clone(), act.clone());
        let callback = move |hook: &Hook<P>| {
            log.log(name);
            if name == actor {
                if let Some(act) = act.take() {
                    act(hook, &all, &log);
                }
            }
        };
        hook.start(callback).unwrap();
    }
    [(); 3].map(|()| {
        turn(&mut event_loop);
        trace.take()
    })
}

#[test]
fn r071_r072_reverse_order_of_start_in_every_turn() {
    fn proof<P: HookPhase>(new: New<P>) {
        assert_eq!(
            three(new, "none", |_, _, _| ()),
            ["C B A", "C B A", "C B A"]
        );
    }
    each_kind!(proof);
}

#[test]
fn r073_a_hook_started_in_its_own_pass_waits_and_then_comes_first() {
    fn proof<P: HookPhase>(new: New<P>) {
        let late = Rc::new(RefCell::new(None));
        let keep = late.clone();
        let turns = three(new, "B", move |hook, _, trace| {
            let hook = new(&hook.event_loop());
            hook.start(trace.on("new")).unwrap();
            *keep.borrow_mut() = Some(hook);
        });
        assert_eq!(turns, ["C B A", "new C B A", "new C B A"]);
    }
    each_kind!(proof);
}

#[test]
fn r074_a_sibling_stopped_before_its_turn_does_not_run() {
    fn proof<P: HookPhase>(new: New<P>) {
        let turns = three(new, "C", |_, [_, b, _], _| b.stop());
        assert_eq!(turns, ["C A", "C A", "C A"]);
        let turns = three(new, "A", |_, [_, b, _], _| b.stop());
        assert_eq!(turns, ["C B A", "C A", "C A"], "it had run");
    }
    each_kind!(proof);
}

#[test]
fn r075_a_sibling_restarted_before_its_turn_waits_and_then_comes_first() {
    fn proof<P: HookPhase>(new: New<P>) {
        let turns = three(new, "C", |_, [a, _, _], trace| {
            a.stop();
            a.start(trace.on("A2")).unwrap();
        });
        assert_eq!(turns, ["C B", "A2 C B", "A2 C B"]);
    }
    each_kind!(proof);
}

#[test]
fn r076_a_hook_that_restarts_itself_comes_first_in_the_next_turn() {
    fn proof<P: HookPhase>(new: New<P>) {
        let turns = three(new, "B", |hook, _, trace| {
            hook.stop();
            hook.start(trace.on("B2")).unwrap();
        });
        assert_eq!(turns, ["C B A", "B2 C A", "B2 C A"]);
    }
    each_kind!(proof);
}

#[test]
fn r077_starting_a_started_hook_changes_nothing() {
    fn proof<P: HookPhase>(new: New<P>) {
        let turns = three(new, "B", |_, [a, _, _], trace| {
            a.start(trace.on("replaced")).unwrap();
        });
        assert_eq!(turns, ["C B A", "C B A", "C B A"]);

        let (_event_loop, handle, _) = paused();
        let hook = new(&handle);
        hook.stop();
        assert!(!hook.is_active());
        hook.start(|_| ()).unwrap();
        hook.stop();
        hook.stop();
        assert!(!hook.is_active() && !handle.is_alive());
    }
    each_kind!(proof);
}

#[test]
fn r077_a_closed_hook_does_not_start() {
    fn proof<P: HookPhase>(new: New<P>) {
        let (event_loop, handle, _) = paused();
        let (closed, left) = (new(&handle), new(&handle));
        drop(closed.close());
        assert!(closed.start(|_| ()).unwrap_err().is_handle_closed());
        drop(event_loop);
        assert!(left.start(|_| ()).unwrap_err().is_loop_closed());
    }
    each_kind!(proof);
}

#[test]
fn r078_idle_runs_once_a_turn_before_prepare_and_keeps_poll_from_waiting() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, prepare) = (Idle::new(&handle), Prepare::new(&handle));
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    idle.start(trace.on_stamped("idle")).unwrap();
    idle.unref();
    prepare.start(trace.on("prepare")).unwrap();
    prepare.unref();
    assert_eq!(handle.next_timeout(), Some(ZERO));
    for _ in 0..2 {
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), "idle@0 prepare", "no time has passed");
    }
    idle.stop();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(handle.next_timeout(), Some(ZERO), "nothing is alive");
    assert_eq!(trace.take(), "prepare");
    assert!(!timer.is_active(), "the wait was for the timer");
}

#[test]
fn r079_prepare_and_check_leave_the_wait_as_it_is() {
    let (_event_loop, handle, _) = paused();
    let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
    prepare.start(|_| ()).unwrap();
    check.start(|_| ()).unwrap();
    assert_eq!(handle.next_timeout(), None);
    let timer = Timer::new(&handle);
    timer.start(ms(100), ZERO, |_| ()).unwrap();
    assert_eq!(handle.next_timeout(), Some(ms(100)));
}

#[test]
fn r080_a_sibling_closed_before_its_turn_does_not_run() {
    fn proof<P: HookPhase>(new: New<P>) {
        let turns = three(new, "C", |_, [_, b, _], _| {
            drop(b.close());
            assert!(!b.is_active() && b.is_closing());
        });
        assert_eq!(turns, ["C A", "C A", "C A"]);
    }
    each_kind!(proof);
}

/// Drop is what a close is without a report; of the hook itself too, while it runs.
#[test]
fn r080_a_hook_may_drop_its_neighbour_and_itself() {
    fn proof<P: HookPhase>(new: New<P>) {
        let (mut event_loop, handle, trace) = paused();
        let hooks: [Rc<Cell<Option<Hook<P>>>>; 3] = Default::default();
        for (place, name) in hooks.iter().zip(["A", "B", "C"]) {
            let hook = new(&handle);
            let (all, log) = (hooks.clone(), trace.clone());
            let callback = move |_: &Hook<P>| {
                log.log(name);
                if name == "C" {
                    drop(all[1].take());
                    drop(all[2].take());
                    log.log("still-running");
                }
            };
            hook.start(callback).unwrap();
            place.set(Some(hook));
        }
        turn(&mut event_loop);
        assert_eq!(trace.take(), "C still-running A");
        turn(&mut event_loop);
        assert_eq!(trace.take(), "A");
        drop(hooks[0].take());
        assert_eq!(handle.handles(), []);
    }
    each_kind!(proof);
}

/// libuv's `queue_foreach_delete`: hooks delete each other while the list is walked, and a deleted
/// hook does not run.
#[test]
fn libuv_queue_foreach_delete() {
    fn proof<P: HookPhase>(new: New<P>) {
        for (actor, victim, first_turn) in [
            ("C", 2, "C B A"),
            ("C", 1, "C A"),
            ("C", 0, "C B"),
            ("B", 2, "C B A"),
            ("B", 0, "C B"),
            ("A", 1, "C B A"),
        ] {
            let turns = three(new, actor, move |_, all, _| drop(all[victim].close()));
            assert_eq!(turns[0], first_turn, "{actor} closes number {victim}");
            let left = ["C B", "C A", "B A"][victim];
            assert_eq!(turns[1..], [left, left]);
        }
    }
    each_kind!(proof);
}

/// Hooks that start, stop and close each other, turn by turn.
#[test]
fn libuv_loop_handles() {
    let (mut event_loop, handle, trace) = paused();
    let idle = Rc::new(Idle::new(&handle));
    let (prepare, check) = (Rc::new(Prepare::new(&handle)), Check::new(&handle));
    let (log, other, mut turns) = (trace.clone(), idle.clone(), 0);
    let by_turns = move |_: &Prepare| {
        turns += 1;
        log.log(turns);
        if turns % 2 == 1 {
            other.start(log.on("idle")).unwrap();
        } else {
            other.stop();
        }
    };
    prepare.start(by_turns).unwrap();
    let (log, others, mut turns) = (trace.clone(), (idle.clone(), prepare.clone()), 0);
    let close_all = move |check: &Check| {
        turns += 1;
        log.log("check");
        if turns == 4 {
            others.0.close().then(log.call("idle-closed"));
            others.1.close().then(log.call("prepare-closed"));
            check.close().then(log.call("check-closed"));
        }
    };
    check.start(close_all).unwrap();
    let turns = std::iter::repeat_with(|| turn(&mut event_loop)).take_while(|&alive| alive);
    assert_eq!(turns.count(), 3, "and the fourth is the last");
    assert_eq!(
        trace.take(),
        "1 check idle 2 check 3 check idle 4 check check-closed prepare-closed idle-closed"
    );
}

#[test]
fn libuv_idle_starvation() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, check) = (Rc::new(Idle::new(&handle)), Rc::new(Check::new(&handle)));
    let (log, mut turns) = (trace.clone(), 0);
    let work = move |_: &Idle| {
        turns += 1;
        log.log("idle");
        // The timer is due in the third turn.
        busy(ms(20));
        assert!(turns <= 3, "the timer starves");
    };
    idle.start(work).unwrap();
    check.start(trace.on("check")).unwrap();
    let (timer, log, hooks) = (Timer::new(&handle), trace.clone(), (idle, check));
    let end = move |timer: &Timer| {
        log.log("timer");
        drop((hooks.0.close(), hooks.1.close(), timer.close()));
    };
    timer.start(ms(50), ZERO, end).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "idle check idle check idle check timer");
}

#[test]
fn libuv_idle_check() {
    let (mut event_loop, handle, trace) = paused();
    let (idle, check) = (Idle::new(&handle), Check::new(&handle));
    let log = trace.clone();
    idle.start(move |idle| {
        log.log("idle");
        idle.stop();
    })
    .unwrap();
    check.start(trace.on("check")).unwrap();
    // Would wait for ever, if it waited.
    assert!(event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), "idle check");
    drop((idle.close(), check.close()));
    assert!(!event_loop.run(RunMode::Once).unwrap());
    assert_eq!(trace.take(), "", "both were closed");
}
