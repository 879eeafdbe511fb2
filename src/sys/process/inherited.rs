//! A socket that a parent passes to its child under a number in the environment.
//!
//! Neither the environment nor the number proves that no other code in the process owns the
//! descriptor. So it is borrowed, and a duplicate is used. The number stays open for good. Dropping
//! the duplicate therefore shuts the socket down, so that the parent gets EOF.

use std::ffi::OsStr;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, fstat};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use socket2::{SockRef, Type};

use super::pre_exec::borrowed;
use crate::sys::poller::Maker;

/// A duplicate of the inherited socket. Its drop disconnects, but not in a forked child of the
/// process that has made it.
#[derive(Debug)]
pub struct Inherited(OwnedFd, Maker);

impl Inherited {
    /// Duplicates the socket again. The drop of that duplicate does not disconnect.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl`.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

impl AsFd for Inherited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if self.1.is_parent() {
            return;
        }
        // The call fails if the peer has disconnected already.
        let _ = SockRef::from(&self.0).shutdown(Shutdown::Both);
    }
}

/// Returns the description for the child: the number and the inode of the socket. A descendant that
/// inherits the variable but not the socket detects that.
pub(crate) fn describe(number: RawFd, socket: impl AsFd) -> io::Result<String> {
    Ok(format!("{number}:{}", fstat(socket)?.st_ino))
}

/// Duplicates the socket that was described to this process, once. Later calls return `None`.
///
/// # Errors
///
/// `InvalidData` if the described socket does not exist; any OS error of `fcntl`.
#[inline]
pub(crate) fn take(description: &OsStr) -> io::Result<Option<Inherited>> {
    static IS_TAKEN: AtomicBool = AtomicBool::new(false);
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    let socket = duplicate_described(description);
    if socket.is_err() {
        IS_TAKEN.store(false, Ordering::Relaxed);
    }
    socket.map(Some)
}

#[inline]
fn duplicate_described(description: &OsStr) -> io::Result<Inherited> {
    let socket = find(description).ok_or_else(|| {
        let text = format!(
            "the environment names a channel to the parent, {description:?}, that is not there: \
             its descriptor was closed, or belongs to something else"
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    })?;
    duplicate(socket)
}

/// Duplicates a socket of the parent.
#[inline]
pub(super) fn duplicate(socket: BorrowedFd<'_>) -> io::Result<Inherited> {
    // Children of this process must not inherit it.
    fcntl_setfd(socket, FdFlags::CLOEXEC)?;
    let duplicate = Inherited(fcntl_dupfd_cloexec(socket, 3)?, Maker::this_process());
    rustix::io::ioctl_fionbio(&duplicate, true)?;
    Ok(duplicate)
}

/// Returns the socket if it is the described one: a connected Unix stream.
#[inline]
fn find(description: &OsStr) -> Option<BorrowedFd<'static>> {
    let (number, inode) = description.to_str()?.split_once(':')?;
    let socket = borrow(number.parse().ok()?)?;
    let is_described = fstat(socket).ok()?.st_ino.to_string() == inode;
    is_described.then_some(socket)
}

/// Borrows the descriptor with a number if it is a connected Unix stream, and no standard
/// descriptor.
#[inline]
pub(super) fn borrow(number: RawFd) -> Option<BorrowedFd<'static>> {
    if number <= 2 {
        return None;
    }
    // If the number is closed meanwhile, the calls fail.
    let socket = borrowed(number);
    let stat = fstat(socket).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return None;
    }
    let view = SockRef::from(&socket);
    let is_stream = view.r#type().ok()? == Type::STREAM;
    let is_connected_unix = view.peer_addr().ok()?.is_unix();
    (is_stream && is_connected_unix).then_some(socket)
}
