//! Signals, R241–R251 and N101: which listeners are called, when, in which order, and what the
//! process is left with.
//!
//! A raise is for the whole process, so the tests of this file take turns.
#![cfg(all(unix, feature = "signal"))]

use crate::util::child::in_child;
use crate::util::panics::panic_of;
use crate::util::raise::raise;
use crate::util::trace::{Trace, ZERO, busy, finish, ms, paused, turn};
use std::cell::{Cell, RefCell};
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};

use futures::{FutureExt, StreamExt};
use phaseloop::io::Source;
use phaseloop::signal::{Signal, SignalKind, Signals, ctrl_c};
use phaseloop::time::Timer;
use phaseloop::{
    AsyncHandle, EventLoop, Handle, Keeper, LoopHandle, RunMode, block_on, phase, run, spawn,
};

pub(super) const USR1: SignalKind = SignalKind::USR1;
const USR2: SignalKind = SignalKind::USR2;
/// Its default action is to ignore it, so that it may be raised without a listener.
const WINCH: SignalKind = SignalKind::WINCH;

static TURNS: Mutex<()> = Mutex::new(());

/// Keeps the other tests' signals away until it is dropped.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle that logs the label.
fn listen(handle: &LoopHandle, kind: SignalKind, trace: &Trace, label: &'static str) -> Signal {
    let signal = Signal::new(handle);
    let trace = trace.clone();
    signal.start(kind, move |_, _| trace.log(label)).unwrap();
    signal
}

// libuv's tests.

#[test]
fn libuv_we_get_signal() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = Signal::new(&handle);
    for round in ["first", "second"] {
        let (log, count) = (trace.clone(), Cell::new(0));
        signal
            .start(WINCH, move |signal, kind| {
                assert_eq!(kind, WINCH);
                log.log(round);
                count.set(count.get() + 1);
                if count.get() == 3 {
                    signal.stop();
                }
            })
            .unwrap();
        // Signals after the stop are not delivered.
        for _ in 0..5 {
            raise(WINCH);
            turn(&mut event_loop);
        }
        assert!(!signal.is_active());
        assert_eq!(trace.take(), format!("{round} {round} {round}"));
    }
}

#[test]
fn libuv_we_get_signals() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _listeners = [
        listen(&handle, USR1, &trace, "a1"),
        listen(&handle, USR1, &trace, "b1"),
        listen(&handle, USR2, &trace, "a2"),
        listen(&handle, USR2, &trace, "b2"),
    ];
    for _ in 0..3 {
        raise(USR1);
        raise(USR2);
        turn(&mut event_loop);
        assert_eq!(trace.take(), "a1 b1 a2 b2");
    }
}

#[test]
fn r247_libuv_we_get_signal_one_shot() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = Signal::new(&handle);
    let log = trace.clone();
    signal
        .start_once(WINCH, move |_, _| log.log("once"))
        .unwrap();
    assert!(signal.is_active());
    raise(WINCH);
    finish(&mut event_loop);
    assert!(!signal.is_active());
    assert_eq!(signal.kind(), None);
    raise(WINCH);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "once");
}

#[test]
fn r248_a_listener_once_for_once_may_be_started_for_all() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = Signal::new(&handle);
    let log = trace.clone();
    // Its own callback restarts it.
    let again = log.clone();
    signal
        .start_once(WINCH, move |signal, kind| {
            let log = again.clone();
            log.log("once");
            signal.start(kind, move |_, _| log.log("always")).unwrap();
        })
        .unwrap();
    for _ in 0..3 {
        raise(WINCH);
        turn(&mut event_loop);
    }
    assert!(signal.is_active());
    assert_eq!(trace.take(), "once always always");
    // The other way, while it is started.
    signal
        .start_once(WINCH, move |_, _| log.log("last"))
        .unwrap();
    for _ in 0..2 {
        raise(WINCH);
        turn(&mut event_loop);
    }
    assert_eq!(trace.take(), "last");
}

