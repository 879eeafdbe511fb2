//! Sockets that are on no loop.

use std::net::UdpSocket;

/// Two sockets that are connected to each other and do not block.
pub(crate) fn udp_pair() -> (UdpSocket, UdpSocket) {
    let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    a.set_nonblocking(true).unwrap();
    b.set_nonblocking(true).unwrap();
    (a, b)
}
