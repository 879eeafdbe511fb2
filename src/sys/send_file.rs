//! Bytes from a file to a socket without a copy, and which bytes can be sent without a disk.
//!
//! | file | platforms | the call | what is cached |
//! |---|---|---|---|
//! | `linux.rs` | Linux, Android | `sendfile` | `cachestat`, or a read that does not wait |
//! | `bsd.rs` | macOS, FreeBSD, DragonFly | `sendfile` | not asked |
//! | `unsupported.rs` | others | none: the caller copies | not asked |

#[cfg_attr(
    any(target_os = "android", target_os = "linux"),
    path = "send_file/linux.rs"
)]
#[cfg_attr(
    any(
        target_vendor = "apple",
        target_os = "dragonfly",
        target_os = "freebsd"
    ),
    path = "send_file/bsd.rs"
)]
#[cfg_attr(
    not(any(
        target_os = "android",
        target_os = "linux",
        target_vendor = "apple",
        target_os = "dragonfly",
        target_os = "freebsd"
    )),
    path = "send_file/unsupported.rs"
)]
mod platform;

use std::fs::File;
use std::io;

use crate::sys::poller::AsSource;

/// Returns how many of `length` bytes from `offset` on a send finds in the page cache, or behind
/// EOF: zero if the first is not there. `None`: the file system cannot be asked.
///
/// The answer is out of date at once, if memory is short. A send then waits for the disk.
#[inline]
pub(crate) fn cached(file: &File, offset: u64, length: usize) -> Option<usize> {
    platform::cached(file, offset, length)
}

/// Sends at most `length` bytes, at least one, of a file to a socket that does not block. Zero is
/// EOF of the file.
///
/// # Errors
///
/// [`WouldBlock`](io::ErrorKind::WouldBlock) if the socket has no room.
/// [`Unsupported`](io::ErrorKind::Unsupported) where there is no such call, or not for this file:
/// the bytes have to be copied.
#[inline]
pub(crate) fn send(
    socket: &impl AsSource,
    file: &File,
    offset: u64,
    length: usize,
) -> io::Result<usize> {
    platform::send(socket, file, offset, length)
}