#[test]
fn r243_libuv_we_get_signals_mixed() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    // Every way to mix one for once with two for all: always the order of start, and the handler
    // stays while one is left.
    for once_at in 0..3 {
        let listeners: Vec<_> = (0..3)
            .map(|index| {
                let signal = Signal::new(&handle);
                let log = trace.clone();
                let callback = move |_: &Signal, _| log.log(index);
                if index == once_at {
                    signal.start_once(USR1, callback).unwrap();
                } else {
                    signal.start(USR1, callback).unwrap();
                }
                signal
            })
            .collect();
        raise(USR1);
        turn(&mut event_loop);
        assert_eq!(trace.take(), "0 1 2");
        raise(USR1);
        turn(&mut event_loop);
        let rest: Vec<_> = (0..3)
            .filter(|index| *index != once_at)
            .map(|i| i.to_string())
            .collect();
        assert_eq!(trace.take(), rest.join(" "));
        drop(listeners);
    }
}

#[test]
fn r242_libuv_signal_multiple_loops() {
    let _alone = alone();
    const LOOPS: usize = 8;
    let ready = Arc::new(Barrier::new(LOOPS + 1));
    let seen = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..LOOPS)
        .map(|_| {
            let (ready, seen) = (ready.clone(), seen.clone());
            std::thread::spawn(move || {
                block_on(async {
                    let mut one = Signals::new([USR1, USR2]).unwrap();
                    let mut other = Signals::new([USR1]).unwrap();
                    ready.wait();
                    assert_eq!(one.recv().await, Some(USR1));
                    assert_eq!(other.recv().await, Some(USR1));
                    seen.fetch_add(1, Ordering::Relaxed);
                    ready.wait();
                    assert_eq!(one.recv().await, Some(USR2));
                    seen.fetch_add(1, Ordering::Relaxed);
                });
            })
        })
        .collect();
    ready.wait();
    raise(USR1);
    ready.wait();
    assert_eq!(seen.load(Ordering::Relaxed), LOOPS);
    raise(USR2);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(seen.load(Ordering::Relaxed), 2 * LOOPS);
}

#[test]
fn r245_libuv_signal_pending_on_close() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = listen(&handle, USR1, &trace, "signal");
    let _other = listen(&handle, USR1, &trace, "other");
    raise(USR1);
    signal.close().then(trace.call("closed"));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "other closed");
}

/// Closed where no poll phase comes before the closing phase: the signal has to come through one
/// first.
#[test]
fn r115_a_close_waits_for_the_poll_phase_that_passes_over_what_was_caught() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = Rc::new(listen(&handle, USR1, &trace, "signal"));
    let check = phase::Check::new(&handle);
    let (log, closing) = (trace.clone(), signal.clone());
    check
        .start(move |check: &phase::Check| {
            log.log("check");
            raise(USR1);
            closing.close().then(log.call("closed"));
            check.stop();
        })
        .unwrap();
    let prepare = phase::Prepare::new(&handle);
    prepare.start(trace.on("prepare")).unwrap();
    prepare.unref();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "prepare check");
    assert_eq!(handle.keepers(), [(Keeper::Closing, 1)]);
    assert_eq!(handle.next_timeout(), Some(ZERO));
    finish(&mut event_loop);
    assert_eq!(trace.take(), "prepare closed");

    // Nothing was caught: no turn later.
    let signal = listen(&handle, USR1, &trace, "signal");
    handle.set_immediate(move || drop(signal.close()));
    turn(&mut event_loop);
    assert_eq!(handle.keepers(), []);
}

#[test]
fn r115_a_signal_that_is_passed_over_ends_the_poll_phase() {
    let _alone = alone();
    for how in ["stopped", "closed", "dropped"] {
        let (mut event_loop, handle, trace) = paused();
        let timer = Timer::new(&handle);
        timer
            .start(ms(10), ZERO, trace.on_stamped("timer"))
            .unwrap();
        let check = phase::Check::new(&handle);
        check.start(trace.on_stamped("check")).unwrap();
        let mut signal = Some(listen(&handle, USR1, &trace, "signal"));
        raise(USR1);
        match how {
            "stopped" => signal.as_ref().unwrap().stop(),
            "closed" => drop(signal.as_ref().unwrap().close()),
            _ => drop(signal.take()),
        }
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), "check@0", "{how}");
        event_loop.run(RunMode::Once).unwrap();
        assert_eq!(trace.take(), "check@10 timer@10", "{how}");
    }
}

