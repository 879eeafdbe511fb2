//! Timers: armed, dropped, fired, with few or many others alive.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::meter::{Meter, Reading};
use crate::runtime::Runtime;

/// Sleeps polled in one poll of a task: fewer than tokio allows before its sleeps refuse to be
/// armed.
pub(super) const POLLED_AT_ONCE: u64 = 64;

/// How far apart the first and the last deadline of one batch of sleeps are.
const FIRE_WITHIN: Duration = Duration::from_millis(10);

/// What does it cost to arm a sleep and to drop it, while `live` others are armed?
pub(crate) fn timer_drop<R: Runtime>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let mut random = Random::new();
        let mut others = Vec::with_capacity(live as usize);
        for i in 0..live {
            let mut sleep = Box::pin(rt.sleep(random.far_away()));
            arm(sleep.as_mut()).await;
            others.push(sleep);
            if i % POLLED_AT_ONCE == 0 {
                rt.yield_now().await;
            }
        }
        let meter = Meter::start();
        for i in 0..n {
            {
                let mut sleep = pin!(rt.sleep(random.far_away()));
                poll_fn(|cx| poll_once(sleep.as_mut().poll(cx))).await;
            }
            if i % POLLED_AT_ONCE == 0 {
                rt.yield_now().await;
            }
        }
        meter.stop()
    })
}

/// What does it cost to arm `live` sleeps and then to drop them all, each?
pub(crate) fn timer_drop_all<R: Runtime>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let mut random = Random::new();
        let mut sleeps = Vec::with_capacity(live as usize);
        let meter = Meter::start();
        for _ in 0..n / live {
            for i in 0..live {
                let mut sleep = Box::pin(rt.sleep(random.far_away()));
                poll_fn(|cx| poll_once(sleep.as_mut().poll(cx))).await;
                sleeps.push(sleep);
                if i % POLLED_AT_ONCE == 0 {
                    rt.yield_now().await;
                }
            }
            sleeps.clear();
        }
        meter.stop()
    })
}

/// What does it cost to drop one of `live` armed sleeps and to arm another in its place, as a
/// time-out that starts again does?
pub(crate) fn timer_replace<R: Runtime>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let mut random = Random::new();
        let mut sleeps = Vec::with_capacity(live as usize);
        for i in 0..live {
            let mut sleep = Box::pin(rt.sleep(random.far_away()));
            arm(sleep.as_mut()).await;
            sleeps.push(sleep);
            if i % POLLED_AT_ONCE == 0 {
                rt.yield_now().await;
            }
        }
        let meter = Meter::start();
        for i in 0..n {
            let sleep = &mut sleeps[random.index(live)];
            sleep.set(rt.sleep(random.far_away()));
            poll_fn(|cx| poll_once(sleep.as_mut().poll(cx))).await;
            if i % POLLED_AT_ONCE == 0 {
                rt.yield_now().await;
            }
        }
        meter.stop()
    })
}

/// Polls a sleep for the first time, which arms it.
async fn arm(sleep: Pin<&mut impl Future>) {
    let mut sleep = sleep;
    poll_fn(|cx| poll_once(sleep.as_mut().poll(cx))).await;
}

fn poll_once<T>(polled: Poll<T>) -> Poll<()> {
    assert!(polled.is_pending(), "the deadline is far away");
    Poll::Ready(())
}

/// What does a sleep cost from the spawn of its task to the end of it, when `live` of them are
/// armed at once and fire within ten milliseconds?
///
/// All are armed before the first is due. `slowdown` says how much longer than usual that takes.
pub(crate) fn timer_fire<R: Runtime>(rt: R, live: u64, n: u64, slowdown: u32) -> Reading {
    rt.run(async move {
        let mut deadlines = Deadlines::new(live, slowdown);
        let meter = Meter::start();
        for _ in 0..n / live {
            let mut tasks = Vec::with_capacity(live as usize);
            for deadline in deadlines.batch() {
                let sleep = rt.sleep_until(deadline);
                tasks.push(rt.spawn(async move {
                    sleep.await;
                }));
            }
            for task in tasks {
                task.await;
            }
        }
        meter.stop()
    })
}

/// Deadlines for batches of timers of which none is due before all are armed.
pub(crate) struct Deadlines {
    live: u64,
    arming: Duration,
    random: Random,
}

impl Deadlines {
    pub(crate) fn new(live: u64, slowdown: u32) -> Self {
        let arming = (Duration::from_micros(2) * live as u32).max(Duration::from_millis(2));
        Self {
            live,
            arming: arming * slowdown,
            random: Random::new(),
        }
    }

    pub(crate) fn batch(&mut self) -> impl Iterator<Item = Instant> {
        let first = Instant::now() + self.arming;
        (0..self.live).map(move |_| first + self.random.below(FIRE_WITHIN))
    }
}

/// Durations, the same in every run.
struct Random(u64);

impl Random {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn below(&mut self, limit: Duration) -> Duration {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let scaled = u128::from(self.0) * u128::from(limit.as_nanos() as u64);
        Duration::from_nanos((scaled >> 64) as u64)
    }

    fn index(&mut self, length: u64) -> usize {
        self.below(Duration::from_nanos(length)).as_nanos() as usize
    }

    /// An hour and up to four seconds: within the range of one of tokio's wheels, as deadlines
    /// usually are.
    fn far_away(&mut self) -> Duration {
        Duration::from_secs(3600) + self.below(Duration::from_secs(4))
    }
}
