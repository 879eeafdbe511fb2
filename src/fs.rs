//! Files and directories, on the loop's thread pool.
//!
//! Functions have the names and arguments of [`std::fs`]'s, and a few more that libuv has. Each call is one job of the pool
//! (class [`Fs`](crate::pool::Class::Fs)), however many system calls it needs: [`read`] opens, reads and closes a file in
//! one go. Its end is delivered in the poll phase. Two calls in flight have no order between them.
//!
//! A job owns its arguments. Dropping the future of a call takes it out of the pool's queue if no thread has begun it; one
//! that has begun goes on to its end. Until then it keeps the loop alive.
//!
//! [`watch`] tells what happens to files and directories, [`watch_poll`] finds it out by looking.
//!
//! Errors are those of the system, with the operation and the path in their text and, as a value, in [`OsError`](crate::OsError).
//!
//! All functions panic when they are polled and no loop runs on this thread.

mod copy;
mod dir;
mod file;
mod job;
mod open_options;
mod ops;
#[cfg(unix)]
mod positional;
mod temp;
mod times;
#[cfg(unix)]
mod unix;
mod watch;
mod watch_poll;

pub use copy::{CopyOptions, Reflink, copy};
pub use dir::{DirEntry, ReadDir, read_dir, scan_dir};
pub use file::File;
pub use open_options::OpenOptions;
pub use ops::{
    append, canonicalize, create_dir, create_dir_all, exists, hard_link, metadata, read, read_link,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename, set_permissions, set_times,
    set_times_nofollow, symlink_metadata, truncate, write,
};
pub use temp::{mkdtemp, mkstemp};
pub use times::FileTimes;
#[cfg(unix)]
pub use unix::{Access, FileSystem, access, chown, copy_range, lchown, statfs, symlink};
pub use watch::{WatchEvent, WatchKind, Watcher, watch};
pub use watch_poll::{PollEvent, PollWatcher, watch_poll};
