//! Unix sockets beyond byte streams: abstract names, credentials, passing descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// The most descriptors in one message: `SCM_MAX_FD` on Linux.
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// Returns the address of an abstract name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
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
    use std::os::linux::net::SocketAddrExt;
    address.as_abstract_name()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn abstract_name(_: &SocketAddr) -> Option<&[u8]> {
    None
}

/// Returns process id, user id and group id of the peer.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer_credentials(socket: BorrowedFd<'_>) -> io::Result<(u32, u32, u32)> {
    let peer = rustix::net::sockopt::socket_peercred(socket)?;
    let process = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0);
    Ok((process, peer.uid.as_raw(), peer.gid.as_raw()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer_credentials(_: BorrowedFd<'_>) -> io::Result<(u32, u32, u32)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sends at least one byte, together with descriptors.
pub(crate) fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    send_slices_with(socket, &[IoSlice::new(bytes)], descriptors)
}

/// Sends several pieces, at least one byte, together with descriptors.
pub(crate) fn send_slices_with(
    socket: impl AsFd,
    bytes: &[IoSlice<'_>],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    // Padding can leave room for one more descriptor.
    let fits = descriptors.len() <= MOST_DESCRIPTORS;
    let message = SendAncillaryMessage::ScmRights(descriptors);
    if !fits || !descriptors.is_empty() && !control.push(message) {
        let text = format!("at most {MOST_DESCRIPTORS} descriptors can be sent at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    #[cfg(not(target_vendor = "apple"))]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // On Apple platforms the standard library sets `SO_NOSIGPIPE` instead.
    #[cfg(target_vendor = "apple")]
    let flags = SendFlags::DONTWAIT;
    let sent = rustix::net::sendmsg(socket, bytes, &mut control, flags)?;
    Ok(sent)
}

/// Receives bytes and the descriptors that came with them, which are close-on-exec.
pub(crate) fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = RecvFlags::DONTWAIT;
    let received =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    // `space` has room for as many descriptors as a message can carry.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        let text = format!(
            "descriptors that came with {} bytes are lost: the process has no numbers left for them, raise its limit \
             (RLIMIT_NOFILE) or close some",
            received.bytes
        );
        return Err(io::Error::other(text));
    }
    Ok(received.bytes)
}
