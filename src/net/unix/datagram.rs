//! Unix sockets: datagrams.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::panic::Location;

use socket2::{Domain, Socket, Type};

use super::name::{RemoveOnDrop, SocketName, name_of};
use crate::event_loop::api::handle::{Close, impl_handle};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::io::{Readiness, Source};
use crate::site::Site;
use crate::sys;

/// A Unix datagram socket: each send is one receive, reliable and in order.
///
/// The bound path is removed when the socket is dropped or closed.
///
/// # Cancel safety
///
/// A call whose future is dropped before it completes has no effect.
///
/// # Examples
///
/// ```
/// use phaseloop::net::UnixDatagram;
///
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (a, b) = UnixDatagram::pair()?;
///     a.send(b"one").await?;
///     a.send(b"two").await?;
///     let mut buffer = [0; 16];
///     assert_eq!(b.recv(&mut buffer).await?, 3);
///     assert_eq!(&buffer[..3], b"one");
///     Ok(())
/// })
/// # }
/// ```
pub struct UnixDatagram {
    /// The path to remove, before the socket closes.
    path: RemoveOnDrop,
    source: Source<net::UnixDatagram>,
}

impl UnixDatagram {
    /// Creates a socket bound to a name.
    ///
    /// # Errors
    ///
    /// The errors of [`UnixListener::bind`](crate::net::UnixListener::bind).
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn bind(name: impl Into<SocketName>) -> io::Result<Self> {
        let (name, handle) = (name.into(), LoopHandle::current());
        Self::bind_to(&handle, name.clone(), Location::caller())
            .map_err(|error| name.explain(error, "bind"))
    }

    #[inline]
    fn bind_to(handle: &LoopHandle, name: SocketName, site: Site) -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::DGRAM, None)?;
        socket.bind(&name.address()?)?;
        // From here on, this handle removes the path.
        let path = RemoveOnDrop::of(name);
        let mut datagram = Self::register(handle, socket, site)?;
        datagram.path = path;
        Ok(datagram)
    }

    /// Creates a socket without a name. It can send, and receives answers only from a connected
    /// peer.
    ///
    /// # Errors
    ///
    /// Any OS error of `socket`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    #[inline]
    pub fn unbound() -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::DGRAM, None)?;
        Self::register(&LoopHandle::current(), socket, Location::caller())
    }

    /// Creates two connected sockets.
    ///
    /// # Errors
    ///
    /// Any OS error of `socketpair`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    #[inline]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixDatagram::pair()?;
        let (handle, site) = (LoopHandle::current(), Location::caller());
        let (one, other) = (
            Self::adopt(&handle, one, site)?,
            Self::adopt(&handle, other, site)?,
        );
        one.source.pair_with(&other.source);
        Ok((one, other))
    }

    /// Registers a socket of the standard library with the running loop, in non-blocking mode. Its
    /// path is not removed.
    ///
    /// # Errors
    ///
    /// Any OS error of registering the descriptor with the poller.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    #[inline]
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<Self> {
        let (handle, site) = (LoopHandle::current(), Location::caller());
        handle
            .core()
            .note_outside("a socket of the standard library", site);
        Self::adopt(&handle, socket, site)
    }

    #[inline]
    fn adopt(handle: &LoopHandle, socket: net::UnixDatagram, site: Site) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::register(handle, OwnedFd::from(socket).into(), site)
    }

    #[inline]
    fn register(handle: &LoopHandle, socket: Socket, site: Site) -> io::Result<Self> {
        let socket = net::UnixDatagram::from(OwnedFd::from(socket));
        Ok(Self {
            source: Source::new_stream(handle, socket, true, site)?,
            path: RemoveOnDrop(None),
        })
    }

    /// Sets the peer for [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// Any OS error of `connect`, such as [`NotFound`](io::ErrorKind::NotFound) and
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused). The error includes the name.
    pub fn connect(&self, name: impl Into<SocketName>) -> io::Result<()> {
        let name = name.into();
        let socket = socket2::SockRef::from(self.get_ref());
        let connected = name
            .address()
            .and_then(|address| sys::socket::connect_at_once(&socket, &address));
        connected.map_err(|error| name.explain(error, "connect"))
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    ///
    /// Any OS error of `send`.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has sent nothing.
    pub async fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.source.write_with(|socket| socket.send(datagram)).await
    }

    /// Sends a datagram to a name.
    ///
    /// # Errors
    ///
    /// Any OS error of `sendto`, with the name.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has sent nothing.
    pub async fn send_to(&self, datagram: &[u8], name: impl Into<SocketName>) -> io::Result<usize> {
        let name = name.into();
        let explain = |error| name.explain(error, "send_to");
        let address = name.address().map_err(explain)?;
        let send =
            |socket: &net::UnixDatagram| socket2::SockRef::from(socket).send_to(datagram, &address);
        self.source.write_with(send).await.map_err(explain)
    }

    /// Receives a datagram. Bytes beyond the length of the buffer are discarded.
    ///
    /// # Errors
    ///
    /// Any OS error of `recv`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read_with(|socket| socket.recv(buffer)).await
    }

    /// Receives a datagram and the name of its sender, if it has one.
    ///
    /// # Errors
    ///
    /// Any OS error of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<SocketName>)> {
        let (length, address) = self
            .source
            .read_with(|socket| socket.recv_from(buffer))
            .await?;
        Ok((length, name_of(Ok(address))?))
    }

    /// Returns the name of the socket; `None` if it has none.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockname`.
    pub fn local_name(&self) -> io::Result<Option<SocketName>> {
        name_of(self.get_ref().local_addr())
    }

    /// Waits until the socket has a datagram or an error.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data is lost.
    pub fn readable(&self) -> Readiness<'_, net::UnixDatagram> {
        self.source.readable()
    }

    /// Waits until the send buffer has room.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; nothing was written.
    pub fn writable(&self) -> Readiness<'_, net::UnixDatagram> {
        self.source.writable()
    }

    /// Closes the socket at once and removes its path. The close completes in the closing phase;
    /// see [`Close`].
    pub fn close(self) -> Close {
        drop(self.path);
        self.source.close()
    }

    /// Returns the socket of the standard library, for options without a method here.
    #[must_use]
    pub fn get_ref(&self) -> &net::UnixDatagram {
        self.source.get_ref()
    }
}

impl_handle!(UnixDatagram, |this| this.source.handle_core());

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixDatagram")
            .field("local", &self.local_name().ok().flatten())
            .finish_non_exhaustive()
    }
}
