//! Few and many: what does one of `live` cost that are there at once, from its begin to its end? If
//! the answer depends on `live`, some structure of the runtime does not scale.
//!
//! Timers and tasks are `timers::timer_fire` and `tasks::spawn_join_many`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use phaseloop_node::Deferred;

use super::sockets::announced_listener;
use crate::meter::{Meter, Reading};
use crate::runtime::phaseloop::Phaseloop;
use crate::runtime::{Pool, Runtime, Sockets};

/// Longer than the message that each connection echoes.
const BUFFER: usize = 128;

/// Tasks that wait for one event, which wakes them all.
pub(crate) fn waiters<R: Runtime>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n / live {
            let event = Rc::new(Event::default());
            let tasks: Vec<_> = (0..live)
                .map(|_| {
                    let event = event.clone();
                    rt.spawn(async move { event.wait().await })
                })
                .collect();
            // Every task waits before this one runs again.
            rt.spawn(async {}).await;
            event.happen();
            for task in tasks {
                task.await;
            }
        }
        meter.stop()
    })
}

/// Happens once, and wakes all that wait for it.
#[derive(Default)]
struct Event {
    happened: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Event {
    fn happen(&self) {
        self.happened.set(true);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    fn wait(&self) -> impl Future<Output = ()> {
        poll_fn(|cx| {
            if self.happened.get() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// Promises that are pending, each with a task that waits for it, until all are settled.
pub(crate) fn promises(live: u64, n: u64) -> Reading {
    Phaseloop::default().run(async move {
        let meter = Meter::start();
        for _ in 0..n / live {
            let (deferred, tasks): (Vec<_>, Vec<_>) = (0..live)
                .map(|_| {
                    let deferred = Deferred::new();
                    let promise = deferred.promise();
                    (deferred, phaseloop::spawn(async { promise.await.is_ok() }))
                })
                .unzip();
            // Every task waits before this one runs again.
            let nothing = phaseloop::spawn(async {}).await;
            nothing.expect("it does not panic");
            for (i, deferred) in deferred.iter().enumerate() {
                deferred.resolve(i);
            }
            for task in tasks {
                assert!(task.await.expect("it does not panic"));
            }
        }
        meter.stop()
    })
}

/// Jobs of the thread pool, queued together.
pub(crate) fn jobs<R: Pool>(rt: R, live: u64, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n / live {
            let jobs: Vec<_> = (0..live).map(|_| rt.blocking(|| ())).collect();
            for job in jobs {
                job.await;
            }
        }
        meter.stop()
    })
}

/// Connections that all are open before the first of them gets its message.
pub(crate) fn connections<R: Sockets>(rt: R, n: u64) -> Reading {
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let mut tasks = Vec::with_capacity(n as usize);
        let meter = Meter::start();
        for _ in 0..n {
            let stream = rt.accept(&listener).await.expect("clients connect");
            tasks.push(rt.spawn(rt.echo(stream, BUFFER)));
        }
        for task in tasks {
            task.await;
        }
        meter.stop()
    })
}