#[test]
fn r115_a_signal_caught_while_the_poll_phase_runs_comes_in_the_next_one() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _listeners = [
        listen(&handle, USR1, &trace, "usr1"),
        listen(&handle, USR2, &trace, "usr2"),
    ];
    let check = phase::Check::new(&handle);
    check.start(trace.on("check")).unwrap();
    let log = trace.clone();
    let raiser = AsyncHandle::new(&handle, move |_| {
        log.log("raised");
        raise(USR1);
    })
    .unwrap();
    raiser.sender().send().unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "raised check");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "usr1 check");

    // A signal that was caught before takes the later one along.
    raiser.sender().send().unwrap();
    raise(USR2);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "raised usr2 usr1 check");
}

/// Not one that is raised by a callback of a signal, also if the listeners change there.
#[test]
fn r115_a_signal_raised_by_a_listener_comes_in_the_next_poll_phase() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let other = Rc::new(listen(&handle, USR2, &trace, "usr2"));
    let (log, restarted) = (trace.clone(), Signal::new(&handle));
    let signal = Signal::new(&handle);
    signal
        .start(USR1, move |_, _| {
            log.log("usr1");
            raise(USR2);
            restarted.start(WINCH, |_, _| {}).unwrap();
        })
        .unwrap();
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "usr1");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "usr2");
    drop(other);
}

/// A wake-up that was left over would refresh the clock in the middle of the phase, and the wait
/// would be a shorter one.
#[test]
fn r115_what_was_delivered_with_another_leaves_no_wake_up() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _listeners = [
        listen(&handle, USR1, &trace, "usr1"),
        listen(&handle, USR2, &trace, "usr2"),
    ];
    let timer = Timer::new(&handle);
    timer.start(ms(2), ZERO, trace.on_stamped("timer")).unwrap();
    let raiser = AsyncHandle::new(&handle, |_| raise(USR2)).unwrap();
    raiser.sender().send().unwrap();
    raise(USR1);
    // The listeners change: the record of what was caught is looked at before the poll phase.
    listen(&handle, WINCH, &trace, "winch").stop();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "usr1 usr2");
    let prepare = phase::Prepare::new(&handle);
    prepare.start(|_: &phase::Prepare| busy(ms(1))).unwrap();
    event_loop.run(RunMode::Once).unwrap();
    assert_eq!(trace.take(), "timer@3", "due in 2 by the cached time (R48)");
}

#[test]
fn r241_a_signal_is_for_those_who_listened_when_it_was_caught() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _early = listen(&handle, USR1, &trace, "early");
    raise(USR1);
    let _late = listen(&handle, USR1, &trace, "late");
    turn(&mut event_loop);
    assert_eq!(trace.take(), "early");

    // The signal is caught twice, and a listener starts in between. The old listeners are called
    // once, and so is the new one.
    raise(USR1);
    let _last = listen(&handle, USR1, &trace, "last");
    raise(USR1);
    turn(&mut event_loop);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "early late last");
}

#[test]
fn libuv_signal_close_loop_alive() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = listen(&handle, USR1, &trace, "signal");
    signal.close().then(trace.call("closed"));
    assert!(handle.is_alive() && !signal.is_active());
    finish(&mut event_loop);
    assert_eq!(trace.take(), "closed");
    let error = signal.start(USR1, |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}

// When and in which order.

#[test]
fn r241_a_signal_caught_again_before_the_loop_has_looked_is_one() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _signal = listen(&handle, USR1, &trace, "signal");
    for _ in 0..3 {
        raise(USR1);
    }
    turn(&mut event_loop);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "signal");
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "signal", "what comes later is another one");
}

/// Every catch after the look makes another delivery: raised in its own callback, a signal is never
/// lost.
#[test]
fn r241_a_signal_raised_in_its_own_callback_comes_again() {
    let _alone = alone();
    let (mut event_loop, handle, _) = paused();
    let signal = Signal::new(&handle);
    let count = Rc::new(Cell::new(0));
    let counter = count.clone();
    signal
        .start(USR1, move |signal, kind| {
            counter.set(counter.get() + 1);
            if counter.get() == 1000 {
                signal.stop();
            } else {
                raise(kind);
            }
        })
        .unwrap();
    raise(USR1);
    finish(&mut event_loop);
    assert_eq!(count.get(), 1000);
}

