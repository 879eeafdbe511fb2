//! What never changes, whatever the seed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::phase::{Check, Prepare};
use phaseloop::shuffle::{Determinism, Explore, Kind};
use phaseloop::time::{Timer, sleep};
use phaseloop::{
    AsyncHandle, LoopHandle, next_tick, phase, queue_microtask, set_immediate, spawn,
    spawn_blocking,
};

type Trace = Rc<RefCell<Vec<String>>>;

/// Runs a program under 500 seeds and checks that its trace is always that of the usual run.
fn is_fixed<F: Future<Output = ()>>(program: impl Fn(Trace) -> F) {
    is_fixed_in(Explore::new(), program);
}

fn is_fixed_in<F: Future<Output = ()>>(explore: Explore, program: impl Fn(Trace) -> F) {
    let usual: RefCell<Option<Vec<String>>> = RefCell::new(None);
    // A child that another test starts may delay the end of a stream, which these programs permit.
    let explore = explore.seeds(500).check(Determinism::Off);
    let explored = explore.try_run(|| {
        let trace = Trace::default();
        let run = program(trace.clone());
        let usual = &usual;
        async move {
            run.await;
            let trace = trace.take();
            let mut usual = usual.borrow_mut();
            assert!(!trace.is_empty());
            assert_eq!(*usual.get_or_insert_with(|| trace.clone()), trace);
        }
    });
    explored.unwrap_or_else(|found| panic!("{found}"));
}

fn note(trace: &Trace, text: impl Into<String>) {
    trace.borrow_mut().push(text.into());
}

/// Keeps events, jobs and timers of the loop busy meanwhile, so that there is something to shuffle.
fn noise() {
    for _ in 0..2 {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            for _ in 0..5 {
                theirs.write_all(b"x").await.unwrap();
                sleep(Duration::from_millis(1)).await;
            }
        })
        .detach();
        spawn(async move {
            let mut byte = [0];
            while ours.read(&mut byte).await.unwrap() > 0 {}
        })
        .detach();
    }
    for _ in 0..3 {
        spawn_blocking(|| ()).detach();
    }
}

#[test]
fn phases_of_a_turn_keep_their_order() {
    // Within a turn; the number of turns depends on what arrives.
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let turn = Rc::new(RefCell::new(Vec::new()));
        let (prepare, check) = (Prepare::new(&handle), Check::new(&handle));
        let log = |name: &'static str| {
            let turn = turn.clone();
            move || turn.borrow_mut().push(name)
        };
        let (on_prepare, on_check) = (log("prepare"), log("check"));
        prepare.start(move |_| on_prepare()).unwrap();
        check.start(move |_| on_check()).unwrap();
        sleep(Duration::from_millis(20)).await;
        let turns = turn.take();
        assert!(turns.len() > 3);
        for hooks in turns.chunks_exact(2) {
            note(&trace, hooks.join(" "));
        }
        trace.borrow_mut().dedup();
    });
}

#[test]
fn ticks_come_before_microtasks_and_both_before_immediates() {
    is_fixed(|trace| async move {
        noise();
        for round in 0..3 {
            type Queue = fn(Box<dyn FnOnce()>);
            let entries: [(&str, Queue); 3] = [
                ("immediate", |f| _ = set_immediate(f)),
                ("microtask", |f| queue_microtask(f)),
                ("tick", |f| next_tick(f)),
            ];
            for (name, queue) in entries {
                let trace = trace.clone();
                queue(Box::new(move || note(&trace, format!("{name} {round}"))));
            }
            phase::check().await;
        }
    });
}

#[test]
fn timers_run_by_deadline_and_then_by_start() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let mut timers = Vec::new();
        for (name, millis) in [("c", 9), ("a", 3), ("d", 9), ("b", 4)] {
            let timer = Timer::new(&handle);
            let trace = trace.clone();
            let after = Duration::from_millis(millis);
            timer
                .start(after, Duration::ZERO, move |_| note(&trace, name))
                .unwrap();
            timers.push(timer);
        }
        sleep(Duration::from_millis(200)).await;
    });
}

#[test]
fn queued_entries_of_a_phase_run_in_the_order_of_queueing() {
    is_fixed(|trace| async move {
        noise();
        for name in ["a", "b", "c"] {
            let trace = trace.clone();
            set_immediate(move || note(&trace, name));
        }
        for name in ["d", "e"] {
            let trace = trace.clone();
            spawn(async move {
                phase::check().await;
                note(&trace, name);
            })
            .detach();
        }
        sleep(Duration::from_millis(5)).await;
    });
}

#[test]
fn closes_complete_in_the_order_of_closing() {
    is_fixed(|trace| async move {
        noise();
        let handle = LoopHandle::current();
        let timers = ["a", "b", "c"].map(|name| (name, Timer::new(&handle)));
        for (name, timer) in timers {
            let trace = trace.clone();
            let close = timer.close();
            spawn(async move {
                close.await;
                note(&trace, name);
            })
            .detach();
        }
        sleep(Duration::from_millis(5)).await;
    });
}

#[test]
fn async_handles_run_in_the_order_of_creation_after_the_jobs() {
    let explore = Explore::new();
    is_fixed_in(explore, |trace| async move {
        let handle = LoopHandle::current();
        let handles = ["a", "b"].map(|name| {
            let trace = trace.clone();
            AsyncHandle::new(&handle, move |_| note(&trace, name)).unwrap()
        });
        for handle in handles.iter().rev() {
            handle.send().unwrap();
        }
        phase::check().await;
    });
}

#[test]
fn the_bytes_of_a_stream_keep_their_order() {
    is_fixed(|trace| async move {
        noise();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            for byte in 0..50_u8 {
                theirs.write_all(&[byte]).await.unwrap();
                if byte % 7 == 0 {
                    sleep(Duration::from_millis(1)).await;
                }
            }
        })
        .detach();
        let mut bytes = Vec::new();
        ours.read_to_end(&mut bytes).await.unwrap();
        note(&trace, format!("{bytes:?}"));
    });
}

#[test]
fn the_waiters_of_one_source_are_woken_oldest_first() {
    // A poll for nothing may put the younger one in front of the lane.
    is_fixed_in(Explore::new().without(Kind::Wake), |trace| async move {
        noise();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = Rc::new(ours);
        for name in ["a", "b"] {
            let (ours, trace) = (ours.clone(), trace.clone());
            spawn(async move {
                ours.readable().await.unwrap();
                note(&trace, name);
            })
            .detach();
        }
        phase::check().await;
        theirs.write_all(b"x").await.unwrap();
        sleep(Duration::from_millis(200)).await;
    });
}

#[test]
fn the_end_of_a_stream_is_not_lost_by_a_delay() {
    is_fixed(|trace| async move {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        spawn(async move {
            theirs.write_all(b"all").await.unwrap();
            drop(theirs);
        })
        .detach();
        let mut text = String::new();
        ours.read_to_string(&mut text).await.unwrap();
        note(&trace, text);
    });
}
