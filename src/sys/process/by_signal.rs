//! Platforms without a descriptor for the exit of a child: SIGCHLD reports it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::Pid;

pub(in crate::sys) fn open(_: Pid) -> Option<OwnedFd> {
    None
}

/// Sends a signal to the child of a descriptor.
pub(in crate::sys) fn signal(_: &OwnedFd, child: Pid, number: i32) -> io::Result<()> {
    crate::sys::process::kill(child.as_raw_nonzero().get(), number)
}
