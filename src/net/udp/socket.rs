//! UDP sockets.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{self, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::Location;
use std::task::{Context, Poll};

use crate::error::OsError;
use crate::event_loop::api::handle::{Close, impl_handle};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::io::{Readiness, Source};
use crate::net::address::{ToAddresses, first_of};
use crate::net::place::Packets;
use crate::net::udp::UdpOptions;
use crate::site::Site;
use crate::sys;

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
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let a = UdpSocket::bind("127.0.0.1:0").await?;
///     let b = UdpSocket::bind("127.0.0.1:0").await?;
///     a.send_to(b"hello", b.local_addr()?).await?;
///     let mut buffer = [0; 16];
///     let (length, from) = b.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..length], from), (&b"hello"[..], a.local_addr()?));
///     Ok(())
/// })
/// # }
/// ```
pub struct UdpSocket {
    pub(super) source: Source<Packets>,
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
    #[track_caller]
    pub fn bind(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        let site = Location::caller();
        async move {
            let handle = LoopHandle::current_for("net::UdpSocket::bind", Some(site));
            first_of("bind", target, async |address| {
                Self::bind_to(&handle, address, UdpOptions::new(), site)
            })
            .await
        }
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
    /// ```
    /// # #[cfg(unix)]
    /// # fn main() -> std::io::Result<()> {
    /// use phaseloop::net::{UdpOptions, UdpSocket};
    ///
    /// phaseloop::block_on(async {
    ///     let shared = UdpOptions::new().reuse_port(true);
    ///     let first = UdpSocket::bind_with(([127, 0, 0, 1], 0).into(), shared)?;
    ///     UdpSocket::bind_with(first.local_addr()?, shared)?;
    ///     Ok(())
    /// })
    /// # }
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// ```
    #[track_caller]
    pub fn bind_with(address: SocketAddr, options: UdpOptions) -> io::Result<Self> {
        Self::bind_at(address, options, Location::caller())
    }

    #[doc(hidden)]
    /// Binds on behalf of the caller at `site`.
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
    #[track_caller]
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (handle, site) = (LoopHandle::current(), Location::caller());
        handle
            .core()
            .note_outside("a socket of the standard library", site);
        Self::register(&handle, Packets::from_std(socket), site)
    }

    /// Deregisters the socket and returns it. It stays in non-blocking mode.
    ///
    /// # Panics
    ///
    /// If the socket is on a network in memory, which only a test has.
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
    pub async fn connect(&self, target: impl ToAddresses) -> io::Result<()> {
        let socket = self.source.get_ref();
        first_of("connect", target, async |address| socket.connect(address)).await
    }

    /// Sends a datagram to the peer.
    ///
    /// # Errors
    ///
    /// Any OS error of `send`: no peer is set, the datagram is too long, or
    /// [`ConnectionRefused`](io::ErrorKind::ConnectionRefused), which reports that an earlier
    /// datagram reached no socket.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has sent nothing.
    #[must_use = "futures do nothing unless awaited"]
    pub fn send(&self, datagram: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.source.write_with(|socket| socket.send(datagram))
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
    #[must_use = "futures do nothing unless awaited"]
    pub fn send_to(
        &self,
        datagram: &[u8],
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<usize>> {
        self.source
            .write_with(move |socket| send_to(socket, datagram, address))
    }

    /// Receives a datagram from the peer. Bytes beyond the length of the buffer are discarded.
    ///
    /// # Errors
    ///
    /// Any OS error of `recv`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    #[must_use = "futures do nothing unless awaited"]
    pub fn recv(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.source.read_with(|socket| socket.recv(buffer))
    }

    /// Receives a datagram and returns its length and its sender. Bytes beyond the length of the
    /// buffer are discarded.
    ///
    /// # Errors
    ///
    /// Any OS error of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    #[must_use = "futures do nothing unless awaited"]
    pub fn recv_from(
        &self,
        buffer: &mut [u8],
    ) -> impl Future<Output = io::Result<(usize, SocketAddr)>> {
        self.source.read_with(|socket| socket.recv_from(buffer))
    }

    /// Receives without consuming: the next receive returns the same datagram.
    ///
    /// # Errors
    ///
    /// Any OS error of `recvfrom`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    #[must_use = "futures do nothing unless awaited"]
    pub fn peek_from(
        &self,
        buffer: &mut [u8],
    ) -> impl Future<Output = io::Result<(usize, SocketAddr)>> {
        self.source.read_with(|socket| socket.peek_from(buffer))
    }

    /// Sends to the peer without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise as
    /// [`send`](Self::send).
    pub fn try_send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.source.get_ref().send(datagram)
    }

    /// Sends to an address without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise as
    /// [`send_to`](Self::send_to).
    pub fn try_send_to(&self, datagram: &[u8], address: SocketAddr) -> io::Result<usize> {
        send_to(self.source.get_ref(), datagram, address)
    }

    /// Receives a datagram without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise as
    /// [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.try_read_with(|socket| socket.recv_from(buffer))
    }

