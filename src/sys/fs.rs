//! File operations that the standard library lacks or names differently on each platform.
#![allow(
    unsafe_code,
    reason = "a name is cut, which the standard library has no safe way for"
)]

use std::ffi::OsStr;
use std::time::SystemTime;

#[cfg(not(unix))]
mod portable;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use portable::*;
#[cfg(unix)]
pub use unix::*;

/// A change to one of the times of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Time {
    /// Leave it unchanged.
    #[default]
    Keep,
    /// Set it to the kernel's current time.
    Now,
    At(SystemTime),
}

/// Statistics of a file system; [`FileSystem`](crate::fs::FileSystem) documents the fields.
pub(crate) struct FileSystem {
    pub(crate) kind: u64,
    pub(crate) block_size: u64,
    pub(crate) fragment_size: u64,
    pub(crate) blocks: u64,
    pub(crate) free_blocks: u64,
    pub(crate) available_blocks: u64,
    pub(crate) files: u64,
    pub(crate) free_files: u64,
}

/// Removes a suffix from a name. `None`: the name does not end in it.
pub(crate) fn strip_suffix<'a>(name: &'a OsStr, suffix: &str) -> Option<&'a OsStr> {
    let stem = name.as_encoded_bytes().strip_suffix(suffix.as_bytes())?;
    // SAFETY: the bytes are those of an `OsStr`, cut right before a text, `suffix`; that is a place
    // where they may be cut, unless it is empty, and then they are whole.
    Some(unsafe { OsStr::from_encoded_bytes_unchecked(stem) })
}
