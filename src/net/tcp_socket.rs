//! A TCP socket before it connects or listens.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::Location;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::listener::TcpListener;
use super::options::{Keepalive, set_keepalive};
use super::stream::TcpStream;
use crate::error::OsError;
use crate::event_loop::handle::LoopHandle;
use crate::kinds::Site;
use crate::sys;

/// A TCP socket on which options are set before it connects or listens.
///
/// # Examples
///
/// ```
/// use phaseloop::net::TcpSocket;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuse_port(true)?;
///     socket.bind(([127, 0, 0, 1], 0).into())?;
///     let listener = socket.listen(16)?;
///     assert!(listener.local_addr()?.ip().is_loopback());
///     Ok(())
/// })
/// # }
/// ```
pub struct TcpSocket {
    socket: Socket,
}

impl TcpSocket {
    /// A socket for IPv4.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn new_v4() -> io::Result<Self> {
        sys::socket::socket(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).map(Self::from_socket)
    }

    /// A socket for IPv6, and for IPv4 unless [`set_only_v6`](Self::set_only_v6) says otherwise.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn new_v6() -> io::Result<Self> {
        sys::socket::socket(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)).map(Self::from_socket)
    }

    pub(super) fn from_socket(socket: Socket) -> Self {
        Self { socket }
    }

    /// Gives the socket an address. Allows one whose former listener's connections linger.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse), [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable),
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a second address or one of the other family; the system's. They name
    /// the address.
    pub fn bind(&self, address: SocketAddr) -> io::Result<()> {
        self.bind_plainly(address)
            .map_err(|error| OsError::wrap(error, "bind", address))
    }

    /// The same with the system's error as it is.
    pub(super) fn bind_plainly(&self, address: SocketAddr) -> io::Result<()> {
        sys::socket::allow_lingering_address(&self.socket)?;
        self.socket.bind(&SockAddr::from(address))
    }

    /// Connects, once the returned future is awaited; see [`TcpStream::connect`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::connect`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    ///
    /// # Panics
    ///
    /// When it is awaited where no loop runs.
    #[track_caller]
    pub fn connect(self, address: SocketAddr) -> impl Future<Output = io::Result<TcpStream>> {
        let site = Location::caller();
        async move {
            TcpStream::connect_socket(self.socket, address, site)
                .await
                .map_err(|error| OsError::wrap(error, "connect", address))
        }
    }

    /// Listens, with room for `backlog` connections that wait to be accepted; the system may have a lower limit. A socket
    /// that was not bound gets a free port on all addresses.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) and other errors of the system.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.listen_on(&LoopHandle::current(), backlog, Location::caller())
    }

    /// The same for the line `site`.
    pub(crate) fn listen_on(
        self,
        handle: &LoopHandle,
        backlog: u32,
        site: Site,
    ) -> io::Result<TcpListener> {
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        TcpListener::register(handle, self.socket.into(), site)
    }

    /// Lets several sockets listen on one address; the system spreads the connections.
    ///
    /// # Errors
    ///
    /// The system's; [`Unsupported`](io::ErrorKind::Unsupported) where there is no such option.
    pub fn set_reuse_port(&self, reuse: bool) -> io::Result<()> {
        sys::socket::set_reuse_port(&self.socket, reuse)
    }

    /// Whether an IPv6 socket leaves IPv4 alone.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) or the system's for an IPv4 socket.
    pub fn set_only_v6(&self, only: bool) -> io::Result<()> {
        self.socket.set_only_v6(only)
    }

    /// Sends small writes at once instead of gathering them.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.set_tcp_nodelay(nodelay)
    }

    /// Probes the peer when the connection is silent; see [`TcpStream::set_keepalive`].
    ///
    /// # Errors
    ///
    /// As [`TcpStream::set_keepalive`].
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        set_keepalive(&SockRef::from(&self.socket), keepalive)
    }

    /// Sets the size of the system's buffer for what was received.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_recv_buffer_size(bytes)
    }

    /// Sets the size of the system's buffer for what is to be sent.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_send_buffer_size(bytes)
    }

    /// The address the socket was given.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?.as_socket();
        address.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket")
            .field("local", &self.local_addr().ok())
            .finish_non_exhaustive()
    }
}
