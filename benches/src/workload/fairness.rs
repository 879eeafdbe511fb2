//! A victim sleeps a millisecond at a time while others keep the runtime busy. How late does it
//! wake?

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::sockets::announced_listener;
use crate::latency::Latencies;
use crate::meter::{Meter, Reading};
use crate::runtime::{Pool, Runtime, Sockets};

/// What the victim sleeps.
pub(crate) const NAP: Duration = Duration::from_millis(1);
/// What the hog computes before it lets others run, and how long it goes on so.
pub(crate) const BITE: Duration = Duration::from_micros(20);
pub(crate) const MEAL: Duration = Duration::from_millis(50);
/// How long a storm of wakes lasts, and how long the calm after it or after a meal.
const STORM: Duration = Duration::from_millis(20);
pub(crate) const CALM: Duration = Duration::from_millis(1);
/// Blocking jobs in flight in a storm of completions.
pub(crate) const JOBS: u64 = 1000;

/// Notifies the others that the victim has seen enough.
type Over = Rc<Cell<bool>>;

/// No competing work: the best the runtime's timers can do.
pub(crate) fn alone<R: Runtime>(rt: R, naps: u64) -> Reading {
    beside(rt, naps, |_| ())
}

/// What is asked of a kernel that waits to the nanosecond.
pub(crate) const SHORT: Duration = Duration::from_micros(100);

/// Sleeps that are shorter than a millisecond, one after the other.
pub(crate) fn short_sleep<R: Runtime>(rt: R, naps: u64) -> Reading {
    rt.run(async move {
        let mut latencies = Latencies::new();
        let meter = Meter::start();
        for _ in 0..naps {
            let deadline = Instant::now() + SHORT;
            rt.sleep(SHORT).await;
            latencies.record(deadline.elapsed());
        }
        Reading {
            latencies: Some(latencies),
            ..meter.stop()
        }
    })
}

/// A task computes and yields in turn, by the runtime's way to let everything else run; now and
/// then it rests, for runtimes that have no such way.
pub(crate) fn hog<R: Runtime>(rt: R, naps: u64) -> Reading {
    beside(rt, naps, move |over| {
        rt.detach(async move {
            while !over.get() {
                let start = Instant::now();
                while start.elapsed() < MEAL {
                    compute(BITE);
                    rt.yield_to_all().await;
                }
                rt.sleep(CALM).await;
            }
        });
    })
}

pub(crate) fn compute(duration: Duration) {
    let start = Instant::now();
    while start.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// A task wakes itself all the time, and rests between two storms.
pub(crate) fn wake_storm<R: Runtime>(rt: R, naps: u64) -> Reading {
    beside(rt, naps, move |over| {
        rt.detach(async move {
            while !over.get() {
                storm().await;
                rt.sleep(CALM).await;
            }
        });
    })
}

/// Wakes its task all the time, for as long as a storm lasts.
pub(crate) fn storm() -> impl Future<Output = ()> {
    let start = Instant::now();
    poll_fn(move |cx| {
        if start.elapsed() >= STORM {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Jobs of the thread pool complete all the time.
pub(crate) fn completion_storm<R: Pool>(rt: R, naps: u64) -> Reading {
    beside(rt, naps, move |over| {
        for _ in 0..JOBS {
            let over = over.clone();
            rt.detach(async move {
                while !over.get() {
                    rt.blocking(|| ()).await;
                }
            });
        }
    })
}

/// A client connects and disconnects as fast as it can.
pub(crate) fn accept_flood<R: Sockets>(rt: R, naps: u64) -> Reading {
    let listener = announced_listener();
    beside(rt, naps, move |over| {
        rt.detach(async move {
            let listener = rt.listener(listener);
            while !over.get() {
                drop(rt.accept(&listener).await);
            }
        });
    })
}

fn beside<R: Runtime>(rt: R, naps: u64, others: impl FnOnce(Over) + 'static) -> Reading {
    rt.run(async move {
        let over = Over::default();
        let mut latencies = Latencies::new();
        others(over.clone());
        let meter = Meter::start();
        for _ in 0..naps {
            let deadline = Instant::now() + NAP;
            rt.sleep_until(deadline).await;
            latencies.record(deadline.elapsed());
        }
        over.set(true);
        Reading {
            latencies: Some(latencies),
            ..meter.stop()
        }
    })
}
