//! Detached sockets that go to another process, and come from one.

use std::io;
use std::net;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::Location;

use crate::io::Moving;
use crate::label::Role;
use crate::net::detached::Detached;
use crate::net::tcp::{TcpListener, TcpStream};
use crate::net::transport::{Acceptor, Conn, Packets};
use crate::net::udp::UdpSocket;
use crate::sys::socket::{self, Internet};

/// The descriptor of the socket, to send it to another process.
///
/// # Panics
///
/// `as_fd` panics for a socket in memory, which only a test has.
impl<T> AsFd for Detached<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lend()
    }
}

/// Takes a listener that another process has sent, in non-blocking mode.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a descriptor that is no TCP socket. Linux,
/// Android and FreeBSD also report a socket that does not listen; elsewhere `accept` reports it.
///
/// # Examples
///
/// A listener passes through a channel, and a connection that waited for it is accepted:
///
/// ```
/// use std::os::fd::AsFd;
/// use phaseloop::net::{Detached, TcpListener, TcpStream};
/// use phaseloop::process::Channel;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (parent, child) = Channel::pair()?; // or that of `Command::channel`
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let detached = listener.detach();
///     parent.send_with(b"serve", &[detached.as_fd()]).await?;
///     drop(detached); // the receiver has its own descriptor
///
///     let mut message = child.recv().await?.unwrap();
///     let descriptor = message.descriptors.pop().unwrap();
///     let listener = Detached::<TcpListener>::try_from(descriptor)?.attach()?;
///     assert_eq!(listener.accept().await?.1, client.local_addr()?);
///     Ok(())
/// }
/// ```
impl TryFrom<OwnedFd> for Detached<TcpListener> {
    type Error = io::Error;

    #[track_caller]
    fn try_from(descriptor: OwnedFd) -> io::Result<Self> {
        socket::expect(&descriptor, Internet::Listener)?;
        let listener = net::TcpListener::from(descriptor);
        listener.set_nonblocking(true)?;
        let acceptor = Acceptor::from_std(listener);
        let is_tcp = acceptor.is_tcp();
        let moving = Moving::unregistered(Role::Unknown, is_tcp, Location::caller());
        Ok(Self::of_acceptor(acceptor, is_tcp, moving))
    }
}

/// Takes a connection that another process has sent, in non-blocking mode.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a descriptor that is no TCP socket. Linux,
/// Android and FreeBSD also report a socket that listens.
impl TryFrom<OwnedFd> for Detached<TcpStream> {
    type Error = io::Error;

    #[track_caller]
    fn try_from(descriptor: OwnedFd) -> io::Result<Self> {
        socket::expect(&descriptor, Internet::Stream)?;
        let stream = net::TcpStream::from(descriptor);
        stream.set_nonblocking(true)?;
        let moving =
            Moving::unregistered(Role::Unknown, socket::is_tcp(&stream), Location::caller());
        Ok(Self::of_conn(Conn::from_std(stream), moving))
    }
}

/// Takes a UDP socket that another process has sent, in non-blocking mode.
///
/// # Errors
///
/// [`InvalidInput`](io::ErrorKind::InvalidInput) for a descriptor that is no UDP socket.
impl TryFrom<OwnedFd> for Detached<UdpSocket> {
    type Error = io::Error;

    #[track_caller]
    fn try_from(descriptor: OwnedFd) -> io::Result<Self> {
        socket::expect(&descriptor, Internet::Datagrams)?;
        let packets = net::UdpSocket::from(descriptor);
        packets.set_nonblocking(true)?;
        let moving = Moving::unregistered(Role::Unknown, false, Location::caller());
        Ok(Self::of_packets(Packets::from_std(packets), moving))
    }
}
