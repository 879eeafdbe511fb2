//! The socket that a parent passes to its child under the number in `NODE_CHANNEL_FD`.
//!
//! As in [`inherited`](super::inherited), the descriptor is borrowed and a duplicate is used. The
//! variable has only the number. So a socket that this process has opened is refused by other
//! signs: it is close-on-exec, or the kernel names this process as its peer.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd};

use super::inherited::{Inherited, borrow, duplicate};
use crate::sys::unix_socket::peer_credentials;

/// Duplicates the socket, once. `None` if it does not exist, is not a channel of the parent, or was
/// taken before.
pub fn take(number: &OsStr) -> Option<Inherited> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    let number: RawFd = number.to_str()?.parse().ok()?;
    let socket = borrow(number).filter(|socket| is_of_parent(*socket))?;
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return None;
    }
    duplicate(socket).ok()
}

fn is_of_parent(socket: BorrowedFd<'_>) -> bool {
    let is_inherited = fcntl_getfd(socket).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
    is_inherited && !is_opened_by_program(socket)
}

/// Returns whether this process has created the socket pair. Not all systems report that.
fn is_opened_by_program(socket: BorrowedFd<'_>) -> bool {
    peer_credentials(socket).is_ok_and(|(process, ..)| process == std::process::id())
}
