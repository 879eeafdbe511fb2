//! Ten thousand of something at one moment: how long does it take until the last of them is done,
//! and how late is a timer of a millisecond that was armed as they began?

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use super::tasks::Slot;
use crate::latency::Latencies;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::{Pool, Runtime};

/// How many come at once.
pub(crate) const BURST: u64 = 10_000;
/// The sleeps of a burst are due so long after the first of them is made: all are armed by then.
pub(crate) const ARMED_WITHIN: Duration = Duration::from_millis(20);
/// What the timer beside a burst waits.
pub(crate) const BESIDE: Duration = Duration::from_millis(1);

/// What is reported of all bursts.
pub(crate) struct Clocks {
    until_the_last: Duration,
    latencies: Latencies,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        Self {
            until_the_last: Duration::ZERO,
            latencies: Latencies::new(),
        }
    }

    /// The last of a burst was done so long after its begin.
    pub(crate) fn last_after(&mut self, time: Duration) {
        self.until_the_last += time;
    }

    /// The timer beside a burst was so late.
    pub(crate) fn late_by(&mut self, time: Duration) {
        self.latencies.record(time);
    }

    pub(crate) fn reading(&self, meter: Meter) -> Reading {
        Reading {
            wall: self.until_the_last,
            latencies: Some(self.latencies.clone()),
            ..meter.stop()
        }
    }
}

/// A timer beside a burst, in a task of its own.
struct Beside(Rc<Cell<Duration>>);

impl Beside {
    /// The burst begins then.
    fn spawn<R: Runtime>(rt: R, begin: Instant) -> (Self, impl Future) {
        let late = Rc::new(Cell::new(Duration::ZERO));
        let beside = Self(late.clone());
        let deadline = begin + BESIDE;
        let task = rt.spawn(async move {
            rt.sleep_until(deadline).await;
            late.set(deadline.elapsed());
        });
        (beside, task)
    }
}

/// Sleeps that are due at once, each in its task.
pub(crate) fn sleeps<R: Runtime>(rt: R, bursts: u64) -> Reading {
    rt.run(async move {
        let mut clocks = Clocks::new();
        let meter = Meter::start();
        for _ in 0..bursts {
            let due = Instant::now() + ARMED_WITHIN;
            let (late, beside) = Beside::spawn(rt, due);
            let tasks: Vec<_> = (0..BURST)
                .map(|_| {
                    rt.spawn(async move {
                        rt.sleep_until(due).await;
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            clocks.last_after(due.elapsed());
            beside.await;
            clocks.late_by(late.0.get());
        }
        clocks.reading(meter)
    })
}

/// Immediates of one turn.
pub(crate) fn immediates(bursts: u64) -> Reading {
    let rt = Phaseloop::default();
    rt.run(async move {
        let mut clocks = Clocks::new();
        let meter = Meter::start();
        for _ in 0..bursts {
            let begin = Instant::now();
            let (late, beside) = Beside::spawn(rt, begin);
            // The timer is armed before this task runs again.
            rt.spawn(async {}).await;
            let left = Rc::new((Cell::new(BURST), Slot::default()));
            for _ in 0..BURST {
                let left = left.clone();
                phaseloop::set_immediate(move || {
                    left.0.set(left.0.get() - 1);
                    if left.0.get() == 0 {
                        left.1.send();
                    }
                });
            }
            left.1.receive().await;
            clocks.last_after(begin.elapsed());
            beside.await;
            clocks.late_by(late.0.get());
        }
        clocks.reading(meter)
    })
}

/// Jobs of the thread pool that have all ended while the loop was busy, each with a task that waits
/// for it.
pub(crate) fn jobs<R: Pool>(rt: R, bursts: u64) -> Reading {
    rt.run(async move {
        let mut clocks = Clocks::new();
        let meter = Meter::start();
        for _ in 0..bursts {
            let ended = Arc::new(AtomicU64::new(0));
            let tasks = queue_jobs(rt, &ended).await;
            while ended.load(Ordering::Relaxed) < BURST {
                std::thread::yield_now();
            }
            let begin = Instant::now();
            let (late, beside) = Beside::spawn(rt, begin);
            for task in tasks {
                task.await;
            }
            clocks.last_after(begin.elapsed());
            beside.await;
            clocks.late_by(late.0.get());
        }
        clocks.reading(meter)
    })
}

/// No job ends before every task waits for its own.
#[expect(
    clippy::await_holding_lock,
    reason = "only the jobs take the lock, on other threads, and they shall wait"
)]
async fn queue_jobs<R: Pool>(rt: R, ended: &Arc<AtomicU64>) -> Vec<impl Future + use<R>> {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write().expect("no holder of the lock panics");
    let tasks: Vec<_> = (0..BURST)
        .map(|_| {
            let (gate, ended) = (gate.clone(), ended.clone());
            let job = rt.blocking(move || {
                drop(gate.read());
                ended.fetch_add(1, Ordering::Relaxed);
            });
            rt.spawn(async move {
                job.await;
            })
        })
        .collect();
    rt.spawn(async {}).await;
    drop(closed);
    tasks
}
