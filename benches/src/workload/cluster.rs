//! What loops and threads send to a loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use phaseloop::LoopHandle;

use crate::meter::{Meter, Reading};

/// What does a call cost that waits in the inbox with so many others?
///
/// The loop's own thread sends them, through the handle for other threads: so the counts do not
/// depend on when a thread runs.
pub(crate) fn remote_call_flood(at_once: u64, n: u64) -> Reading {
    phaseloop::block_on(async move {
        let remote = LoopHandle::current().remote();
        let called = Arc::new(AtomicU64::new(0));
        let meter = Meter::start();
        for batch in 1..=n / at_once {
            for _ in 0..at_once {
                let called = called.clone();
                remote
                    .call(move || _ = called.fetch_add(1, Ordering::Relaxed))
                    .expect("the loop runs");
            }
            while called.load(Ordering::Relaxed) < batch * at_once {
                phaseloop::phase::check().await;
            }
        }
        meter.stop()
    })
}
