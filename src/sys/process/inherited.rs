//! A socket that a parent has left for its child under a number that the environment tells.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_setfd};

/// What to tell the child: the number, and which socket it will find there. A process further down that has the variable
/// but not the socket notices.
pub(crate) fn describe(number: RawFd, socket: impl AsFd) -> io::Result<String> {
    Ok(format!("{number}:{}", fstat(socket)?.st_ino))
}

/// Takes over the socket that was described to this process. `None`: it was taken before.
///
/// # Errors
///
/// `InvalidData` when it is not there.
pub(crate) fn take(description: &OsStr) -> io::Result<Option<OwnedFd>> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number = find(description).ok_or_else(|| {
        let text = format!("there is no channel at {description:?}");
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    // SAFETY: the parent has left it for this call, which comes here once: nobody else owns the number.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    Ok(Some(socket))
}

fn find(description: &OsStr) -> Option<RawFd> {
    let (number, inode) = description.to_str()?.split_once(':')?;
    let number: RawFd = number.parse().ok().filter(|number| *number > 2)?;
    // SAFETY: borrowed for one question; if the number is nobody's, the answer is an error.
    let stat = fstat(unsafe { BorrowedFd::borrow_raw(number) }).ok()?;
    let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
    (is_socket && stat.st_ino.to_string() == inode).then_some(number)
}