#[test]
fn r241_a_storm_of_signals_while_the_loop_is_busy() {
    let _alone = alone();
    const RAISES: usize = 100_000;
    let (mut event_loop, handle, trace) = paused();
    let _early = listen(&handle, USR2, &trace, "usr2");
    let _storm = listen(&handle, USR1, &trace, "usr1");
    let busy = Timer::new(&handle);
    busy.start(ZERO, ZERO, |_| {
        for _ in 0..RAISES {
            raise(USR1);
        }
        raise(USR2);
    })
    .unwrap();
    // The timer; then the signals: one each, by the first catch.
    for _ in 0..3 {
        turn(&mut event_loop);
    }
    assert_eq!(trace.take(), "usr1 usr2");

    // From another thread, against a loop that sleeps and looks all the time: the last one of every
    // burst is seen.
    let mut event_loop = EventLoop::new().unwrap();
    let handle = event_loop.handle();
    let deliveries = Rc::new(Cell::new(0_usize));
    let (counter, done) = (deliveries.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = done.clone();
    let storm = Signal::new(&handle);
    storm
        .start(USR1, move |signal, _| {
            counter.set(counter.get() + 1);
            if seen.load(Ordering::SeqCst) == RAISES {
                signal.stop();
            }
        })
        .unwrap();
    let thread = std::thread::spawn(move || {
        for _ in 0..RAISES {
            done.fetch_add(1, Ordering::SeqCst);
            raise(USR1);
        }
    });
    // Would hang if the last raise were lost.
    finish(&mut event_loop);
    thread.join().unwrap();
    assert!((1..=RAISES).contains(&deliveries.get()));
}

#[test]
fn r244_signals_come_in_the_order_of_the_catch() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _first = listen(&handle, USR1, &trace, "usr1");
    let _second = listen(&handle, USR2, &trace, "usr2");
    let _third = listen(&handle, WINCH, &trace, "winch");
    for kind in [USR2, WINCH, USR1, USR2] {
        raise(kind);
    }
    turn(&mut event_loop);
    assert_eq!(trace.take(), "usr2 winch usr1");
}

#[test]
fn r245_stopped_between_catch_and_delivery_by_an_earlier_one() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let last = Rc::new(Signal::new(&handle));
    let (log, victim) = (trace.clone(), last.clone());
    let first = Signal::new(&handle);
    first
        .start(USR1, move |_, _| {
            log.log("first");
            victim.stop();
        })
        .unwrap();
    let log = trace.clone();
    last.start(USR1, move |_, _| log.log("last")).unwrap();
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first");

    // Stopped and started again by then: what was caught before the start is not for it.
    let (log, again) = (trace.clone(), last.clone());
    first
        .start(USR1, move |_, _| {
            log.log("first");
            let log = log.clone();
            again.stop();
            again.start(USR1, move |_, _| log.log("last")).unwrap();
        })
        .unwrap();
    let log = trace.clone();
    last.start(USR1, move |_, _| log.log("old")).unwrap();
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "first");
}

#[test]
fn r246_a_start_for_the_same_signal_swaps_the_callback_only() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let first = listen(&handle, USR1, &trace, "old");
    let _second = listen(&handle, USR1, &trace, "second");
    raise(USR1);
    let log = trace.clone();
    first.start(USR1, move |_, _| log.log("new")).unwrap();
    turn(&mut event_loop);
    assert_eq!(trace.take(), "new second", "the place and the catch stay");

    // Another signal: behind the others, and what was caught is forgotten.
    let _third = listen(&handle, USR2, &trace, "third");
    raise(USR1);
    let log = trace.clone();
    first.start(USR2, move |_, _| log.log("moved")).unwrap();
    assert_eq!(first.kind(), Some(USR2));
    raise(USR2);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "second third moved");
}

