//! Messages that carry descriptors (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{iovec, msghdr};

/// The most descriptors in one message: `SCM_MAX_FD` on Linux.
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// Room for the control data of one message: a header, and the descriptors behind it.
#[repr(C, align(8))]
struct Control([u8; space_for(MOST_DESCRIPTORS)]);

const EMPTY: Control = Control([0; space_for(MOST_DESCRIPTORS)]);

/// The length of control data with so many descriptors.
const fn space_for(descriptors: usize) -> usize {
    // SAFETY: a calculation that uses no memory.
    unsafe { libc::CMSG_SPACE((descriptors * size_of::<RawFd>()) as u32) as usize }
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
    if descriptors.len() > MOST_DESCRIPTORS {
        let text = format!("at most {MOST_DESCRIPTORS} descriptors can be sent at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    #[cfg(not(target_vendor = "apple"))]
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // On Apple platforms the standard library sets `SO_NOSIGPIPE` instead.
    #[cfg(target_vendor = "apple")]
    let flags = libc::MSG_DONTWAIT;
    let mut control = EMPTY;
    // `IoSlice` has the layout of `iovec`, and what is sent is not written to.
    let pieces = bytes.as_ptr().cast_mut().cast();
    let mut message = message(pieces, bytes.len(), &mut control);
    message.msg_controllen = 0;
    if !descriptors.is_empty() {
        message.msg_controllen = space_for(descriptors.len()) as _;
        let length = size_of_val(descriptors);
        // SAFETY: `control` is aligned and has room for a header and so many descriptors;
        // `BorrowedFd` has the layout of a number.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length as u32) as _;
            let numbers = descriptors.as_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(numbers, libc::CMSG_DATA(header), length);
        }
    }
    // SAFETY: the descriptor is open, and the message refers to `bytes` and `control`.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes and the descriptors that came with them, which are close-on-exec.
pub(crate) fn receive_with(
    socket: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let flags = libc::MSG_DONTWAIT;
    let mut control = EMPTY;
    let mut bytes = IoSliceMut::new(bytes);
    let mut message = message((&raw mut bytes).cast(), 1, &mut control);
    // SAFETY: the descriptor is open, and the message refers to `bytes` and `control`.
    let received = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, flags) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    take_descriptors(&message, descriptors);
    // `control` has room for as many descriptors as a message can carry.
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        let text = format!(
            "descriptors that came with {received} bytes are lost: the process has no numbers left for them, raise its \
             limit (RLIMIT_NOFILE) or close some"
        );
        return Err(io::Error::other(text));
    }
    Ok(received)
}

/// Describes a message of these pieces, with room for control data.
fn message(pieces: *mut iovec, count: usize, control: &mut Control) -> msghdr {
    // SAFETY: integers and pointers only, for which zero is a value.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces;
    // The types differ between platforms.
    message.msg_iovlen = count as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    message
}

/// Takes over the descriptors that came with a received message.
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a length differs between platforms"
)]
#[inline]
fn take_descriptors(message: &msghdr, descriptors: &mut Vec<OwnedFd>) {
    // SAFETY: the kernel has filled in the control data, to which the message still refers: whole
    // headers, each with its length, and descriptors that it has created for this process.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(head) = header.as_ref() {
            if (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let length = head.cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let numbers = libc::CMSG_DATA(header).cast::<RawFd>();
                let numbers = std::slice::from_raw_parts(numbers, length / size_of::<RawFd>());
                descriptors.extend(numbers.iter().map(|number| OwnedFd::from_raw_fd(*number)));
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}
