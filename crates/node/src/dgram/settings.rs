//! The options of datagram sockets: time to live, broadcast, multicast, buffers.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use super::{Socket, State};
use crate::abort::AbortSignal;
use crate::error::Error;
use crate::events::Emitter as _;
use crate::reason::throw;
use crate::stream::CLOSE;
use phaseloop::net::{UdpOptions, UdpSocket};

/// Options of [`Socket::with_options`]. JavaScript: `{ reuseAddr, reusePort, ipv6Only,
/// recvBufferSize, sendBufferSize, signal }` of `dgram.createSocket`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::dgram::{Socket, SocketOptions};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = SocketOptions { reuse_addr: true, ..SocketOptions::default() };
///         let socket = Socket::with_options(options);
///         socket.close();
///     })
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// Whether the address may be in use by another socket that allows it.
    pub reuse_addr: bool,
    /// Whether several sockets may share the port; the system distributes the datagrams.
    pub reuse_port: bool,
    /// Whether an IPv6 socket receives no IPv4 datagrams.
    pub ipv6_only: bool,
    /// The size of the receive buffer of the system. The system may limit it.
    pub recv_buffer_size: Option<usize>,
    /// The size of the send buffer of the system. The system may limit it.
    pub send_buffer_size: Option<usize>,
    /// Closes the socket when it is aborted.
    pub signal: Option<AbortSignal>,
}

impl SocketOptions {
    pub(super) fn bind_options(&self) -> UdpOptions {
        let mut options = UdpOptions::new();
        // Each sets an option of the socket, which not every family and system has.
        if self.reuse_addr {
            options = options.reuse_address(true);
        }
        if self.reuse_port {
            options = options.reuse_port(true);
        }
        if self.ipv6_only {
            options = options.only_v6(true);
        }
        options
    }

    pub(super) fn apply(&self, socket: &UdpSocket) -> io::Result<()> {
        if let Some(bytes) = self.recv_buffer_size {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = self.send_buffer_size {
            socket.set_send_buffer_size(bytes)?;
        }
        Ok(())
    }
}

/// The network interface of multicast datagrams: by its address for IPv4, by its number for IPv6.
///
/// # Examples
///
/// ```
/// use std::net::Ipv4Addr;
/// use phaseloop_node::dgram::Interface;
///
/// fn main() {
///     assert_eq!(Interface::from(Ipv4Addr::LOCALHOST), Interface::V4(Ipv4Addr::LOCALHOST));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interface {
    /// The one that the system chooses.
    #[default]
    Any,
    /// The interface with an IPv4 address.
    V4(Ipv4Addr),
    /// The interface with a number.
    Index(u32),
}

impl From<Ipv4Addr> for Interface {
    fn from(address: Ipv4Addr) -> Self {
        Self::V4(address)
    }
}

impl From<u32> for Interface {
    fn from(index: u32) -> Self {
        Self::Index(index)
    }
}

impl Interface {
    fn v4(self) -> Ipv4Addr {
        match self {
            Self::V4(address) => address,
            Self::Any | Self::Index(_) => Ipv4Addr::UNSPECIFIED,
        }
    }

    fn index(self) -> u32 {
        match self {
            Self::Index(index) => index,
            Self::Any | Self::V4(_) => 0,
        }
    }
}

/// Options of a bound socket. Each method [throws](crate::throw) `EBADF` before the socket is
/// bound, `ERR_SOCKET_DGRAM_NOT_RUNNING` after its close, and any OS error.
impl Socket {
    /// Creates a socket with options that is not bound. JavaScript: `dgram.createSocket(options)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread and the signal is aborted.
    #[must_use]
    pub fn with_options(options: SocketOptions) -> Self {
        let this = Self::new();
        let signal = options.signal.clone();
        this.inner.options.replace(options);
        if let Some(signal) = signal {
            this.close_with_signal(&signal);
        }
        this
    }

    fn close_with_signal(&self, signal: &AbortSignal) {
        if signal.aborted() {
            return self.close();
        }
        // Weak, because the signal may outlive many sockets.
        let inner = Rc::downgrade(&self.inner);
        let listener = signal.on_abort(move || {
            let open = inner
                .upgrade()
                .filter(|inner| inner.state.get() != State::Closed);
            if let Some(inner) = open {
                Self { inner }.close();
            }
        });
        let signal = signal.clone();
        self.once(CLOSE, move |()| _ = signal.off(listener));
    }

    /// Calls `f` with the bound socket.
    fn call<R>(&self, name: &'static str, f: impl FnOnce(&UdpSocket) -> io::Result<R>) -> R {
        self.check_open();
        let bound = self.inner.bound.borrow();
        let socket = bound.as_ref().map(|bound| bound.socket.clone());
        drop(bound);
        let Some(socket) = socket else {
            throw(Error::of_code("EBADF", name))
        };
        match f(&socket) {
            Ok(value) => value,
            Err(error) => throw(Error::of_call(error, name)),
        }
    }