#[test]
fn r246_what_is_no_signal_and_what_nobody_can_catch_is_refused() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = listen(&handle, USR1, &trace, "signal");
    let numbers = [-1, 0, 129, i32::MAX, i32::MIN];
    let refused = [SignalKind::KILL, SignalKind::STOP, SignalKind::SEGV];
    let numbers = numbers.into_iter().map(SignalKind::from_raw);
    for kind in numbers.chain(refused) {
        let error = signal.start(kind, |_, _| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{kind}");
        let error = Signals::new_on(&handle, [USR2, kind]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{kind}");
    }
    let text_of = |kind| Signals::new_on(&handle, [kind]).unwrap_err().to_string();
    assert_eq!(text_of(SignalKind::from_raw(1000)), "1000 is no signal");
    assert_eq!(text_of(SignalKind::from_raw(100)), "100 is no signal");
    assert_eq!(text_of(SignalKind::KILL), "SIGKILL cannot be listened to");
    assert_eq!(handle.handles().len(), 1, "nothing is left of the refused");
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "signal", "the handle is as it was");
}

#[test]
fn r251_n101_signals_are_the_last_of_the_batch() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _signal = listen(&handle, USR1, &trace, "signal");
    raise(USR1);
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.write_all(b"x").unwrap();
    let source = Source::new(&handle, ours).unwrap();
    let log = trace.clone();
    let _reader = handle.spawn(async move {
        source.readable().await.unwrap();
        log.log("socket");
    });
    let log = trace.clone();
    let _queued = handle.spawn(async move {
        phase::poll().await;
        log.log("queued");
    });
    handle.remote().call(|| {}).unwrap();
    let log = trace.clone();
    handle.set_immediate(move || log.log("check"));
    turn(&mut event_loop);
    assert_eq!(trace.take(), "socket queued signal check");
}

/// As many ready sources as one look at the kernel can report, each of which makes all of them
/// ready again.
#[test]
fn r096_a_full_batch_with_a_signal_is_not_followed_by_another() {
    let test = "r096_a_full_batch_with_a_signal_is_not_followed_by_another";
    let status = end_of_child(test, || {
        let (mut event_loop, handle, trace) = paused();
        let (ours, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let (calls, peer) = (Rc::new(Cell::new(0_usize)), Rc::new(peer));
        for _ in 0..1100 {
            let source = Source::new(&handle, ours.try_clone().unwrap()).unwrap();
            let (calls, peer) = (calls.clone(), peer.clone());
            drop(handle.spawn(async move {
                let read = source.read_with(|_| {
                    if calls.get() % 1024 == 0 {
                        (&*peer).write_all(b"x").unwrap();
                    }
                    calls.set(calls.get() + 1);
                    std::io::Result::<()>::Err(ErrorKind::WouldBlock.into())
                });
                read.await.unwrap();
            }));
        }
        let _signal = listen(&handle, USR1, &trace, "signal");
        (&*peer).write_all(b"x").unwrap();
        let mut calls_in = |raise_it: bool| {
            if raise_it {
                raise(USR1);
            }
            turn(&mut event_loop);
            calls.take()
        };
        assert!(calls_in(false) > 2000, "full batches follow each other");
        assert!(calls_in(true) <= 1024, "but not after a signal");
        assert_eq!(trace.take(), "signal");
    });
    if let Some(status) = status {
        assert!(status.success(), "{status}");
    }
}

#[test]
fn the_lanes_are_drained_after_each_listener() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let tasks: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|label| {
            let mut signals = Signals::new_on(&handle, [USR1]).unwrap();
            let log = trace.clone();
            handle.spawn(async move {
                signals.recv().await;
                log.log(label);
                phaseloop::next_tick({
                    let log = log.clone();
                    move || log.log(format_args!("tick-{label}"))
                });
            })
        })
        .collect();
    turn(&mut event_loop);
    raise(USR1);
    turn(&mut event_loop);
    assert_eq!(trace.take(), "a tick-a b tick-b");
    drop(tasks);
}

// Liveness.

#[test]
fn n101_a_listener_keeps_the_loop_alive_unless_unrefd() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let signal = listen(&handle, USR1, &trace, "signal");
    assert_eq!(handle.keepers(), [(Keeper::Signal, 1)]);
    signal.unref();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "");
    // Still works while something else keeps the loop running.
    let timer = Timer::new(&handle);
    timer.start(ms(5), ZERO, |_| raise(USR1)).unwrap();
    let later = Timer::new(&handle);
    later.start(ms(10), ZERO, |_| {}).unwrap();
    finish(&mut event_loop);
    assert_eq!(trace.take(), "signal");
    signal.ref_();
    assert!(handle.is_alive());
    signal.stop();
    assert!(!handle.is_alive());
    let signals = Signals::new_on(&handle, [USR1, USR2]).unwrap();
    assert_eq!(handle.keepers(), [(Keeper::Signal, 1)]);
    signals.unref();
    assert!(!handle.is_alive() && signals.is_active());
    drop(signals);
    assert_eq!(handle.handles().len(), 3);
}

