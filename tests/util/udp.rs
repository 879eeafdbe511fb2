//! What the tests of UDP share: sockets on the loopback interface, and what they receive.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use phaseloop::net::{UdpOptions, UdpSocket};

use super::errno::Errno;

pub(crate) const V4: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);
pub(crate) const V6: (Ipv6Addr, u16) = (Ipv6Addr::LOCALHOST, 0);

/// A socket on the loopback interface.
pub(crate) fn bind() -> UdpSocket {
    UdpSocket::bind_with(V4.into(), UdpOptions::new()).unwrap()
}

pub(crate) fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().unwrap()
}

/// Two sockets, bound under the loopback address of each protocol that the machine has.
pub(crate) async fn both_protocols() -> Vec<[UdpSocket; 2]> {
    let v4 = [bind(), bind()];
    match UdpSocket::bind(V6).await {
        Ok(first) => vec![v4, [first, UdpSocket::bind(V6).await.unwrap()]],
        // A machine without IPv6.
        Err(error) => {
            assert!(matches!(
                error.kind(),
                ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
            ));
            vec![v4]
        }
    }
}

/// Receives as text, with the sender.
pub(crate) async fn receive(socket: &UdpSocket) -> (String, SocketAddr) {
    let mut buffer = [0; 1500];
    let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
    (
        String::from_utf8_lossy(&buffer[..length]).into_owned(),
        from,
    )
}

/// The address of a socket that has been closed.
pub(crate) fn closed_address() -> SocketAddr {
    address(&bind())
}

#[track_caller]
pub(crate) fn assert_errno<T: std::fmt::Debug>(result: io::Result<T>, errno: Errno) {
    let number = phaseloop::os_error(&result.unwrap_err());
    assert_eq!(number.map(Errno::from_raw_os_error), Some(errno));
}

/// Expects the error of a send without an address, of a socket without a peer.
#[track_caller]
pub(crate) fn assert_no_peer<T: std::fmt::Debug>(result: io::Result<T>) {
    let number = phaseloop::os_error(&result.unwrap_err());
    let number = number.map(Errno::from_raw_os_error);
    // The second is Wine's.
    assert!(
        number == Some(Errno::DESTADDRREQ) || cfg!(windows) && number == Some(Errno::INVAL),
        "{number:?}"
    );
}
