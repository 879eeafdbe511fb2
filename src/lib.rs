#![doc = include_str!("../README.md")]

// What the layers may know of each other is checked by `tests/layers.rs`; each line knows those before it.
mod error;
mod kinds;
mod sys;

mod executor;
pub mod pool;
#[cfg(not(feature = "probe"))]
mod probe;
#[cfg(feature = "probe")]
pub mod probe;

mod event_loop;

mod async_handle;
mod blocking;
pub mod io;
pub mod phase;
pub mod task;
pub mod time;

#[cfg(feature = "fs")]
pub mod fs;
#[cfg(feature = "net")]
pub mod net;
#[cfg(all(unix, feature = "os"))]
pub mod os;
#[cfg(all(unix, feature = "signal"))]
pub mod signal;
#[cfg(all(unix, feature = "tty"))]
pub mod tty;

#[cfg(all(unix, feature = "process"))]
pub mod process;

#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(feature = "node")]
pub mod node;
#[cfg(feature = "tokio-io")]
mod tokio_io;

pub use async_handle::{AsyncHandle, AsyncSender};
pub use blocking::{spawn_blocking, spawn_blocking_as};
pub use error::Error;
#[cfg(any(feature = "fs", feature = "net"))]
pub use error::{OsError, os_error};
pub use event_loop::builder::Builder;
pub use event_loop::handle::{Immediate, LoopHandle};
pub use event_loop::handles::{Close, Handle, HandleInfo};
pub use event_loop::remote::{Remote, RemoteJoinHandle};
pub use event_loop::report::Report;
pub use event_loop::root::{block_on, run};
pub use event_loop::shutdown::Busy;
pub use event_loop::{EventLoop, RunMode};
pub use executor::spawn::UnhandledPanic;
pub use kinds::Kind;
pub use sys::poller::BackendFd;
pub use task::{JoinHandle, next_tick, queue_microtask, set_immediate, spawn};