#[test]
fn a_loop_that_sleeps_is_woken() {
    let _alone = alone();
    let mut event_loop = EventLoop::new().unwrap();
    let signal = Signal::new(&event_loop.handle());
    signal.start_once(USR1, |_, _| {}).unwrap();
    let thread = std::thread::spawn(|| {
        std::thread::sleep(ms(20));
        raise(USR1);
    });
    finish(&mut event_loop);
    thread.join().unwrap();
}

#[test]
fn a_loop_driven_by_another_poller_reports_a_signal() {
    use rustix::event::{PollFd, PollFlags, poll};
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let _signal = listen(&handle, USR1, &trace, "signal");
    turn(&mut event_loop);
    raise(USR1);
    let backend = event_loop.backend_fd();
    let mut fds = [PollFd::from_borrowed_fd(backend, PollFlags::IN)];
    assert_eq!(poll(&mut fds, None).unwrap(), 1);
    event_loop.turn(Some(ZERO)).unwrap();
    assert_eq!(trace.take(), "signal");
}

#[test]
fn a_panic_of_one_listener_leaves_the_others_their_turn() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = paused();
    let first = Signal::new(&handle);
    first.start(USR1, |_, _| panic!("first")).unwrap();
    let second = listen(&handle, USR1, &trace, "second");
    let third = listen(&handle, USR2, &trace, "third");
    for signal in [&first, &second, &third] {
        signal.unref();
    }
    raise(USR1);
    raise(USR2);
    let keep = Timer::new(&handle);
    keep.start(ms(1), ZERO, |_| {}).unwrap();
    assert_eq!(panic_of(|| event_loop.run(RunMode::Default)), "first");
    keep.stop();
    // The rest alone brings the next run to the poll phase.
    finish(&mut event_loop);
    assert_eq!(trace.take(), "second third");
}

#[test]
fn a_loop_that_goes_leaves_nothing_behind() {
    let _alone = alone();
    let (event_loop, handle, trace) = paused();
    let signal = Signal::new(&handle);
    let kept = Rc::new(());
    let held = kept.clone();
    signal.start(WINCH, move |_, _| drop(held.clone())).unwrap();
    let mut signals = Signals::new_on(&handle, [WINCH]).unwrap();
    raise(WINCH);
    drop(event_loop);
    assert_eq!(
        Rc::strong_count(&kept),
        1,
        "the callback went with the loop"
    );
    raise(WINCH);
    assert_eq!(signals.recv().now_or_never(), Some(None));
    assert!(signal.start(USR1, |_, _| {}).is_err());
    assert!(Signals::new_on(&handle, [USR1]).is_err());
    assert!(!signal.is_active());
    drop((signal, signals));
    assert_eq!(trace.take(), "");
}

// Streams.

#[test]
fn a_stream_keeps_what_was_caught_while_nobody_waited() {
    let _alone = alone();
    let got = run(async {
        let mut signals = Signals::new([USR1, USR2]).unwrap();
        for kind in [USR2, USR1, USR2] {
            raise(kind);
            phase::check().await;
        }
        let got = [signals.next().await, signals.next().await];
        assert_eq!(signals.try_recv(), None);
        assert_eq!(signals.recv().now_or_never(), None);
        got
    });
    assert_eq!(got.unwrap(), [Some(USR2), Some(USR1)]);
}

#[test]
fn ctrl_c_is_the_next_sigint() {
    let _alone = alone();
    let order = Rc::new(RefCell::new(Vec::new()));
    block_on(async {
        let waits = [1, 2].map(|number| {
            let order = order.clone();
            spawn(async move {
                ctrl_c().await.unwrap();
                order.borrow_mut().push(number);
            })
        });
        phase::check().await;
        raise(SignalKind::INT);
        for wait in waits {
            wait.await.unwrap();
        }
    });
    assert_eq!(*order.borrow(), [1, 2]);
}

