//! Messages that carry descriptors (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors in one message: `SCM_MAX_FD` on Linux.
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// Room for the control data of one message.
const NO_CONTROL: [MaybeUninit<u8>; rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))] =
    [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];

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
    if descriptors.len() > MOST_DESCRIPTORS {
        let text = format!("at most {MOST_DESCRIPTORS} descriptors can be sent at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    #[cfg(not(target_vendor = "apple"))]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // On Apple platforms the standard library sets `SO_NOSIGPIPE` instead.
    #[cfg(target_vendor = "apple")]
    let flags = SendFlags::DONTWAIT;
    let mut room = NO_CONTROL;
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(fits, "there is room for as many as a message can carry");
    }
    Ok(sendmsg(socket, bytes, &mut control, flags)?)
}

/// Receives bytes and the descriptors that came with them, which are close-on-exec.
pub(crate) fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = RecvFlags::DONTWAIT;
    let mut room = NO_CONTROL;
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let message = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    let received = message.bytes;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    // `control` has room for as many descriptors as a message can carry.
    if message.flags.contains(ReturnFlags::CTRUNC) {
        let text = format!(
            "descriptors that came with {received} bytes are lost: the process has no numbers left for them, raise its \
             limit (RLIMIT_NOFILE) or close some"
        );
        return Err(io::Error::other(text));
    }
    Ok(received)
}
