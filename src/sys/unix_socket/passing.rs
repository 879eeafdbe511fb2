//! Messages that carry descriptors (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, msghdr};
use socket2::{MsgHdr, SockRef};

use crate::sys::control::{self, HEADER, write_header};

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
    control::space_for(descriptors * size_of::<RawFd>())
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
    let mut message = MsgHdr::new().with_buffers(bytes);
    if !descriptors.is_empty() {
        let rights = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        write_header(&mut control.0, rights, size_of_val(descriptors));
        let numbers = control.0[HEADER..].chunks_exact_mut(size_of::<RawFd>());
        for (place, descriptor) in numbers.zip(descriptors) {
            place.copy_from_slice(&descriptor.as_raw_fd().to_ne_bytes());
        }
        message = message.with_control(&control.0[..space_for(descriptors.len())]);
    }
    SockRef::from(&socket.as_fd()).sendmsg(&message, flags)
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
    // Not by `socket2`, whose flags of a received message do not have `MSG_CTRUNC`.
    //
    // SAFETY: all zeros are a message without buffers. The buffers that it gets, one piece and the
    // control data, outlive the call, and the descriptor is open. `IoSliceMut` has the layout of
    // `iovec`.
    let (received, message) = unsafe {
        let mut message: msghdr = std::mem::zeroed();
        message.msg_iov = (&raw mut bytes).cast();
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        // The types differ between platforms.
        message.msg_controllen = size_of::<Control>() as _;
        let received = libc::recvmsg(socket.as_fd().as_raw_fd(), &mut message, flags);
        (received, message)
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    #[allow(
        clippy::unnecessary_cast,
        reason = "the type of a length differs between platforms"
    )]
    let filled = (message.msg_controllen as usize).min(ROOM);
    each_number(&control.0[..filled], |kind, number| {
        // SAFETY: the kernel has created the descriptor for this process, and it has no owner yet.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        match kind {
            libc::SCM_RIGHTS => descriptors.push(descriptor),
            // An option of the socket requests the pidfd of the sender; no caller takes it.
            _ => drop(descriptor),
        }
    });
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

/// The type of control data that brings a pidfd of the sender (`SO_PASSPIDFD`).
#[cfg(any(target_os = "linux", target_os = "android"))]
const SCM_PIDFD: c_int = 4;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SCM_PIDFD: c_int = libc::SCM_RIGHTS;

/// Calls `take` with each number of a descriptor in the control data, and with the type of the data
/// that it is in.
#[inline]
fn each_number(control: &[u8], mut take: impl FnMut(c_int, RawFd)) {
    control::each(control, |level, kind, data| {
        if level == libc::SOL_SOCKET && (kind == libc::SCM_RIGHTS || kind == SCM_PIDFD) {
            for number in data.chunks_exact(size_of::<RawFd>()) {
                let number = RawFd::from_ne_bytes(number.try_into().expect("a chunk of this size"));
                // A pidfd that could not be created is the number of an error, below zero.
                if number >= 0 {
                    take(kind, number);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{Control, EMPTY, SCM_PIDFD, each_number, space_for};
    use crate::sys::control::write_header;
    use std::os::fd::RawFd;

    /// Writes a header that claims `claimed` numbers behind it, and the numbers that are there.
    fn write(
        control: &mut Control,
        at: usize,
        kind: libc::c_int,
        claimed: usize,
        numbers: &[RawFd],
    ) {
        let control = &mut control.0[at..];
        let name = (libc::SOL_SOCKET, kind);
        write_header(control, name, claimed * size_of::<RawFd>());
        for (place, number) in control[space_for(0)..].chunks_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
    }

    fn numbers_in(control: &mut Control, length: usize) -> Vec<(libc::c_int, RawFd)> {
        let mut numbers = Vec::new();
        each_number(&control.0[..length], |kind, number| {
            numbers.push((kind, number));
        });
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
