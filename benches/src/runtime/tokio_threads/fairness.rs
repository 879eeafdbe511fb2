//! The victim and its neighbours, each a task that may run on any core.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::net::TcpListener;

use super::on_threads;
use crate::latency::Latencies;
use crate::meter::{Meter, Reading};
use crate::runtime::nonblocking_listener;
use crate::workload::fairness::{BITE, CALM, JOBS, MEAL, NAP, compute, storm};
use crate::workload::sockets::announced_listener;

/// Notifies the others that the victim has seen enough.
#[derive(Clone, Default)]
struct Over(Arc<AtomicBool>);

impl Over {
    fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) fn alone(naps: u64) -> Reading {
    beside(naps, |_| ())
}

pub(super) fn hog(naps: u64) -> Reading {
    beside(naps, |over| {
        tokio::spawn(async move {
            while !over.get() {
                let start = Instant::now();
                while start.elapsed() < MEAL {
                    compute(BITE);
                    tokio::task::yield_now().await;
                }
                tokio::time::sleep(CALM).await;
            }
        });
    })
}

pub(super) fn wake_storm(naps: u64) -> Reading {
    beside(naps, |over| {
        tokio::spawn(async move {
            while !over.get() {
                storm().await;
                tokio::time::sleep(CALM).await;
            }
        });
    })
}

pub(super) fn completion_storm(naps: u64) -> Reading {
    beside(naps, |over| {
        for _ in 0..JOBS {
            let over = over.clone();
            tokio::spawn(async move {
                while !over.get() {
                    let _ = tokio::task::spawn_blocking(|| ()).await;
                }
            });
        }
    })
}

pub(super) fn accept_flood(naps: u64) -> Reading {
    let listener = nonblocking_listener(announced_listener());
    beside(naps, move |over| {
        tokio::spawn(async move {
            let listener = TcpListener::from_std(listener).expect("it is a listener");
            while !over.get() {
                drop(listener.accept().await);
            }
        });
    })
}

fn beside(naps: u64, others: impl FnOnce(Over) + Send + 'static) -> Reading {
    on_threads(async move {
        let over = Over::default();
        let mut latencies = Latencies::new();
        others(over.clone());
        let meter = Meter::start();
        for _ in 0..naps {
            let deadline = Instant::now() + NAP;
            tokio::time::sleep_until(deadline.into()).await;
            latencies.record(deadline.elapsed());
        }
        over.0.store(true, Ordering::Relaxed);
        Reading {
            latencies: Some(latencies),
            ..meter.stop()
        }
    })
}
