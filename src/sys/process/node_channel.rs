//! The socket that a parent passes to its child under the number in `NODE_CHANNEL_FD`.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_getfd};

use super::inherited::Inherited;
use super::pre_exec::borrowed;

/// Duplicates the socket. `None` if it does not exist or was taken before.
///
/// The second value disconnects when it is dropped: the number stays open, so a close of the first
/// is no EOF for the parent.
pub(crate) fn take(number: &OsStr) -> Option<(OwnedFd, Inherited)> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number: RawFd = number.to_str()?.parse().ok().filter(|number| *number > 2)?;
    let socket = borrowed(number);
    if !is_inherited_socket(socket) || IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    let inherited = Inherited::new(socket).ok()?;
    let duplicate = fcntl_dupfd_cloexec(&inherited, 3).ok()?;
    Some((duplicate, inherited))
}

/// Returns whether the number is a socket that this process was started with: descriptors that it
/// opens itself are close-on-exec.
fn is_inherited_socket(descriptor: BorrowedFd<'_>) -> bool {
    let is_socket = fstat(descriptor)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    let is_inherited = fcntl_getfd(descriptor).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    is_socket && is_inherited
}
