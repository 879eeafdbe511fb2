//! Pipes, duplicates, and the flags of open descriptors.
#![cfg_attr(
    any(target_os = "android", target_os = "linux", feature = "process"),
    allow(
        unsafe_code,
        reason = "a number that another owner keeps refers to another object"
    )
)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(any(target_os = "android", target_os = "linux", feature = "process"))]
use std::{
    mem::ManuallyDrop,
    os::fd::{FromRawFd, RawFd},
};

use rustix::fs::OFlags;
#[cfg(any(target_os = "android", target_os = "linux", feature = "process"))]
use rustix::io::{dup2, retry_on_intr};

/// Creates a non-blocking, close-on-exec pipe: its reading end, its writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    {
        use rustix::pipe::{PipeFlags, pipe_with};
        Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
    }
    // Apple platforms have no `pipe2`. A child that another thread starts between the calls
    // inherits the ends.
    #[cfg(target_vendor = "apple")]
    {
        let (reader, writer) = rustix::pipe::pipe()?;
        for end in [&reader, &writer] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            set_nonblocking(end, true)?;
        }
        Ok((reader, writer))
    }
}

/// Makes the descriptor number `target` refer to the object of `source`, without close-on-exec
/// (`dup2`). What the number referred to is closed. Its owner, if there is one, keeps it.
#[cfg(any(target_os = "android", target_os = "linux", feature = "process"))]
pub(in crate::sys) fn dup_onto(target: RawFd, source: impl AsFd) -> io::Result<()> {
    // SAFETY: the value is never dropped, so that an owner keeps the number. The callers replace
    // what they own, or what no code in a child owns.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(target) });
    Ok(retry_on_intr(|| dup2(&source, &mut target))?)
}

/// Access mode and flags of an open descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) can_read: bool,
    pub(crate) can_write: bool,
    pub(crate) is_nonblocking: bool,
}

/// Reads the access mode and flags of `descriptor`.
pub(crate) fn access(descriptor: impl AsFd) -> io::Result<Access> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    let mode = flags & OFlags::ACCMODE;
    Ok(Access {
        can_read: mode == OFlags::RDONLY || mode == OFlags::RDWR,
        can_write: mode == OFlags::WRONLY || mode == OFlags::RDWR,
        is_nonblocking: flags.contains(OFlags::NONBLOCK),
    })
}

/// Sets or clears non-blocking mode of the open file description. All its descriptors, in any
/// process, see the change.
pub(crate) fn set_nonblocking(descriptor: impl AsFd, nonblocking: bool) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(descriptor, nonblocking)?)
}
