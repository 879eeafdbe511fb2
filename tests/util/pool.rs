//! A pool whose only thread can be held.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use phaseloop::pool::{Pool, PoolBuilder};
use phaseloop::{Builder, EventLoop, spawn_blocking};

/// Nothing here takes that long, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A loop with a pool of its own, of that many threads.
pub(crate) fn with_threads(threads: usize) -> (EventLoop, Pool) {
    let pool = PoolBuilder::new().threads(threads).build();
    let event_loop = Builder::new().pool(pool.clone()).build().unwrap();
    (event_loop, pool)
}

/// Holds one thread of the running loop's pool until it is dropped.
pub(crate) struct Hold {
    _open: Sender<()>,
}

impl Hold {
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (starts, started) = channel();
        let (open, opened) = channel::<()>();
        drop(spawn_blocking(move || {
            let _ = starts.send(());
            // An error: the gate is open.
            let _ = opened.recv();
        }));
        started.recv_timeout(LONG).expect("a thread is free");
        Self { _open: open }
    }
}
