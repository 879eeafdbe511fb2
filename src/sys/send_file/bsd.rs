//! macOS, FreeBSD and DragonFly: their `sendfile`, which reports what it sent beside an error.
#![allow(unsafe_code, reason = "rustix has no `sendfile` for these systems")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use crate::sys::poller::AsSource;

/// The systems do not report it for a descriptor.
pub(super) fn cached(_: &File, _: u64, _: usize) -> Option<usize> {
    None
}

pub(super) fn send(
    socket: &impl AsSource,
    file: &File,
    offset: u64,
    length: usize,
) -> io::Result<usize> {
    let (socket, file) = (socket.source().as_raw_fd(), file.as_raw_fd());
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let offset = libc::off_t::try_from(offset).map_err(invalid)?;
    #[cfg(target_vendor = "apple")]
    let (result, sent) = {
        // In: how much to send. Out: how much was sent.
        let mut sent = libc::off_t::try_from(length).map_err(invalid)?;
        // SAFETY: both descriptors are open, and the kernel writes to `sent` only.
        let result = unsafe { libc::sendfile(file, socket, offset, &raw mut sent, null_mut(), 0) };
        (result, sent)
    };
    #[cfg(not(target_vendor = "apple"))]
    let (result, sent) = {
        let mut sent: libc::off_t = 0;
        // SAFETY: both descriptors are open, and the kernel writes to `sent` only.
        let result =
            unsafe { libc::sendfile(file, socket, offset, length, null_mut(), &raw mut sent, 0) };
        (result, sent)
    };
    let sent = usize::try_from(sent).unwrap_or(0);
    if result == 0 {
        return Ok(sent);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // The count is set with these errors only.
        Some(libc::EAGAIN | libc::EINTR | libc::EBUSY) if sent > 0 => Ok(sent),
        // FreeBSD: a page was busy.
        Some(libc::EBUSY) => Err(io::ErrorKind::Interrupted.into()),
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => {
            Err(io::ErrorKind::Unsupported.into())
        }
        // A guard: on some of the systems it is the number of `EOPNOTSUPP`.
        Some(number) if number == libc::ENOTSUP => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(error),
    }
}