#[test]
fn kinds_have_names() {
    assert_eq!(SignalKind::TERM.to_string(), "SIGTERM");
    assert_eq!(SignalKind::from_name("SIGINT"), Some(SignalKind::INT));
    assert_eq!(SignalKind::from_name("SIGNOT"), None);
    assert_eq!(SignalKind::from_raw(40).to_string(), "signal 40");
    assert_eq!(format!("{:?}", SignalKind::HUP), "SignalKind(SIGHUP)");
}

// What the process is left with; each in a process of its own.

/// Runs the rest of the test in a child. `None` in the child.
fn end_of_child(test: &str, body: impl FnOnce()) -> Option<ExitStatus> {
    let many_descriptors = ["sh", "-c", "ulimit -n 4096; exec \"$@\"", "sh"];
    let child = in_child(&many_descriptors, test, || {
        body();
        eprintln!("{COMPLETE}");
    })?;
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    eprintln!("{text}");
    // One that is to be ended by a signal says so when it has come that far.
    assert!(text.contains(COMPLETE), "the child did not come to its end");
    Some(output.status)
}

const COMPLETE: &str = "all was as it should be";

#[test]
fn r249_the_default_action_comes_back_with_the_last_stop() {
    let status = end_of_child(
        "r249_the_default_action_comes_back_with_the_last_stop",
        || {
            let (mut event_loop, handle, trace) = paused();
            // Twice: the second time around the handler has to be installed again.
            for _ in 0..2 {
                let one = listen(&handle, SignalKind::TERM, &trace, "one");
                let other = listen(&handle, SignalKind::TERM, &trace, "other");
                drop(one);
                raise(SignalKind::TERM);
                turn(&mut event_loop);
                assert_eq!(trace.take(), "other");
                drop(other);
            }
            eprintln!("{COMPLETE}");
            raise(SignalKind::TERM);
            unreachable!("ended by the signal");
        },
    );
    if let Some(status) = status {
        assert_eq!(status.signal(), Some(SignalKind::TERM.as_raw()));
    }
}

/// Ours differs: libuv makes it the default action, here it is what it was. Rust programs ignore
/// SIGPIPE.
#[test]
fn r249_what_was_ignored_is_ignored_again() {
    let status = end_of_child("r249_what_was_ignored_is_ignored_again", || {
        let (mut event_loop, handle, trace) = paused();
        let signal = listen(&handle, SignalKind::PIPE, &trace, "pipe");
        raise(SignalKind::PIPE);
        turn(&mut event_loop);
        assert_eq!(trace.take(), "pipe");
        drop(signal);
        raise(SignalKind::PIPE);
    });
    if let Some(status) = status {
        assert!(status.success(), "{status}");
    }
}

#[test]
fn libuv_r247_a_loop_that_goes_gives_the_default_action_back() {
    let status = end_of_child(
        "libuv_r247_a_loop_that_goes_gives_the_default_action_back",
        || {
            let (mut event_loop, handle, _) = paused();
            let once = Signal::new(&handle);
            once.start_once(SignalKind::HUP, |_, _| {}).unwrap();
            raise(SignalKind::HUP);
            turn(&mut event_loop);
            let _kept = Signals::new_on(&handle, [SignalKind::TERM]).unwrap();
            raise(SignalKind::TERM);
            drop(event_loop);
            eprintln!("{COMPLETE}");
            raise(SignalKind::TERM);
            unreachable!("ended by the signal");
        },
    );
    if let Some(status) = status {
        assert_eq!(status.signal(), Some(SignalKind::TERM.as_raw()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn r250_libuv_eintr_handling() {
    let test = "r250_libuv_eintr_handling";
    let status = end_of_child(test, || {
        use std::io::Read;
        let (mut event_loop, handle, trace) = paused();
        let _signal = listen(&handle, USR1, &trace, "signal");
        // By the number of a thread: Linux prefers it to the others of the process.
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let script = format!("sleep 0.05; kill -USR1 {thread}; sleep 0.05; echo done");
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // One `read` at a time: an interrupted one would say so.
        let mut buffer = [0; 16];
        let length = child.stdout.take().unwrap().read(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"done\n");
        child.wait().unwrap();
        turn(&mut event_loop);
        assert_eq!(trace.take(), "signal");
    });
    if let Some(status) = status {
        assert!(status.success(), "{status}");
    }
}
