//! Kernel notifications about files and directories.
//!
//! | file | where | by |
//! |---|---|---|
//! | `inotify.rs` | Linux, Android | one inotify descriptor, read in the poll phase |
//! | `kqueue.rs` | macOS, the BSDs | a kqueue, with a descriptor for each file |
//! | `windows.rs` | Windows | an overlapped operation for each directory |
//! | `unsupported.rs` | everywhere else | nothing: it cannot be made |

// The comparison is tested on every platform.
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "used by the backend of macOS and the BSDs only")
)]
pub(super) mod entries;

use std::ffi::OsString;

pub(crate) use super::platform::watch::Notices;
pub(crate) use crate::kinds::WatchKind;

/// The watch descriptor of the kernel: one for each file or directory, whatever path led to it.
pub(crate) type WatchId = i32;

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The watched file; `None` for an overflow of the queue.
    pub(crate) id: Option<WatchId>,
    /// The kind of change; `None` when the watch has ended.
    pub(crate) kind: Option<WatchKind>,
    pub(crate) is_directory: bool,
    /// The entry of a watched directory; `None` for the watched file itself.
    pub(crate) name: Option<OsString>,
}
