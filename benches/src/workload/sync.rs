//! Locks, channels and macros: each runtime with its own.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use crate::catalogue::Primitive;
use crate::meter::{Meter, Reading};
use crate::runtime::Primitives;

/// What does an operation of a lock, a channel or a macro cost?
pub(crate) fn run<R: Primitives>(rt: R, operation: Primitive, n: u64) -> Reading {
    match operation {
        Primitive::Mutex => mutex(rt, n),
        Primitive::MutexHandover => mutex_handover(rt, n),
        Primitive::MpscPingPong => mpsc_ping_pong(rt, n),
        Primitive::MpscBurst { at_once } => mpsc_burst(rt, at_once, n),
        Primitive::Oneshot => oneshot(rt, n),
        Primitive::Join3 => join3(rt, n),
        Primitive::Select3 => select3(rt, n),
    }
}

/// Takes and releases a lock that is free.
fn mutex<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let mutex = rt.mutex();
        let meter = Meter::start();
        for _ in 0..n {
            rt.with_lock(&mutex, |count| *count += 1).await;
        }
        meter.stop()
    })
}

/// Two tasks ask for one lock again and again. A fair lock goes to the other one at each release,
/// without a further wait in between.
fn mutex_handover<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let mutex = Rc::new(rt.mutex());
        let turns = Rc::new(Cell::new((0, 0)));
        let meter = Meter::start();
        let task = |name: u64| {
            let (mutex, turns) = (mutex.clone(), turns.clone());
            async move {
                // The first holds the lock until the other one waits for it.
                rt.hold_lock(&mutex, || rt.yield_now()).await;
                for _ in 0..n / 2 {
                    rt.with_lock(&mutex, |_| {
                        let (last, changes) = turns.get();
                        turns.set((name, changes + u64::from(last != name)));
                    })
                    .await;
                }
            }
        };
        let (first, second) = (rt.spawn(task(1)), rt.spawn(task(2)));
        first.await;
        second.await;
        let (_, changes) = turns.get();
        assert!(
            changes + 2 >= n,
            "the lock went round {changes} times of {n}"
        );
        meter.stop()
    })
}

/// Two channels with room for one, and a message that goes there and back.
fn mpsc_ping_pong<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let (there, mut arrived) = rt.channel(1);
        let (back, mut answers) = rt.channel(1);
        let meter = Meter::start();
        let pong = rt.spawn(async move {
            while let Some(message) = R::recv(&mut arrived).await {
                R::send(&back, message).await;
            }
        });
        for message in 0..n {
            R::send(&there, message).await;
            assert_eq!(R::recv(&mut answers).await, Some(message));
        }
        drop(there);
        pong.await;
        meter.stop()
    })
}

/// A channel that one task fills and another one empties.
fn mpsc_burst<R: Primitives>(rt: R, at_once: u64, n: u64) -> Reading {
    rt.run(async move {
        let (sender, mut receiver) = rt.channel(usize::try_from(at_once).expect("it is small"));
        let meter = Meter::start();
        let producer = rt.spawn(async move {
            for message in 0..n {
                R::send(&sender, message).await;
            }
        });
        let mut received = 0;
        while R::recv(&mut receiver).await.is_some() {
            received += 1;
        }
        producer.await;
        assert_eq!(received, n);
        meter.stop()
    })
}

/// Spawns a task and waits for the value that it sends.
fn oneshot<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for message in 0..n {
            assert_eq!(rt.through_oneshot(message).await, message);
        }
        meter.stop()
    })
}

fn join3<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.join3(twice(), twice(), twice()).await;
        }
        meter.stop()
    })
}

fn select3<R: Primitives>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.select3(pending(), pending(), twice()).await;
        }
        meter.stop()
    })
}

/// A future that is ready at its second poll, for which it wakes its task itself.
fn twice() -> impl Future<Output = ()> {
    let mut is_woken = false;
    poll_fn(move |cx| {
        if is_woken {
            return Poll::Ready(());
        }
        is_woken = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
