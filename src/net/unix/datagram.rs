//! Unix sockets: datagrams.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::panic::Location;
use std::task::{Context, Poll};

use socket2::{Domain, Socket, Type};

use super::name::{RemoveOnDrop, SocketName};
use crate::io::Source;
use crate::runtime::handle::Close;
use crate::runtime::loop_handle::LoopHandle;
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
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (a, b) = UnixDatagram::pair()?;
///     a.send(b"one").await?;
///     a.send(b"two").await?;
///     let mut buffer = [0; 16];
///     assert_eq!(b.recv(&mut buffer).await?, 3);
///     assert_eq!(&buffer[..3], b"one");
///     Ok(())
/// }
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
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::{fs, net::UnixDatagram};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let server = UnixDatagram::bind(folder.join("log"))?;
    ///     let client = UnixDatagram::unbound()?;
    ///     client.send_to(b"hello", folder.join("log")).await?;
    ///     assert_eq!(server.recv(&mut [0; 64]).await?, 5);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::UnixDatagram};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let server = UnixDatagram::bind(folder.join("log"))?;
    ///     let client = UnixDatagram::unbound()?; // a sender needs no name
    ///     client.send_to(b"one", folder.join("log")).await?;
    ///     client.connect(folder.join("log"))?;
    ///     client.send(b"two").await?;
    ///     assert_eq!(server.recv(&mut [0; 64]).await?, 3);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    #[inline]
    pub fn unbound() -> io::Result<Self> {
        let socket = sys::socket::socket(Domain::UNIX, Type::DGRAM, None)?;
        Self::register(&LoopHandle::current(), socket, Location::caller())
    }

    #[inline]
    fn register(handle: &LoopHandle, socket: Socket, site: Site) -> io::Result<Self> {
        Self::adopt(handle, OwnedFd::from(socket).into(), site)
    }

    #[inline]
    fn adopt(handle: &LoopHandle, socket: net::UnixDatagram, site: Site) -> io::Result<Self> {
        Ok(Self {
            source: Source::new_stream(handle, socket, true, site)?,
            path: RemoveOnDrop::NOTHING,
        })
    }

    /// Sets the peer for [`send`](Self::send).
    ///
    /// # Errors
    ///
    /// Any OS error of `connect`, such as [`NotFound`](io::ErrorKind::NotFound) and
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused). The error includes the name.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::UnixDatagram};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let server = UnixDatagram::bind(folder.join("log"))?;
    ///     let client = UnixDatagram::unbound()?; // a sender needs no name
    ///     client.send_to(b"one", folder.join("log")).await?;
    ///     client.connect(folder.join("log"))?;
    ///     client.send(b"two").await?;
    ///     assert_eq!(server.recv(&mut [0; 64]).await?, 3);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    pub fn connect(&self, name: impl Into<SocketName>) -> io::Result<()> {
        let name = name.into();
        let socket = socket2::SockRef::from(self.get_ref());
        let connected = name
            .address()
            .and_then(|address| sys::socket::connect_at_once(&socket, &address));
        connected.map_err(|error| name.explain(error, "connect"))
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{fs, net::UnixDatagram};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let folder = fs::mkdtemp(std::env::temp_dir().join("doc-XXXXXX")).await?;
    ///     let server = UnixDatagram::bind(folder.join("log"))?;
    ///     let client = UnixDatagram::unbound()?; // a sender needs no name
    ///     client.send_to(b"one", folder.join("log")).await?;
    ///     client.connect(folder.join("log"))?;
    ///     client.send(b"two").await?;
    ///     assert_eq!(server.recv(&mut [0; 64]).await?, 3);
    ///     fs::remove_dir_all(folder).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn send_to(
        &self,
        datagram: &[u8],
        name: impl Into<SocketName>,
    ) -> impl Future<Output = io::Result<usize>> {
        let name = name.into();
        self.source
            .write_with(move |socket| send_to(socket, datagram, &name))
    }

    /// Sends a datagram to a name without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer or the queue of the receiver is
    /// full; otherwise as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, datagram: &[u8], name: impl Into<SocketName>) -> io::Result<usize> {
        let name = name.into();
        self.source
            .try_write_with(|socket| send_to(socket, datagram, &name))
    }

    /// Polls [`send_to`](Self::send_to). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`send_to`](Self::send_to).
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        name: impl Into<SocketName>,
    ) -> Poll<io::Result<usize>> {
        let name = name.into();
        self.source
            .poll_write_with(cx, |socket| send_to(socket, datagram, &name))
    }

    /// Closes the socket at once and removes its path. The close completes in the closing phase;
    /// see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UnixDatagram;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (one, other) = UnixDatagram::pair()?;
    ///     one.close().await;
    ///     assert!(other.try_send(b"to no peer").is_err());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        drop(self.path);
        self.source.close()
    }

    pub(in crate::net) fn into_parts(self) -> (RemoveOnDrop, Source<net::UnixDatagram>) {
        (self.path, self.source)
    }

    pub(in crate::net) fn from_parts(
        path: RemoveOnDrop,
        source: Source<net::UnixDatagram>,
    ) -> Self {
        Self { path, source }
    }

    fn into_source(mut self) -> Source<net::UnixDatagram> {
        self.path.keep();
        self.source
    }
}

/// Sends a datagram. An error includes the name, except `WouldBlock`, after which the call is
/// repeated.
fn send_to(socket: &net::UnixDatagram, datagram: &[u8], name: &SocketName) -> io::Result<usize> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    let send = |address| socket2::SockRef::from(socket).send_to(datagram, &address);
    let sent = name.address().and_then(send);
    sent.map_err(|error| match error.kind() {
        Interrupted | WouldBlock => error,
        _ => name.explain(error, "send_to"),
    })
}

/// Receives a datagram and the name of its sender, if it has one.
fn recv_from(
    socket: &net::UnixDatagram,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<SocketName>)> {
    let (length, sender) = socket.recv_from(buffer)?;
    Ok((length, SocketName::of(&sender)))
}

impl_unix_socket!(UnixDatagram, net::UnixDatagram);
impl_unix_peer!(UnixDatagram, net::UnixDatagram);
impl_datagrams!(UnixDatagram, Option<SocketName>, recv_from);
impl_readiness!(
    UnixDatagram,
    net::UnixDatagram,
    poll_recv_ready,
    poll_send_ready
);

impl fmt::Debug for UnixDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixDatagram")
            .field("local", &self.local_name().ok().flatten())
            .finish_non_exhaustive()
    }
}
