//! UDP sockets, in the kernel or in memory.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};

use socket2::{Domain, Protocol, SockAddr, SockRef, Type};

use super::{StreamOptions, Transport, either};
use crate::io::Source;
#[cfg(feature = "test-util")]
use crate::net::memory::Memory;
use crate::net::udp::UdpOptions;
use crate::runtime::loop_handle::LoopHandle;
#[cfg(feature = "test-util")]
use crate::shuffle::no_groups;
use crate::site::Site;
use crate::sys;
use crate::sys::datagrams::Setting;
use crate::sys::poller::impl_as_source;
#[cfg(feature = "test-util")]
use crate::ways_to_wait::shuffled::network::network;

/// The socket of a [`UdpSocket`](crate::net::UdpSocket). It is the type of what
/// [`readable`](crate::net::UdpSocket::readable) waits for, and has no use of its own.
///
/// # Examples
///
/// ```
/// use phaseloop::io::Readiness;
/// use phaseloop::net::{Packets, UdpSocket};
///
/// fn readable(socket: &UdpSocket) -> Readiness<'_, Packets> {
///     socket.readable()
/// }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     socket.send_to(b"to itself", socket.local_addr()?).await?;
///     readable(&socket).await?;
///     assert_eq!(socket.try_recv(&mut [0; 16])?, 9);
///     Ok(())
/// }
/// ```
pub struct Packets(pub(in crate::net) Transport<net::UdpSocket>);

impl_as_source!(Packets, |this| this.0.kernel());

impl Packets {
    pub(in crate::net) fn from_std(socket: net::UdpSocket) -> Self {
        Self(Transport::Kernel(socket))
    }

    /// Creates a bound socket for a loop: in memory if the loop has a network there.
    pub(in crate::net) fn bind(
        handle: &LoopHandle,
        address: SocketAddr,
        options: UdpOptions,
    ) -> io::Result<Self> {
        #[cfg(feature = "test-util")]
        if network(handle.core()).is_some() {
            let socket = Memory::udp(handle, address, |set| options.store(set))?;
            return Ok(Self(Transport::Memory(socket)));
        }
        let _ = handle;
        let domain = Domain::for_address(address);
        let socket = sys::socket::socket(domain, Type::DGRAM, Some(Protocol::UDP))?;
        options.apply(&socket)?;
        socket.bind(&SockAddr::from(address))?;
        Ok(Self(Transport::Kernel(socket.into())))
    }

    /// Puts the socket on the loop; see [`Source::new_stream`].
    pub(in crate::net) fn open(self, handle: &LoopHandle, site: Site) -> io::Result<Source<Self>> {
        #[cfg(feature = "test-util")]
        if let Transport::Memory(memory) = &self.0 {
            let socket = memory.share();
            return socket.open(Source::in_memory(handle, self, site)?, true);
        }
        Source::new_stream(handle, self, true, site)
    }

    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<()> {
        either!(&self.0, socket => socket.connect(address), memory => memory.connect_udp(address))
    }

    pub(crate) fn disconnect(&self) -> io::Result<()> {
        either!(
            &self.0,
            socket => sys::socket::disconnect(socket),
            memory => memory.disconnect_udp(),
        )
    }

    #[inline]
    pub(in crate::net) fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        either!(&self.0, socket => socket.send(datagram), memory => memory.send(datagram, None))
    }

    #[inline]
    pub(in crate::net) fn send_to(
        &self,
        datagram: &[u8],
        address: SocketAddr,
    ) -> io::Result<usize> {
        either!(
            &self.0,
            socket => socket.send_to(datagram, address),
            memory => memory.send(datagram, Some(address)),
        )
    }

    #[inline]
    pub(in crate::net) fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(
            &self.0,
            socket => sys::datagrams::recv(socket, buffer),
            memory => memory.receive(buffer, false).map(|(count, ..)| count),
        )
    }

    #[inline]
    pub(in crate::net) fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        either!(
            &self.0,
            socket => sys::datagrams::recv_from(socket, buffer),
            memory => memory.receive(buffer, false).map(|(count, _, from)| (count, from)),
        )
    }

    pub(in crate::net) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(
            &self.0,
            socket => sys::datagrams::peek(socket, buffer),
            memory => memory.receive(buffer, true).map(|(count, ..)| count),
        )
    }

    pub(in crate::net) fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        either!(
            &self.0,
            socket => sys::datagrams::peek_from(socket, buffer),
            memory => memory.receive(buffer, true).map(|(count, _, from)| (count, from)),
        )
    }

    pub(in crate::net) fn local_addr(&self) -> io::Result<SocketAddr> {
        either!(&self.0, socket => socket.local_addr(), memory => memory.local_addr())
    }

    pub(in crate::net) fn peer_addr(&self) -> io::Result<SocketAddr> {
        either!(&self.0, socket => socket.peer_addr(), memory => memory.peer_addr())
    }

    pub(in crate::net) fn take_error(&self) -> io::Result<Option<io::Error>> {
        either!(&self.0, socket => socket.take_error(), memory => memory.take_error())
    }

    pub(in crate::net) fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        either!(
            &self.0,
            socket => socket.set_broadcast(broadcast),
            _memory => if broadcast { Err(no_groups()) } else { Ok(()) },
        )
    }

    pub(in crate::net) fn broadcast(&self) -> io::Result<bool> {
        either!(&self.0, socket => socket.broadcast(), _memory => Ok(false))
    }

    /// Changes what the kernel does with datagrams. In memory nothing of it is needed.
    pub(in crate::net) fn set(&self, setting: Setting, on: bool) -> io::Result<()> {
        either!(
            &self.0,
            socket => sys::datagrams::set(socket, setting, on),
            _memory => Ok(()),
        )
    }

    pub(in crate::net) fn is_set(&self, setting: Setting) -> io::Result<bool> {
        either!(&self.0, socket => sys::datagrams::is_set(socket, setting), _memory => Ok(false))
    }

    pub(in crate::net) fn ttl_v4(&self) -> io::Result<u32> {
        either!(&self.0, socket => socket.ttl(), memory => memory.get(|options| options.ttl))
    }

    pub(in crate::net) fn ttl_v6(&self) -> io::Result<u32> {
        either!(
            &self.0,
            socket => SockRef::from(socket).unicast_hops_v6(),
            memory => memory.get(|options| options.ttl),
        )
    }

    /// Returns the options that a TCP socket has, too.
    pub(in crate::net) fn options(&self) -> StreamOptions<'_> {
        either!(
            &self.0,
            socket => StreamOptions(Transport::Kernel(SockRef::from(socket))),
            memory => StreamOptions(Transport::Memory(memory.share())),
        )
    }

    pub(in crate::net) fn set_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        either!(&self.0, socket => socket.set_ttl(ttl), memory => memory.set_ttl(ttl))
    }

    pub(in crate::net) fn set_ttl_v6(&self, ttl: u32) -> io::Result<()> {
        either!(
            &self.0,
            socket => SockRef::from(socket).set_unicast_hops_v6(ttl),
            memory => memory.set_ttl(ttl),
        )
    }

    /// Returns the options of multicast.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the socket is in memory.
    pub(in crate::net) fn multicast(&self) -> io::Result<SockRef<'_>> {
        either!(&self.0, socket => Ok(SockRef::from(socket)), _memory => Err(no_groups()))
    }
}

impl fmt::Debug for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Packets").field(&self.0).finish()
    }
}
