//! Pipes, and what the system says of an open descriptor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, OFlags};

/// A pipe whose ends do not block and are not inherited: the one to read from, the one to write to.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(not(target_vendor = "apple"))]
    {
        use rustix::pipe::{PipeFlags, pipe_with};
        Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
    }
    // In two steps: a child that is started in between by another thread inherits the ends.
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

/// How a descriptor was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) can_read: bool,
    pub(crate) can_write: bool,
    pub(crate) is_nonblocking: bool,
}

/// How `descriptor` was opened.
pub(crate) fn access(descriptor: impl AsFd) -> io::Result<Access> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    let mode = flags & OFlags::ACCMODE;
    Ok(Access {
        can_read: mode == OFlags::RDONLY || mode == OFlags::RDWR,
        can_write: mode == OFlags::WRONLY || mode == OFlags::RDWR,
        is_nonblocking: flags.contains(OFlags::NONBLOCK),
    })
}

/// Sets or clears the mode of the open file, which all who share it see.
pub(crate) fn set_nonblocking(descriptor: impl AsFd, nonblocking: bool) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(descriptor, nonblocking)?)
}

/// Whether it is a pipe: then a read that returns less than it was asked for has taken all there is, unlike with
/// terminals, which return a line at a time.
pub(crate) fn is_pipe(descriptor: impl AsFd) -> io::Result<bool> {
    let mode = rustix::fs::fstat(descriptor)?.st_mode;
    Ok(FileType::from_raw_mode(mode) == FileType::Fifo)
}
