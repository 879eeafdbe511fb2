//! Linux: pidfds.
#![allow(unsafe_code, reason = "sends a signal through a pidfd")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Returns a descriptor that becomes readable when the child exits.
pub(in crate::sys) fn open(child: Pid) -> Option<OwnedFd> {
    pidfd_open(child, PidfdFlags::empty()).ok()
}

/// Sends a signal through a pidfd. It refers to this child only, even after the kernel has reaped
/// it, as it does if SIGCHLD is ignored.
pub(in crate::sys) fn signal(descriptor: &OwnedFd, child: Pid, number: i32) -> io::Result<()> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open; with a null pointer the kernel fills in the signal's
    // information as `kill` does.
    let result = unsafe {
        let descriptor = descriptor.as_raw_fd();
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            descriptor,
            number,
            no_info,
            0_u32,
        )
    };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The kernel lacks the call, or the sandbox forbids it.
            error if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                crate::sys::process::kill(child.as_raw_nonzero().get(), number)
            }
            error => Err(error),
        },
    }
}
