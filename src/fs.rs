//! Files and directories, on the loop's thread pool.
//!
//! ```
//! use phaseloop::fs;
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
//!     fs::write(folder.join("greeting"), "hello").await?;
//!     for entry in fs::scan_dir(&folder).await? {
//!         println!("{}: {} bytes", entry.path().display(), entry.metadata().await?.len());
//!     }
//!     assert_eq!(fs::read_to_string(folder.join("greeting")).await?, "hello");
//!     fs::remove_dir_all(folder).await
//! }
//! ```
//!
//! The functions have the names and arguments of [`std::fs`]; a few more come from libuv. Each call
//! is one job of the pool (class [`Fs`](crate::pool::Class::Fs)), however many system calls it
//! makes: [`read`] opens, reads and closes a file in one job. Its result is delivered in the poll
//! phase. Two calls in flight complete in any order.
//!
//! A job owns its arguments. Dropping the future of a call removes a job from the pool's queue if
//! no thread has started it; a job that has started runs to completion. Until then it keeps the
//! loop alive.
//!
//! [`watch`] reports changes of files and directories as the kernel sends them. [`watch_poll`]
//! finds changes by comparing metadata at an interval.
//!
//! Errors are OS errors. Their text names the operation and the path, and
//! [`OsError`](crate::OsError) has both as values. A call for which the pool can start no thread
//! fails with [`WouldBlock`](std::io::ErrorKind::WouldBlock).
//!
//! All functions panic when they are polled and no loop runs on this thread.

mod copy;
mod dir;
mod dir_builder;
mod entries;
mod file;
pub(crate) mod job;
mod open_options;
pub(crate) mod ops;
mod positional;
mod system;
mod temp;
mod times;
#[cfg(unix)]
mod unix;
mod watch;
mod watch_poll;
mod watches;
#[cfg(not(unix))]
mod windows;

#[cfg(unix)]
use unix as platform;
#[cfg(not(unix))]
use windows as platform;

pub use copy::{CopyOptions, Reflink, copy};
pub use dir::{DirEntry, ReadDir, read_dir, scan_dir};
pub use dir_builder::DirBuilder;
pub use entries::{
    canonicalize, create_dir, create_dir_all, hard_link, read_link, remove_dir, remove_dir_all,
    remove_file,
};
pub use file::File;
pub use open_options::OpenOptions;
pub use ops::{
    append, exists, metadata, read, read_to_string, rename, set_permissions, set_times,
    set_times_nofollow, symlink_metadata, truncate, write,
};
pub use system::{Access, FileSystem, access, copy_range, statfs, symlink};
pub use temp::{mkdtemp, mkstemp};
pub use times::FileTimes;
#[cfg(unix)]
pub use unix::{chown, lchown};
pub use watch::{WatchEvent, WatchKind, Watcher, watch};
pub use watch_poll::{PollEvent, PollWatcher, watch_poll};
