//! Unix sockets beyond byte streams: abstract names, credentials, passing descriptors.
#![allow(unsafe_code, reason = "asks for the credentials of the peer")]

mod passing;

use std::io;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
use std::os::fd::BorrowedFd;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

#[cfg(feature = "process")]
pub(crate) use passing::{MOST_DESCRIPTORS, send_slices_with};
pub(crate) use passing::{receive_with, send_with};

/// Returns the address of an abstract name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// This platform has no abstract names.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "abstract socket names exist on Linux only",
    ))
}

/// Returns the abstract name of an address, if it has one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn abstract_name(address: &SocketAddr) -> Option<&[u8]> {
    address.as_abstract_name()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn abstract_name(_: &SocketAddr) -> Option<&[u8]> {
    None
}

/// Returns process id, user id and group id of the peer.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<(u32, u32, u32)> {
    use std::os::fd::AsRawFd;
    let mut peer = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and `peer` has room for `length` bytes.
    let result = unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let peer = (&raw mut peer).cast();
        libc::getsockopt(socket.as_raw_fd(), level, option, peer, &mut length)
    };
    match result {
        0 => Ok((u32::try_from(peer.pid).unwrap_or(0), peer.uid, peer.gid)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer_credentials(_: BorrowedFd<'_>) -> io::Result<(u32, u32, u32)> {
    Err(io::ErrorKind::Unsupported.into())
}
