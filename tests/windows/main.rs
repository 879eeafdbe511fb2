//! What Windows has behind the names of Unix: child processes and their pipes, console events, file
//! watches. On other platforms the binary is empty.
#![cfg(windows)]

mod child;
#[cfg(feature = "fs")]
mod fs;
#[cfg(feature = "net")]
mod lookup;
#[cfg(feature = "net")]
mod named_pipe;
#[cfg(feature = "process")]
mod pipe;
#[cfg(feature = "process")]
mod process;
#[cfg(feature = "process")]
mod stdio;
#[cfg(feature = "fs")]
mod watch;

use std::future::Future;
use std::time::Duration;

/// Returns whether this is Wine, which has the files of its host. A test says what Wine lacks.
#[cfg(any(feature = "fs", feature = "net"))]
fn is_wine() -> bool {
    std::path::Path::new(r"Z:\proc\version").exists()
}

/// Runs a future on a loop. It fails if the future takes five minutes.
fn run<F: Future>(future: F) -> F::Output {
    phaseloop::block_on(async {
        let limit = Duration::from_secs(300);
        let done = phaseloop::time::timeout(limit, future).await;
        done.unwrap_or_else(|_| panic!("it takes longer than {limit:?}"))
    })
}
