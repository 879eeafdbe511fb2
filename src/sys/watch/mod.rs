//! Notices of the kernel about files and directories.
//!
//! | file | where | by |
//! |---|---|---|
//! | `inotify.rs` | Linux, Android | one inotify descriptor, read in the poll phase |
//! | `unsupported.rs` | everywhere else | nothing: it cannot be made |

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "inotify.rs")]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    path = "unsupported.rs"
)]
mod backend;

use std::ffi::OsString;

pub(crate) use backend::Notices;

/// The number that the kernel has given to a watched file or directory: one for each, by whatever path.
pub(crate) type WatchId = i32;

/// What the kernel says of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What it is about; `None` for an overflow.
    pub(crate) id: Option<WatchId>,
    /// What has happened; `None` for the end of the watch.
    pub(crate) kind: Option<WatchKind>,
    pub(crate) is_directory: bool,
    /// The entry of a watched directory; `None` for the watched thing itself.
    pub(crate) name: Option<OsString>,
}

/// What has happened to a watched file or directory, or to an entry of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WatchKind {
    /// Its content has changed: written or truncated.
    Modified,
    /// Its attributes have changed: permissions, times, owner, number of links.
    Attributes,
    /// An entry of the directory was made.
    Created,
    /// An entry of the directory was removed.
    Removed,
    /// An entry was renamed, and had this name before. If it stays in the directory, a [`MovedTo`](Self::MovedTo) with the
    /// same number follows.
    MovedFrom(u32),
    /// An entry was renamed, and has this name now. If it was in the directory before, a
    /// [`MovedFrom`](Self::MovedFrom) with the same number came before.
    MovedTo(u32),
    /// The watched file or directory itself was removed: its last name is gone and nobody has it open. The end follows.
    SelfRemoved,
    /// The watched file or directory itself was renamed. It is still watched, under its new name.
    SelfMoved,
    /// The file system was unmounted. The end follows.
    Unmounted,
    /// Some events are lost, because they came faster than they were received. Look for yourself.
    Overflow,
}

impl WatchKind {
    /// What libuv and Node call *change*: of content or attributes.
    #[must_use]
    pub fn is_change(self) -> bool {
        matches!(self, Self::Modified | Self::Attributes)
    }

    /// What libuv and Node call *rename*: a name has appeared or gone.
    #[must_use]
    pub fn is_rename(self) -> bool {
        !self.is_change() && self != Self::Overflow
    }
}