    /// Polls [`recv_from`](Self::recv_from). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`recv_from`](Self::recv_from).
    #[inline]
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.source
            .poll_read_with(cx, |socket| socket.recv_from(buffer))
    }

    /// Polls [`send_to`](Self::send_to). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`send_to`](Self::send_to).
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

    /// Waits until the socket has a datagram or an error.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data is lost.
    pub fn readable(&self) -> Readiness<'_, Packets> {
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
    pub fn writable(&self) -> Readiness<'_, Packets> {
        self.source.writable()
    }

    /// Returns the local address.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockname`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }

    /// Returns the peer set by [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) if no peer is set.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().peer_addr()
    }

    /// Sets whether datagrams may be sent to broadcast addresses.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_BROADCAST)`.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.source.get_ref().set_broadcast(broadcast)
    }

    /// Sets the time to live (TTL) of datagrams, 1 to 255.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for other values; any OS error of
    /// `setsockopt`.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        check_range(ttl, 1, "a TTL")?;
        match self.local_addr()? {
            SocketAddr::V4(_) => self.source.get_ref().set_ttl_v4(ttl),
            SocketAddr::V6(_) => self.source.get_ref().set_ttl_v6(ttl),
        }
    }

    /// Sets the time to live (TTL) of multicast datagrams, 0 to 255.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for other values; any OS error of
    /// `setsockopt`.
    pub fn set_multicast_ttl(&self, ttl: u32) -> io::Result<()> {
        check_range(ttl, 0, "a multicast TTL")?;
        let socket = self.source.get_ref().multicast()?;
        match self.local_addr()? {
            SocketAddr::V4(_) => socket.set_multicast_ttl_v4(ttl),
            SocketAddr::V6(_) => socket.set_multicast_hops_v6(ttl),
        }
    }

    /// Sets whether multicast datagrams are looped back to this host.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_MULTICAST_LOOP)`.
    pub fn set_multicast_loop(&self, receive_own: bool) -> io::Result<()> {
        let socket = self.source.get_ref().multicast()?;
        match self.local_addr()? {
            SocketAddr::V4(_) => socket.set_multicast_loop_v4(receive_own),
            SocketAddr::V6(_) => socket.set_multicast_loop_v6(receive_own),
        }
    }

    /// Sets the interface for multicast datagrams by its address.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_MULTICAST_IF)`.
    pub fn set_multicast_interface_v4(&self, interface: &Ipv4Addr) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .set_multicast_if_v4(interface)
    }

    /// Sets the interface for multicast datagrams by its index.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_MULTICAST_IF)`.
    pub fn set_multicast_interface_v6(&self, interface: u32) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .set_multicast_if_v6(interface)
    }

    /// Joins a multicast group on the interface with this address. [`Ipv4Addr::UNSPECIFIED`] lets
    /// the kernel choose the interface.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_ADD_MEMBERSHIP)`.
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .join_multicast_v4(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_DROP_MEMBERSHIP)`.
    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .leave_multicast_v4(group, interface)
    }

    /// Joins a multicast group on the interface with this index; 0 lets the kernel choose the
    /// interface.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_ADD_MEMBERSHIP)`.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .join_multicast_v6(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IPV6_DROP_MEMBERSHIP)`.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source
            .get_ref()
            .multicast()?
            .leave_multicast_v6(group, interface)
    }

    /// Joins a multicast group for datagrams of one sender only.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_ADD_SOURCE_MEMBERSHIP)`;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on DragonFly BSD, NetBSD and OpenBSD.
    pub fn join_multicast_from_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        sys::socket::join_from(
            &self.source.get_ref().multicast()?,
            source,
            group,
            interface,
        )
    }

    /// Leaves a multicast group that was joined for one sender.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(IP_DROP_SOURCE_MEMBERSHIP)`;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on DragonFly BSD, NetBSD and OpenBSD.
    pub fn leave_multicast_from_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        sys::socket::leave_from(
            &self.source.get_ref().multicast()?,
            source,
            group,
            interface,
        )
    }

    /// Takes the pending error of the socket (`SO_ERROR`), if there is one.
    ///
    /// # Errors
    ///
    /// Any OS error of `getsockopt(SO_ERROR)`.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.get_ref().take_error()
    }

    /// Closes the socket at once. The close completes in the closing phase; see [`Close`].
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

fn check_range(value: u32, least: u32, what: &str) -> io::Result<()> {
    if (least..=255).contains(&value) {
        return Ok(());
    }
    let text = format!("{value} is not {what}: {least} to 255");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl_handle!(UdpSocket, |this| this.source.handle_core());

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UdpSocket")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .finish_non_exhaustive()
    }
}
