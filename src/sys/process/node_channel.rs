//! The socket that a parent passes to its child under the number in `NODE_CHANNEL_FD`.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Takes ownership of the socket. `None` if it does not exist or was taken before.
pub fn take(number: &OsStr) -> Option<OwnedFd> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number: RawFd = number.to_str()?.parse().ok()?;
    if number < 3 || !is_inherited_socket(number) || IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the number refers to an open socket. The socket was inherited, since descriptors that
    // this process opens are close-on-exec. The parent passes it for this call, which gets here
    // once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

fn is_inherited_socket(number: RawFd) -> bool {
    // SAFETY: the number is borrowed for two queries, which fail if it is not open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let is_socket = fstat(descriptor)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    let is_inherited = fcntl_getfd(descriptor).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    is_socket && is_inherited
}
