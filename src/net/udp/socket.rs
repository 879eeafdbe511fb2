//! UDP sockets.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{self, SocketAddr};
use std::panic::Location;
use std::task::{Context, Poll};

use crate::error::OsError;
use crate::io::Source;
use crate::net::address::{FirstOf, Resolving, ToAddresses};
use crate::net::transport::Packets;
use crate::net::udp::UdpOptions;
use crate::runtime::handle::{Close, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::impl_as_source;

/// A UDP socket.
///
/// All methods take `&self`: one task can receive while another sends. A send is attempted at once
/// and waits only if the kernel's send buffer is full. [Batches](super::Batch) transfer many
/// datagrams with one system call.
///
/// # Cancel safety
///
/// A call whose future is dropped before it completes has no effect: no datagram is lost or sent.
///
/// # Examples
///
/// ```
/// use phaseloop::net::UdpSocket;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let a = UdpSocket::bind("127.0.0.1:0").await?;
///     let b = UdpSocket::bind("127.0.0.1:0").await?;
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut buffer = [0; 16];
///     let (length, from) = b.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..length], from), (&b"hello"[..], a.local_addr()?));
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_udp_t")]
#[doc(alias = "dgram")]
pub struct UdpSocket {
    pub(in crate::net) source: Source<Packets>,
}

impl UdpSocket {
    /// Creates a socket bound to the first address of the target that can be bound. Port 0 selects
    /// a free port. Binding happens when the returned future is awaited.
    ///
    /// # Errors
    ///
    /// The errors of [`TcpListener::bind`](crate::net::TcpListener::bind).
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has bound no socket.
    ///
    /// # Panics
    ///
    /// When the future is awaited and no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?; // 0: any free port
    ///     println!("receiving on {}", socket.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn bind(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        let addresses = Resolving::of("net::UdpSocket::bind", target, Location::caller());
        FirstOf::new(addresses, |address, site| {
            Self::bind_to(&LoopHandle::current(), address, UdpOptions::new(), site)
                .map_err(|error| OsError::wrap(error, "bind", address))
        })
    }

    /// Creates a bound socket with options that must be set before binding.
    ///
    /// # Errors
    ///
    /// Any OS error of `socket`, `setsockopt` and `bind`, with the address.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let shared = UdpOptions::new().reuse_port(true);
    ///     let first = UdpSocket::bind_with(([127, 0, 0, 1], 0).into(), shared)?;
    ///     UdpSocket::bind_with(first.local_addr()?, shared)?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn bind_with(address: SocketAddr, options: UdpOptions) -> io::Result<Self> {
        Self::bind_at(address, options, Location::caller())
    }

    /// Binds on behalf of the caller at `site`.
    #[doc(hidden)]
    #[track_caller]
    pub fn bind_at(address: SocketAddr, options: UdpOptions, site: Site) -> io::Result<Self> {
        Self::bind_to(&LoopHandle::current(), address, options, site)
            .map_err(|error| OsError::wrap(error, "bind", address))
    }

    fn bind_to(
        handle: &LoopHandle,
        address: SocketAddr,
        options: UdpOptions,
        site: Site,
    ) -> io::Result<Self> {
        Self::register(handle, Packets::bind(handle, address, options)?, site)
    }

    fn register(handle: &LoopHandle, socket: Packets, site: Site) -> io::Result<Self> {
        let source = socket.open(handle, site)?;
        Ok(Self { source })
    }

    /// Returns the socket, of the kernel or in memory.
    pub(super) fn packets(&self) -> &Packets {
        self.source.get_ref()
    }

    #[doc(hidden)]
    pub fn connect_now(&self, address: SocketAddr) -> io::Result<()> {
        self.source.get_ref().connect(address)
    }

    #[doc(hidden)]
    pub fn disconnect(&self) -> io::Result<()> {
        self.source.get_ref().disconnect()
    }

    /// Registers a socket of the standard library with the running loop, in non-blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of registering the descriptor with the poller.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::from_std(std::net::UdpSocket::bind("127.0.0.1:0")?)?;
    ///     let address = socket.local_addr()?;
    ///     assert_eq!(socket.into_std().local_addr()?, address);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (handle, site) = (LoopHandle::current(), Location::caller());
        handle
            .core()
            .waits
            .note_outside("a socket of the standard library", site);
        Self::register(&handle, Packets::from_std(socket), site)
    }

    /// Deregisters the socket and returns it. It stays in non-blocking mode.
    ///
    /// # Panics
    ///
    /// If the socket is on a network in memory, which only a test has.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::from_std(std::net::UdpSocket::bind("127.0.0.1:0")?)?;
    ///     let address = socket.local_addr()?;
    ///     assert_eq!(socket.into_std().local_addr()?, address);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn into_std(self) -> net::UdpSocket {
        self.source.into_inner().0.into_kernel()
    }

    /// Sets the peer for [`send`](Self::send) and [`recv`](Self::recv): the first address of the
    /// target that `connect` accepts. Datagrams from other senders are no longer received.
    ///
    /// # Errors
    ///
    /// Any OS error of `connect`, with the address; as
    /// [`TcpListener::bind`](crate::net::TcpListener::bind) for an invalid target.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has not set the peer.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let server = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
    ///     client.connect(server.local_addr()?).await?; // `send` goes to this peer
    ///     assert_eq!(client.peer_addr()?, server.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn connect(&self, target: impl ToAddresses) -> impl Future<Output = io::Result<()>> {
        let addresses = Resolving::new(target, Location::caller());
        FirstOf::new(addresses, |address, _| {
            let connected = self.packets().connect(address);
            connected.map_err(|error| OsError::wrap(error, "connect", address))
        })
    }

    /// Sends a datagram to an address.
    ///
    /// # Errors
    ///
    /// Any OS error of `sendto`, with the address; [`os_error`](crate::os_error) returns its
    /// number.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has sent nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let server = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
    ///     client.send_to(b"hello", server.local_addr()?).await?;
    ///     let (length, sender) = server.recv_from(&mut [0; 1500]).await?;
    ///     assert_eq!((length, sender), (5, client.local_addr()?));
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn send_to(
        &self,
        datagram: &[u8],
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> {
        self.source
            .write_with(move |socket| send_to(socket, datagram, address))
    }

    /// Sends to an address without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise as
    /// [`send_to`](Self::send_to).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     assert_eq!(socket.try_send_to(b"hello", socket.local_addr()?)?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_send_to(&self, datagram: &[u8], address: SocketAddr) -> io::Result<usize> {
        self.source
            .try_write_with(|socket| send_to(socket, datagram, address))
    }

    /// Polls [`send_to`](Self::send_to). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`send_to`](Self::send_to).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let to = socket.local_addr()?;
    ///     assert_eq!(poll_fn(|cx| socket.poll_send_to(cx, b"hello", to)).await?, 5);
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        address: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.source
            .poll_write_with(cx, |socket| send_to(socket, datagram, address))
    }

    /// Returns the local address.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockname`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     assert_ne!(socket.local_addr()?.port(), 0, "the port that was free");
    ///     Ok(())
    /// }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }

    /// Returns the peer set by [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) if no peer is set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let server = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
    ///     client.connect(server.local_addr()?).await?; // `send` goes to this peer
    ///     assert_eq!(client.peer_addr()?, server.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().peer_addr()
    }

    /// Takes the pending error of the socket (`SO_ERROR`), if there is one.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_ERROR)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     assert!(socket.take_error()?.is_none());
    ///     Ok(())
    /// }
    /// ```
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.get_ref().take_error()
    }

    /// Closes the socket at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::UdpSocket;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let address = socket.local_addr()?;
    ///     socket.close().await;
    ///     UdpSocket::bind(address).await?; // the port is free again
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        self.source.close()
    }

    /// Returns the socket of the standard library, for options without a method here.
    ///
    /// # Panics
    ///
    /// If the socket is on a network in memory, which only a test has.
    #[must_use]
    pub fn get_ref(&self) -> &net::UdpSocket {
        self.source.get_ref().0.kernel()
    }
}

/// Sends a datagram. An error names the address, except `WouldBlock`, after which the call is
/// repeated.
fn send_to(socket: &Packets, datagram: &[u8], address: SocketAddr) -> io::Result<usize> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    socket
        .send_to(datagram, address)
        .map_err(|error| match error.kind() {
            Interrupted | WouldBlock => error,
            _ => OsError::wrap(error, "send_to", address),
        })
}

impl_handle!(UdpSocket, |this| this.source.handle_core());
impl_datagrams!(UdpSocket, SocketAddr, Packets::recv_from);
impl_readiness!(UdpSocket, Packets, poll_recv_ready, poll_send_ready);
impl_as_source!(UdpSocket, |this| this.get_ref());

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .finish_non_exhaustive()
    }
}
