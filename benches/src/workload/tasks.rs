//! Tasks: spawn, wake, hand over.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::meter::{Meter, Reading, Stopwatch};
use crate::runtime::Runtime;

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

/// What does it cost to spawn so many tasks that return at once, and then to wait for all, each?
///
/// The list is made once: a new one for each batch would be a large allocation, at which the C
/// library merges all small blocks that are free.
pub(crate) fn spawn_join_many<R: Runtime>(rt: R, at_once: u64, n: u64) -> Reading {
    rt.run(async move {
        let mut tasks = Vec::with_capacity(at_once as usize);
        let meter = Meter::start();
        for _ in 0..n / at_once {
            tasks.extend((0..at_once).map(|_| rt.spawn(async {})));
            for task in tasks.drain(..) {
                task.await;
            }
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

/// The cost of the runtime's own yield, with no other task.
pub(crate) fn yield_now<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.yield_now().await;
        }
        meter.stop()
    })
}

/// What does it cost to hand a value over to another task and to sleep until one comes back? One
/// operation is one hand-over, half of the way there and back.
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
pub(super) struct Slot {
    full: Cell<bool>,
    receiver: Cell<Option<Waker>>,
}

impl Slot {
    pub(super) fn send(&self) {
        self.full.set(true);
        if let Some(receiver) = self.receiver.take() {
            receiver.wake();
        }
    }

    pub(super) fn receive(&self) -> impl Future<Output = ()> {
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
/// Time is wall time, from the call of the waker to the answer's arrival. The other thread waits
/// before each call until the loop sleeps.
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
            wall: time,
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
        let listener = self
            .listener
            .lock()
            .expect("no holder of the lock panics")
            .take();
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    fn wait(&self) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            let mut listener = self.listener.lock().expect("no holder of the lock panics");
            if self.rung.swap(false, Ordering::Acquire) {
                return Poll::Ready(());
            }
            *listener = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}
