//! What the standard library has no name for, or a different one on each system.
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
pub(crate) use portable::*;
#[cfg(unix)]
pub(crate) use unix::*;

/// What becomes of one of a file's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Time {
    /// It stays as it is.
    #[default]
    Keep,
    /// The system's own now.
    Now,
    At(SystemTime),
}

/// A name without what it ends in, if it does.
pub(crate) fn strip_suffix<'a>(name: &'a OsStr, suffix: &str) -> Option<&'a OsStr> {
    let stem = name.as_encoded_bytes().strip_suffix(suffix.as_bytes())?;
    // SAFETY: the bytes are those of an `OsStr`, cut right before a text, `suffix`; that is a place where they may be cut,
    // unless it is empty, and then they are whole.
    Some(unsafe { OsStr::from_encoded_bytes_unchecked(stem) })
}
