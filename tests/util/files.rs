//! What tests with files share: a directory of their own, and a pool whose only thread can be held.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use phaseloop::pool::{Pool, PoolBuilder};
use phaseloop::{Builder, EventLoop, spawn_blocking};

/// Nothing here takes that long, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A directory for one test; removed with what is in it.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let name = format!("phaseloop-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// A file with this content.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

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

/// Polls a future once, and drops it.
#[track_caller]
pub(crate) fn poll_and_drop<F: Future>(future: F) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(pin!(future).poll(&mut cx), Poll::Pending));
}
