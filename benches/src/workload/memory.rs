//! How much memory one of many takes that all wait.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use super::sockets::announced_listener;
use super::timers::POLLED_AT_ONCE;
use crate::meter::{Meter, Reading};
use crate::runtime::{Runtime, Sockets};

/// How much memory does a task take that waits for ever?
pub(crate) fn idle_task<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.detach(std::future::pending());
        }
        // Every task waits by now, and the runtime too.
        rt.sleep(Duration::from_millis(20)).await;
        meter.stop()
    })
}

/// How much memory does an armed sleep take?
pub(crate) fn idle_timer<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let mut sleeps = Vec::with_capacity(n as usize);
        let meter = Meter::start();
        for i in 0..n {
            let mut sleep = Box::pin(rt.sleep(Duration::from_secs(3600)));
            poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await;
            sleeps.push(sleep);
            if i % POLLED_AT_ONCE == 0 {
                rt.yield_now().await;
            }
        }
        meter.stop()
    })
}

/// How much memory does a task take that is asleep?
pub(crate) fn idle_sleeper<R: Runtime>(rt: R, n: u64) -> Reading {
    rt.run(async move {
        let meter = Meter::start();
        for _ in 0..n {
            rt.detach(async move {
                rt.sleep(Duration::from_secs(3600)).await;
            });
        }
        // Every task waits by now, and the runtime too.
        rt.sleep(Duration::from_millis(20)).await;
        meter.stop()
    })
}

/// How much memory does a connection take on which a task waits for the first byte?
pub(crate) fn idle_connection<R: Sockets>(rt: R, n: u64) -> Reading {
    let listener = announced_listener();
    rt.run(async move {
        let listener = rt.listener(listener);
        let meter = Meter::start();
        for _ in 0..n {
            let mut stream = rt.accept(&listener).await.expect("clients connect");
            rt.detach(async move {
                // Whatever comes, the connection ends with it.
                let _ = rt.first_byte(&mut stream).await;
            });
        }
        // Every task waits by now.
        rt.sleep(Duration::from_millis(20)).await;
        meter.stop()
    })
}
