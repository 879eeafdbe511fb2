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

/// A stream to an end on this machine.
#[cfg(not(unix))]
#[allow(unused_imports, reason = "some binaries use datagrams only")]
pub(crate) use std::net::TcpStream as Local;
#[cfg(unix)]
#[allow(unused_imports, reason = "some binaries use datagrams only")]
pub(crate) use std::os::unix::net::UnixStream as Local;

/// Both ends of a stream; they block.
#[allow(dead_code, reason = "some binaries use datagrams only")]
pub(crate) fn local_pair() -> (Local, Local) {
    #[cfg(unix)]
    return Local::pair().unwrap();
    #[cfg(not(unix))]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = Local::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        ours.set_nodelay(true).unwrap();
        theirs.set_nodelay(true).unwrap();
        (ours, theirs)
    }
}
