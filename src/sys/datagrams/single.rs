//! One datagram at a time.

use std::io;
use std::net::{SocketAddr, UdpSocket};

#[cfg(not(windows))]
mod platform {
    use super::{SocketAddr, UdpSocket, io};

    #[inline]
    pub(crate) fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
        socket.recv(buffer)
    }

    #[inline]
    pub(crate) fn recv_from(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr)> {
        socket.recv_from(buffer)
    }

    #[inline]
    pub(crate) fn peek(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
        socket.peek(buffer)
    }

    #[inline]
    pub(crate) fn peek_from(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr)> {
        socket.peek_from(buffer)
    }
}

/// Windows fails where Unix cuts a datagram, and where an earlier send has met a closed port.
#[cfg(windows)]
mod platform {
    use super::{SocketAddr, UdpSocket, io};
    use crate::sys::datagrams::one_by_one::receive_one;
    use windows_sys::Win32::Networking::WinSock::MSG_PEEK;

    pub(crate) fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
        receive_one(socket, buffer, 0).map(|head| head.length)
    }

    pub(crate) fn recv_from(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr)> {
        with_sender(socket, buffer, 0)
    }

    pub(crate) fn peek(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
        receive_one(socket, buffer, MSG_PEEK).map(|head| head.length)
    }

    pub(crate) fn peek_from(
        socket: &UdpSocket,
        buffer: &mut [u8],
    ) -> io::Result<(usize, SocketAddr)> {
        with_sender(socket, buffer, MSG_PEEK)
    }

    fn with_sender(
        socket: &UdpSocket,
        buffer: &mut [u8],
        flags: i32,
    ) -> io::Result<(usize, SocketAddr)> {
        let head = receive_one(socket, buffer, flags)?;
        let from = head.address.get().ok_or(io::ErrorKind::InvalidData)?;
        Ok((head.length, from))
    }
}

pub(crate) use platform::{peek, peek_from, recv, recv_from};

/// Receives until the result is one of a receive. On Windows, a receive fails when an earlier send
/// was answered by an ICMP message, though datagrams can be received.
#[cfg(any(
    test,
    phaseloop_portable_poller,
    not(any(target_os = "linux", target_os = "android"))
))]
pub(super) fn past_failed_sends<T>(mut receive: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match receive() {
            Err(error) if is_of_earlier_send(&error) => {}
            received => return received,
        }
    }
}

/// Whether the error is WSAENETRESET or WSAECONNRESET.
#[cfg(any(
    test,
    phaseloop_portable_poller,
    not(any(target_os = "linux", target_os = "android"))
))]
fn is_of_earlier_send(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(10052 | 10054))
}

#[cfg(test)]
mod tests {
    use super::past_failed_sends;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_receive_ignores_that_earlier_sends_met_closed_ports() {
        let numbers = [10054, 10052, 10054];
        let mut results = numbers.map(Error::from_raw_os_error).into_iter().map(Err);
        let received = past_failed_sends(|| results.next().unwrap_or(Ok(7)));
        assert_eq!(received.unwrap(), 7);
        let other = past_failed_sends(|| Err::<(), _>(ErrorKind::WouldBlock.into()));
        assert_eq!(other.unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
