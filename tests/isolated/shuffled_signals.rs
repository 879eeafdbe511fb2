//! Signals on a shuffled loop: they come now or a turn later, and always last in their batch.
#![cfg(all(unix, feature = "signal"))]

use std::cell::Cell;
use std::rc::Rc;

use futures::{AsyncReadExt, AsyncWriteExt};
use phaseloop::net::UnixStream;
use phaseloop::shuffle::{Determinism, Explore, Kind, Question};
use phaseloop::signal::Signal;
use phaseloop::time::{Timer, sleep};
use phaseloop::{Builder, EventLoop, LoopHandle, phase, spawn};

use crate::signals::{USR1, alone};
use crate::util::raise::raise;
use crate::util::trace::{Trace, ZERO, finish, ms};

/// A loop that gives this answer to questions about caught signals.
fn shuffled(answer: usize) -> (EventLoop, LoopHandle, Trace) {
    let chooser = move |question: &Question<'_>| match question.kind {
        Kind::Caught => answer,
        _ => 0,
    };
    let event_loop = Builder::new().shuffle(chooser).build().unwrap();
    let handle = event_loop.handle();
    let trace = Trace::new(&handle);
    (event_loop, handle, trace)
}

/// A signal that was raised before the loop polls, beside an immediate in each of three turns.
fn a_signal_beside_immediates(answer: usize) -> String {
    fn immediates(handle: &LoopHandle, trace: &Trace, turns: u32) {
        if turns > 0 {
            let (again, log) = (handle.clone(), trace.clone());
            drop(handle.set_immediate(move || {
                log.log("immediate");
                immediates(&again, &log, turns - 1);
            }));
        }
    }
    let (mut event_loop, handle, trace) = shuffled(answer);
    let signal = Signal::new(&handle);
    let log = trace.clone();
    signal
        .start(USR1, move |signal, _| {
            log.log("signal");
            signal.stop();
        })
        .unwrap();
    immediates(&handle, &trace, 3);
    raise(USR1);
    finish(&mut event_loop);
    trace.take()
}

#[test]
fn caught_moves_signals_to_a_later_turn_of_a_shuffled_loop() {
    let _alone = alone();
    assert_eq!(
        a_signal_beside_immediates(0),
        "signal immediate immediate immediate"
    );
    assert_eq!(
        a_signal_beside_immediates(1),
        "immediate signal immediate immediate"
    );
}

#[test]
fn a_signal_held_back_by_a_shuffled_loop_is_delivered_before_the_loop_sleeps() {
    let _alone = alone();
    let (mut event_loop, handle, trace) = shuffled(1);
    let signal = Signal::new(&handle);
    let log = trace.clone();
    signal
        .start(USR1, move |signal, _| {
            log.stamp("signal");
            signal.stop();
        })
        .unwrap();
    let timer = Timer::new(&handle);
    timer.start(ms(5), ZERO, trace.on_stamped("timer")).unwrap();
    raise(USR1);
    finish(&mut event_loop);
    assert_eq!(trace.take(), "signal@0 timer@5");
}

/// R95: whatever the seed, no event of the same poll phase follows a signal.
#[test]
fn r095_signals_come_last_in_a_batch_under_every_seed() {
    let _alone = alone();
    let fixed = Explore::new()
        .seeds(500)
        .check(Determinism::Off)
        .try_run(|| async {
            let handle = LoopHandle::current();
            let signal_turn = Rc::new(Cell::new(None));
            let signal = Signal::new(&handle);
            let (turn, clock) = (signal_turn.clone(), handle.clone());
            signal
                .start(USR1, move |_, _| turn.set(Some(clock.turns())))
                .unwrap();
            let mut peers = Vec::new();
            for _ in 0..3 {
                let (mut ours, mut theirs) = UnixStream::pair().unwrap();
                let (turn, clock) = (signal_turn.clone(), handle.clone());
                let reader = spawn(async move {
                    ours.read_exact(&mut [0]).await.unwrap();
                    assert_ne!(turn.get(), Some(clock.turns()), "it came after the signal");
                    ours
                });
                phase::check().await;
                theirs.write_all(b"x").await.unwrap();
                peers.push((reader, theirs));
            }
            raise(USR1);
            for (reader, _theirs) in peers {
                reader.await.unwrap();
            }
            sleep(ms(60)).await;
            assert!(signal_turn.get().is_some(), "the signal was delivered");
        });
    fixed.unwrap_or_else(|found| panic!("{found}"));
}
