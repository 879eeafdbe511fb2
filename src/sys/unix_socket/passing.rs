//! Messages that carry descriptors (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{iovec, msghdr};

/// The most descriptors in one message: `SCM_MAX_FD` on Linux.
pub(crate) const MOST_DESCRIPTORS: usize = 253;

/// The most descriptors that a message can bring. Other kernels than Linux take as many as fit into
/// 2 KiB of control data, and may leave those that the receiver has no room for open for ever.
const MOST_RECEIVED: usize = if cfg!(any(target_os = "linux", target_os = "android")) {
    MOST_DESCRIPTORS
} else {
    512
};

/// Room for what the kernel adds if an option of the socket requests it: the credentials of the
/// sender (`SO_PASSCRED`), its pidfd and its security label.
const ROOM_FOR_SENDER: usize = 512;

const ROOM: usize = space_for(MOST_RECEIVED) + ROOM_FOR_SENDER;

/// Room for the control data of one message: headers, and the descriptors behind one of them.
#[repr(C, align(8))]
struct Control([u8; ROOM]);

const EMPTY: Control = Control([0; ROOM]);

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
    // SAFETY: the kernel has written the control data, and has created the descriptors in it for
    // this process.
    unsafe { take_descriptors(&message, descriptors) };
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        let text = format!(
            "descriptors that came with {received} bytes are lost: the process has no numbers left for them, raise its \
             limit (RLIMIT_NOFILE) or close some; or the message brought more than {MOST_RECEIVED} descriptors, the \
             credentials of the sender (SO_PASSCRED) and {ROOM_FOR_SENDER} bytes"
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
///
/// # Safety
///
/// The kernel has written the control data of the message.
#[inline]
unsafe fn take_descriptors(message: &msghdr, descriptors: &mut Vec<OwnedFd>) {
    // SAFETY: as the caller guarantees. The numbers are of descriptors that have no owner yet.
    unsafe {
        each_number(message, |kind, number| {
            let descriptor = OwnedFd::from_raw_fd(number);
            match kind {
                libc::SCM_RIGHTS => descriptors.push(descriptor),
                // An option of the socket requests the pidfd of the sender; no caller takes it.
                _ => drop(descriptor),
            }
        });
    }
}

/// The type of control data that brings a pidfd of the sender (`SO_PASSPIDFD`).
#[cfg(any(target_os = "linux", target_os = "android"))]
const SCM_PIDFD: libc::c_int = 4;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SCM_PIDFD: libc::c_int = libc::SCM_RIGHTS;

/// Calls `take` with each number of a descriptor in the control data, and with the type of the data
/// that it is in.
///
/// A length that goes beyond the control data is cut: macOS leaves the length of a message that did
/// not fit as it was sent.
///
/// # Safety
///
/// `msg_control` refers to `msg_controllen` readable bytes, or is null.
#[allow(
    clippy::unnecessary_cast,
    reason = "the type of a length differs between platforms"
)]
#[inline]
unsafe fn each_number(message: &msghdr, mut take: impl FnMut(libc::c_int, RawFd)) {
    let end = (message.msg_control as usize).saturating_add(message.msg_controllen as usize);
    // SAFETY: `CMSG_FIRSTHDR` and `CMSG_NXTHDR` return headers that are inside of the control data,
    // and no number is read that is not.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(head) = header.as_ref() {
            let kind = head.cmsg_type;
            let is_of_numbers = kind == libc::SCM_RIGHTS || kind == SCM_PIDFD;
            if head.cmsg_level == libc::SOL_SOCKET && is_of_numbers {
                let data = libc::CMSG_DATA(header);
                let said = (head.cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let length = said.min(end.saturating_sub(data as usize));
                for index in 0..length / size_of::<RawFd>() {
                    let number = data.cast::<RawFd>().add(index).read_unaligned();
                    // A pidfd that could not be created is the number of an error, below zero.
                    if number >= 0 {
                        take(kind, number);
                    }
                }
            }
            // There is nothing behind control data that was cut, and its length may be any number.
            if (header as usize).saturating_add(head.cmsg_len as usize) >= end {
                break;
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Control, EMPTY, SCM_PIDFD, each_number, message, space_for};
    use std::os::fd::RawFd;

    /// Writes a header that claims `claimed` numbers behind it, and the numbers that are there.
    fn write(
        control: &mut Control,
        at: usize,
        kind: libc::c_int,
        claimed: usize,
        numbers: &[RawFd],
    ) {
        let length = u32::try_from(claimed * size_of::<RawFd>()).unwrap();
        // SAFETY: integers only, for which zero is a value; a calculation.
        let (mut header, length): (libc::cmsghdr, _) =
            unsafe { (std::mem::zeroed(), libc::CMSG_LEN(length)) };
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = kind;
        header.cmsg_len = length as _;
        assert!(at + space_for(numbers.len()) <= size_of::<Control>());
        // SAFETY: there is room for the header and so many numbers.
        unsafe {
            let place = control.0.as_mut_ptr().add(at);
            place.cast::<libc::cmsghdr>().write(header);
            let data = libc::CMSG_DATA(place.cast()).cast::<RawFd>();
            data.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len());
        }
    }

    fn numbers_in(control: &mut Control, length: usize) -> Vec<(libc::c_int, RawFd)> {
        let mut message = message(std::ptr::null_mut(), 0, control);
        message.msg_controllen = length as _;
        let mut numbers = Vec::new();
        // SAFETY: `control` has at least so many bytes.
        unsafe { each_number(&message, |kind, number| numbers.push((kind, number))) };
        numbers
    }

    const RIGHTS: libc::c_int = libc::SCM_RIGHTS;

    /// macOS sets `MSG_CTRUNC` and leaves the length that the sender has given.
    #[test]
    fn a_length_beyond_the_control_data_is_cut() {
        for claimed in [4, 5, 254, 10_000, 400_000_000] {
            let mut control = EMPTY;
            write(&mut control, 0, RIGHTS, claimed, &[3, 4, 5, 6]);
            let length = space_for(0) + 3 * size_of::<RawFd>();
            let numbers = numbers_in(&mut control, length);
            assert_eq!(
                numbers,
                [(RIGHTS, 3), (RIGHTS, 4), (RIGHTS, 5)],
                "{claimed}"
            );
            assert_eq!(
                numbers_in(&mut control, length - 1).len(),
                2,
                "half a number"
            );
        }
    }

    #[test]
    fn a_header_without_numbers_brings_none() {
        let mut control = EMPTY;
        assert_eq!(numbers_in(&mut control, 0), [], "no control data");
        // A header of zeros, whose length is less than its own.
        assert_eq!(numbers_in(&mut control, size_of::<Control>()), []);
        write(&mut control, 0, RIGHTS, 0, &[]);
        assert_eq!(numbers_in(&mut control, space_for(0)), []);
    }

    #[test]
    fn descriptors_come_behind_other_control_data() {
        let mut control = EMPTY;
        let credentials = 0x22;
        write(&mut control, 0, credentials, 3, &[100, 200, 300]);
        write(&mut control, space_for(3), RIGHTS, 2, &[7, 8]);
        let end = space_for(3) + space_for(2);
        assert_eq!(numbers_in(&mut control, end), [(RIGHTS, 7), (RIGHTS, 8)]);
    }

    #[test]
    fn the_pidfd_of_a_sender_is_found_unless_it_is_an_error() {
        let mut control = EMPTY;
        write(&mut control, 0, SCM_PIDFD, 1, &[9]);
        write(&mut control, space_for(1), SCM_PIDFD, 1, &[-3]);
        assert_eq!(numbers_in(&mut control, 2 * space_for(1)), [(SCM_PIDFD, 9)]);
    }
}
