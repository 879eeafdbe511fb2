//! The workloads, each written once over [`Runtime`].
//!
//! Each function is one question of the kind "what does this operation cost?", and does it `n` times. The measured part
//! runs in a spawned task; what the loop does between two polls of it is measured with it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::meter::{Meter, Reading, Stopwatch};
use crate::runtime::Runtime;

/// Sleeps polled in one poll of a task: fewer than tokio allows before its sleeps refuse to be armed.
const POLLED_AT_ONCE: u64 = 64;

/// How far apart the first and the last deadline of one batch of sleeps are.
const FIRE_WITHIN: Duration = Duration::from_millis(10);

/// What does it cost to spawn a task that returns at once, and to wait for it?
pub(crate) fn spawn_join<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.spawn(async {}).await;
        }
        meter.stop()
    })
}

/// What does one poll of a task cost that wakes itself each time, alone or among `tasks`?
pub(crate) fn self_wake<R: Runtime>(rt: R, tasks: u64, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        let tasks: Vec<_> = (0..tasks).map(|_| rt.spawn(wake_self(n / tasks))).collect();
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}

fn wake_self(mut polls: u64) -> impl Future<Output = ()> {
    poll_fn(move |cx| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// What does the runtime's own way to let others run cost, with nobody else there?
pub(crate) fn yield_now<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.yield_now().await;
        }
        meter.stop()
    })
}

/// What does it cost to hand a value over to another task and to sleep until one comes back? One operation is one
/// hand-over, half of the way there and back.
pub(crate) fn ping_pong<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        let (there, back) = (Rc::new(Slot::default()), Rc::new(Slot::default()));
        let pong = {
            let (there, back) = (there.clone(), back.clone());
            rt.spawn(async move {
                for _ in 0..n / 2 {
                    there.receive().await;
                    back.send();
                }
            })
        };
        let ping = rt.spawn(async move {
            for _ in 0..n / 2 {
                there.send();
                back.receive().await;
            }
        });
        ping.await;
        pong.await;
        meter.stop()
    })
}

/// A channel for one token between two tasks of one thread.
#[derive(Default)]
struct Slot {
    full: Cell<bool>,
    receiver: Cell<Option<Waker>>,
}

impl Slot {
    fn send(&self) {
        self.full.set(true);
        if let Some(receiver) = self.receiver.take() {
            receiver.wake();
        }
    }

    fn receive(&self) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            if self.full.take() {
                return Poll::Ready(());
            }
            self.receiver.set(Some(cx.waker().clone()));
            Poll::Pending
        })
    }
}

/// How long is it from a wake on another thread to the answer, when the loop sleeps?
///
/// Time is wall time, from the call of the waker to the answer's arrival. The other thread waits before each call until
/// the loop sleeps.
pub(crate) fn cross_thread_wake<R: Runtime>(rt: R, n: u64, slowdown: u32) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        let bell = Arc::new(Bell::default());
        let answered = Arc::new(AtomicBool::new(false));
        let caller = {
            let (bell, answered) = (bell.clone(), answered.clone());
            thread::spawn(move || {
                let mut stopwatch = Stopwatch::new();
                for _ in 0..n {
                    thread::sleep(Duration::from_micros(50) * slowdown);
                    stopwatch.measure(|| {
                        bell.ring();
                        while !answered.swap(false, Ordering::Acquire) {
                            thread::park();
                        }
                    });
                }
                stopwatch.total()
            })
        };
        for _ in 0..n {
            bell.wait().await;
            answered.store(true, Ordering::Release);
            caller.thread().unpark();
        }
        let time = caller.join().expect("it does not panic");
        Reading {
            time,
            ..meter.stop()
        }
    })
}

/// A channel for one token between two threads.
#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    listener: Mutex<Option<Waker>>,
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        let listener = self.listener.lock().expect("nobody panics under it").take();
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    fn wait(&self) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            let mut listener = self.listener.lock().expect("nobody panics under it");
            if self.rung.swap(false, Ordering::Acquire) {
                return Poll::Ready(());
            }
            *listener = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// What does a whole turn of the loop cost that runs one immediate?
pub(crate) fn immediates(n: u64) -> Reading {
    fn again(left: u64, done: Rc<Slot>) {
        if left == 0 {
            done.send();
        } else {
            phaseloop::set_immediate(move || again(left - 1, done));
        }
    }
    chain(n, again)
}

/// What does one tick cost?
pub(crate) fn next_tick(n: u64) -> Reading {
    fn again(left: u64, done: Rc<Slot>) {
        if left == 0 {
            done.send();
        } else {
            phaseloop::next_tick(move || again(left - 1, done));
        }
    }
    chain(n, again)
}

fn chain(n: u64, again: fn(u64, Rc<Slot>)) -> Reading {
    crate::runtime::Phaseloop.run(async move {
        let meter = Meter::start();
        let done = Rc::new(Slot::default());
        again(n, done.clone());
        done.receive().await;
        meter.stop()
    })
}

/// What does it cost to let a whole turn pass, as a task?
pub(crate) fn yield_immediate(n: u64) -> Reading {
    crate::runtime::Phaseloop.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            phaseloop::task::yield_now_immediate().await;
        }
        meter.stop()
    })
}

/// What does it cost to arm a sleep and to drop it, while `live` others are armed?
pub(crate) fn timer_drop<R: Runtime>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let mut random = Random::new();
        let mut others = Vec::new();
        for i in 0..live {
            let mut sleep = Box::pin(rt.sleep(random.far_away()));
            poll_fn(|cx| poll_once(sleep.as_mut().poll(cx))).await;
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

fn poll_once<T>(polled: Poll<T>) -> Poll<()> {
    assert!(polled.is_pending(), "the deadline is far away");
    Poll::Ready(())
}

/// What does a sleep cost from the spawn of its task to the end of it, when `live` of them are armed at once and fire
/// within ten milliseconds?
///
/// All are armed before the first is due. `slowdown` says how much longer than usual that takes.
pub(crate) fn timer_fire<R: Runtime>(rt: R, live: u64, n: u64, slowdown: u32) -> Reading {
    let arming = (Duration::from_micros(2) * live as u32).max(Duration::from_millis(2)) * slowdown;
    rt.run(async move {
        let mut random = Random::new();
        let meter = Meter::start();
        for _ in 0..n / live {
            let mut tasks = Vec::with_capacity(live as usize);
            let first = Instant::now() + arming;
            for _ in 0..live {
                let sleep = rt.sleep_until(first + random.below(FIRE_WITHIN));
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

/// How much memory does a task take that waits for ever?
pub(crate) fn idle_task<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.detach(std::future::pending());
        }
        // Everybody is polled once before this task has its turn again.
        rt.spawn(async {}).await;
        meter.stop()
    })
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

    /// An hour and up to four seconds: within the range of one of tokio's wheels, as deadlines usually are.
    fn far_away(&mut self) -> Duration {
        Duration::from_secs(3600) + self.below(Duration::from_secs(4))
    }
}