    /// Sets the time to live of datagrams, 1 to 255. JavaScript: `socket.setTTL(ttl)`.
    ///
    /// # Panics
    ///
    /// Throws `EINVAL` for other values; see above.
    pub fn set_ttl(&self, ttl: u32) {
        self.call("setTTL", |socket| socket.set_ttl(ttl));
    }

    /// Sets whether datagrams may be sent to broadcast addresses. JavaScript:
    /// `socket.setBroadcast(flag)`.
    pub fn set_broadcast(&self, broadcast: bool) {
        self.call("setBroadcast", |socket| socket.set_broadcast(broadcast));
    }

    /// Sets the time to live of multicast datagrams, 0 to 255. JavaScript:
    /// `socket.setMulticastTTL(ttl)`.
    ///
    /// # Panics
    ///
    /// Throws `EINVAL` for other values; see above.
    pub fn set_multicast_ttl(&self, ttl: u32) {
        self.call("setMulticastTTL", |socket| socket.set_multicast_ttl(ttl));
    }

    /// Sets whether this host receives its own multicast datagrams. JavaScript:
    /// `socket.setMulticastLoopback(flag)`.
    pub fn set_multicast_loopback(&self, receives_own: bool) {
        let name = "setMulticastLoopback";
        self.call(name, |socket| socket.set_multicast_loop(receives_own));
    }

    /// Sets the interface that multicast datagrams leave by. JavaScript:
    /// `socket.setMulticastInterface(interface)`.
    pub fn set_multicast_interface(&self, interface: impl Into<Interface>) {
        let interface = interface.into();
        self.call("setMulticastInterface", |socket| {
            match socket.local_addr()?.is_ipv4() {
                true => socket.set_multicast_interface_v4(&interface.v4()),
                false => socket.set_multicast_interface_v6(interface.index()),
            }
        });
    }

    /// Joins a multicast group. JavaScript: `socket.addMembership(group, interface)`.
    ///
    /// # Panics
    ///
    /// Throws `EINVAL` if the address is no group, `EADDRINUSE` if the socket has joined it; see
    /// above.
    pub fn add_membership(&self, group: IpAddr, interface: impl Into<Interface>) {
        let interface = interface.into();
        self.call("addMembership", |socket| match group {
            IpAddr::V4(group) => socket.join_multicast_v4(&group, &interface.v4()),
            IpAddr::V6(group) => socket.join_multicast_v6(&group, interface.index()),
        });
    }

    /// Leaves a multicast group. JavaScript: `socket.dropMembership(group, interface)`.
    ///
    /// # Panics
    ///
    /// Throws `EADDRNOTAVAIL` if the socket has not joined it; see above.
    pub fn drop_membership(&self, group: IpAddr, interface: impl Into<Interface>) {
        let interface = interface.into();
        self.call("dropMembership", |socket| match group {
            IpAddr::V4(group) => socket.leave_multicast_v4(&group, &interface.v4()),
            IpAddr::V6(group) => socket.leave_multicast_v6(&group, interface.index()),
        });
    }

    /// Joins a multicast group for the datagrams of one sender. JavaScript:
    /// `socket.addSourceSpecificMembership(source, group, interface)`.
    pub fn add_source_specific_membership(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: impl Into<Interface>,
    ) {
        let interface = interface.into().v4();
        self.call("addSourceSpecificMembership", |socket| {
            socket.join_multicast_from_v4(&source, &group, &interface)
        });
    }

    /// Leaves a multicast group of one sender. JavaScript:
    /// `socket.dropSourceSpecificMembership(source, group, interface)`.
    pub fn drop_source_specific_membership(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: impl Into<Interface>,
    ) {
        let interface = interface.into().v4();
        self.call("dropSourceSpecificMembership", |socket| {
            socket.leave_multicast_from_v4(&source, &group, &interface)
        });
    }

    /// Returns the size of the receive buffer of the system. JavaScript:
    /// `socket.getRecvBufferSize()`.
    #[must_use]
    pub fn get_recv_buffer_size(&self) -> usize {
        self.call("getRecvBufferSize", UdpSocket::recv_buffer_size)
    }

    /// Sets the size of the receive buffer of the system. JavaScript:
    /// `socket.setRecvBufferSize(size)`.
    pub fn set_recv_buffer_size(&self, bytes: usize) {
        self.call("setRecvBufferSize", |socket| {
            socket.set_recv_buffer_size(bytes)
        });
    }

    /// Returns the size of the send buffer of the system. JavaScript: `socket.getSendBufferSize()`.
    #[must_use]
    pub fn get_send_buffer_size(&self) -> usize {
        self.call("getSendBufferSize", UdpSocket::send_buffer_size)
    }

    /// Sets the size of the send buffer of the system. JavaScript:
    /// `socket.setSendBufferSize(size)`.
    pub fn set_send_buffer_size(&self, bytes: usize) {
        self.call("setSendBufferSize", |socket| {
            socket.set_send_buffer_size(bytes)
        });
    }
}
