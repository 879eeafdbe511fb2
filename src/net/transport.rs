//! Where a socket is: in the kernel or, in a test, in the memory of the loop's own network.
//!
//! The types of this file stand below [`Source`], in place of those of the standard library. All
//! above is one for both places. Without the feature `test-util` there is one place, and a
//! [`Transport`] is the socket itself.
// Marks: see the head of `io/bytes.rs`.

mod packets;

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

#[cfg(feature = "test-util")]
use super::memory::Memory;
use crate::io::Source;
#[cfg(feature = "test-util")]
use crate::raw::thread_bound::ThreadBound;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::sys::poller::{Interest, impl_as_source};
use crate::sys::socket::{BorrowedSocket, Lend};
#[cfg(feature = "test-util")]
use crate::ways_to_wait::shuffled::network::network;

/// A socket of the kernel, or one in memory.
pub(super) enum Transport<K> {
    Kernel(K),
    #[cfg(feature = "test-util")]
    Memory(Memory),
}

/// Does one thing with a socket of the kernel, and another one with a socket in memory.
macro_rules! either {
    ($transport:expr, $kernel:ident => $in_kernel:expr, $memory:ident => $in_memory:expr $(,)?) => {
        match $transport {
            $crate::net::transport::Transport::Kernel($kernel) => $in_kernel,
            #[cfg(feature = "test-util")]
            $crate::net::transport::Transport::Memory($memory) => $in_memory,
        }
    };
}
pub(super) use either;
pub use packets::Packets;

/// The panic of a call that needs a descriptor.
#[cfg(feature = "test-util")]
const IN_MEMORY: &str = "this socket is on the loop's network in memory and has no descriptor: a test of \
                         `get_ref` or `into_std` needs a loop that is not shuffled, or a socket made by `from_std`";

impl<K> Transport<K> {
    /// Returns the socket of the kernel.
    ///
    /// # Panics
    ///
    /// If the socket is in memory.
    pub(super) fn kernel(&self) -> &K {
        either!(self, socket => socket, _memory => panic!("{IN_MEMORY}"))
    }

    /// Returns the socket of the kernel; see [`kernel`](Self::kernel).
    pub(super) fn into_kernel(self) -> K {
        either!(self, socket => socket, _memory => panic!("{IN_MEMORY}"))
    }

    fn map<T>(self, convert: impl FnOnce(K) -> T) -> Transport<T> {
        either!(self, socket => Transport::Kernel(convert(socket)), memory => Transport::Memory(memory))
    }

    /// Makes the socket one that can move to another loop.
    pub(super) fn into_sent(self) -> SentPlace<K> {
        either!(
            self,
            socket => SentPlace::Kernel(socket),
            memory => SentPlace::Memory(ThreadBound::new(Some(memory))),
        )
    }

    pub(super) fn is_in_memory(&self) -> bool {
        either!(self, _socket => false, _memory => true)
    }
}

/// A [`Transport`] that is `Send`. A socket in memory stays on its thread all the same.
pub(super) enum SentPlace<K> {
    Kernel(K),
    #[cfg(feature = "test-util")]
    Memory(ThreadBound<Option<Memory>>),
}

impl<K> SentPlace<K> {
    /// Puts the socket where the loop finds it.
    ///
    /// # Errors
    ///
    /// If the socket is in memory, and the loop is not on its network.
    pub(super) fn into_place(self, handle: &LoopHandle) -> io::Result<Transport<K>> {
        let _ = handle;
        match self {
            Self::Kernel(socket) => Ok(Transport::Kernel(socket)),
            #[cfg(feature = "test-util")]
            Self::Memory(mut memory) => {
                let memory = memory.get_mut().and_then(Option::take);
                let memory = memory.and_then(|memory| memory.move_to(handle));
                memory.map(Transport::Memory).ok_or_else(|| {
                    io::Error::new(
                        io::ErrorKind::Unsupported,
                        "a socket in memory cannot leave the network of its test",
                    )
                })
            }
        }
    }
}

impl<K: Lend> Lend for SentPlace<K> {
    fn lend(&self) -> BorrowedSocket<'_> {
        match self {
            Self::Kernel(socket) => socket.lend(),
            #[cfg(feature = "test-util")]
            Self::Memory(_) => panic!("{IN_MEMORY}"),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Transport<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        either!(self, socket => socket.fmt(f), memory => memory.fmt(f))
    }
}

/// A TCP socket before it connects or listens.
impl Transport<Socket> {
    /// Creates a socket for a loop: in memory if the loop has a network there.
    pub(super) fn tcp(handle: Option<&LoopHandle>, is_v6: bool) -> io::Result<Self> {
        #[cfg(feature = "test-util")]
        if let Some(handle) = handle.filter(|handle| network(handle.core()).is_some()) {
            return Memory::tcp(handle, is_v6).map(Self::Memory);
        }
        let _ = handle;
        let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
        sys::socket::socket(domain, Type::STREAM, Some(Protocol::TCP)).map(Self::Kernel)
    }

    /// Binds the socket, with `SO_REUSEADDR` set if `may_linger`.
    pub(super) fn bind(&self, address: SocketAddr, may_linger: bool) -> io::Result<()> {
        either!(
            self,
            socket => {
                if may_linger {
                    sys::socket::allow_lingering_address(socket)?;
                }
                socket.bind(&SockAddr::from(address))
            },
            memory => {
                if may_linger {
                    memory.set(|options| options.reuse_address = true)?;
                }
                memory.bind(address)
            },
        )
    }

    /// Starts to connect; see [`sys::socket::connect`].
    pub(super) fn connect(&self, address: SocketAddr) -> io::Result<bool> {
        either!(
            self,
            socket => {
                let address = sys::socket::fill_scope(address);
                sys::socket::connect(socket, &SockAddr::from(address))
            },
            memory => memory.connect(address).map(|()| false),
        )
    }

    pub(super) fn listen(self, backlog: u32) -> io::Result<Acceptor> {
        either!(
            &self,
            socket => sys::socket::listen(socket, i32::try_from(backlog).unwrap_or(i32::MAX))?,
            memory => memory.listen(backlog)?,
        );
        Ok(Acceptor(self.map(Socket::into)))
    }

    /// Returns the socket that [`connect`](Self::connect) connects.
    pub(super) fn into_conn(self) -> Conn {
        Conn(self.map(Socket::into))
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        either!(
            self,
            socket => socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidData.into()),
            memory => memory.local_addr(),
        )
    }

    pub(super) fn set_reuse_port(&self, reuse: bool) -> io::Result<()> {
        either!(
            self,
            socket => sys::socket::set_reuse_port(socket, reuse),
            memory => memory.set(|options| options.reuse_port = reuse),
        )
    }

    #[cfg(feature = "cluster")]
    pub(super) fn set_spread_port(&self) -> io::Result<()> {
        either!(
            self,
            socket => sys::socket::set_spread_port(socket),
            memory => memory.set(|options| options.reuse_port = true),
        )
    }

    pub(super) fn reuse_port(&self) -> io::Result<bool> {
        either!(
            self,
            socket => sys::socket::reuse_port(socket),
            memory => memory.get(|options| options.reuse_port),
        )
    }

    pub(super) fn reuse_address(&self) -> io::Result<bool> {
        either!(
            self,
            socket => socket.reuse_address(),
            memory => memory.get(|options| options.reuse_address),
        )
    }

    pub(super) fn set_reuse_address(&self, reuse: bool) -> io::Result<()> {
        either!(
            self,
            socket => socket.set_reuse_address(reuse),
            memory => memory.set(|options| options.reuse_address = reuse),
        )
    }

    pub(super) fn only_v6(&self) -> io::Result<bool> {
        either!(
            self,
            socket => socket.only_v6(),
            memory => memory.get(|options| options.only_v6),
        )
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        either!(self, socket => socket.take_error(), memory => memory.take_error())
    }

    pub(super) fn set_only_v6(&self, only: bool) -> io::Result<()> {
        either!(
            self,
            socket => socket.set_only_v6(only),
            memory => memory.set_only_v6(only),
        )
    }

    /// Returns the options that a connection has, too.
    pub(super) fn options(&self) -> StreamOptions<'_> {
        either!(
            self,
            socket => StreamOptions(Transport::Kernel(SockRef::from(socket))),
            memory => StreamOptions(Transport::Memory(memory.share())),
        )
    }
}

/// The socket of a [`TcpStream`](super::TcpStream). It is the type of what
/// [`readable`](super::TcpStream::readable) waits for, and has no use of its own.
///
/// # Examples
///
/// ```
/// use phaseloop::io::Readiness;
/// use phaseloop::net::{Conn, TcpStream};
///
/// fn readable(stream: &TcpStream) -> Readiness<'_, Conn> {
///     stream.readable()
/// }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
///     let stream = TcpStream::connect(listener.local_addr()?).await?;
///     drop(listener.accept()?); // EOF makes the stream readable
///     readable(&stream).await?;
///     Ok(())
/// }
/// ```
pub struct Conn(pub(super) Transport<net::TcpStream>);

impl Conn {
    pub(super) fn from_std(stream: net::TcpStream) -> Self {
        Self(Transport::Kernel(stream))
    }

    /// Puts the connection on the loop; see [`Source::new_stream`].
    pub(super) fn open(
        self,
        handle: &LoopHandle,
        can_write: bool,
        site: Site,
    ) -> io::Result<Source<Self>> {
        #[cfg(feature = "test-util")]
        if let Transport::Memory(memory) = &self.0 {
            let socket = memory.share();
            return socket.open(Source::in_memory(handle, self, site)?, can_write);
        }
        Source::new_stream(handle, self, can_write, site)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        either!(&self.0, socket => socket.local_addr(), memory => memory.local_addr())
    }

    pub(super) fn peer_addr(&self) -> io::Result<SocketAddr> {
        either!(&self.0, socket => socket.peer_addr(), memory => memory.peer_addr())
    }

    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        either!(&self.0, socket => socket.take_error(), memory => memory.take_error())
    }

    pub(super) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(&self.0, socket => socket.peek(buffer), memory => memory.peek(buffer))
    }

    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        either!(&self.0, socket => socket.shutdown(how), memory => memory.shutdown(how))
    }

    pub(super) fn options(&self) -> StreamOptions<'_> {
        either!(
            &self.0,
            socket => StreamOptions(Transport::Kernel(SockRef::from(socket))),
            memory => StreamOptions(Transport::Memory(memory.share())),
        )
    }
}

impl Read for &Conn {
    #[inline(always)]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(&self.0, socket => (&mut &*socket).read(buffer), memory => memory.read(buffer))
    }

    #[inline]
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        either!(
            &self.0,
            socket => (&mut &*socket).read_vectored(buffers),
            memory => memory.read_vectored(buffers),
        )
    }
}

impl Write for &Conn {
    #[inline(always)]
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        either!(&self.0, socket => (&mut &*socket).write(buffer), memory => memory.write(buffer))
    }

    #[inline]
    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        either!(
            &self.0,
            socket => (&mut &*socket).write_vectored(buffers),
            memory => memory.write_vectored(buffers),
        )
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(feature = "fs")]
impl super::send_file::Outlet for Conn {
    fn send_file(&self, file: &std::fs::File, offset: u64, length: usize) -> io::Result<usize> {
        either!(
            &self.0,
            socket => sys::send_file::send(socket, file, offset, length),
            _memory => Err(io::ErrorKind::Unsupported.into()),
        )
    }
}

impl sys::unfilled::Receive for Conn {
    #[inline(always)]
    fn receive(&self, memory: &mut [std::mem::MaybeUninit<u8>]) -> io::Result<usize> {
        either!(
            &self.0,
            socket => sys::unfilled::receive(socket, memory),
            socket => socket.receive_into(memory),
        )
    }
}

impl_as_source!(Conn, |this| this.0.kernel());

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Conn").field(&self.0).finish()
    }
}

/// The options of a connection, or of a socket that becomes one.
pub(super) struct StreamOptions<'a>(Transport<SockRef<'a>>);

impl StreamOptions<'_> {
    pub(super) fn nodelay(&self) -> io::Result<bool> {
        either!(&self.0, socket => socket.tcp_nodelay(), memory => memory.get(|options| options.nodelay))
    }

    pub(super) fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        either!(
            &self.0,
            socket => socket.set_tcp_nodelay(nodelay),
            memory => memory.set(|options| options.nodelay = nodelay),
        )
    }

    pub(super) fn keepalive(&self) -> io::Result<bool> {
        either!(&self.0, socket => socket.keepalive(), memory => memory.get(|options| options.keepalive))
    }

    pub(super) fn set_keepalive(&self, how: Option<&socket2::TcpKeepalive>) -> io::Result<()> {
        either!(
            &self.0,
            socket => match how {
                Some(how) => socket.set_tcp_keepalive(how),
                None => socket.set_keepalive(false),
            },
            memory => memory.set(|options| options.keepalive = how.is_some()),
        )
    }

    pub(super) fn linger(&self) -> io::Result<Option<Duration>> {
        either!(&self.0, socket => socket.linger(), memory => memory.get(|options| options.linger))
    }

    pub(super) fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        either!(
            &self.0,
            socket => socket.set_linger(linger),
            memory => memory.set(|options| options.linger = linger),
        )
    }

    /// Returns the type of service: that of IPv4, or the traffic class of IPv6.
    pub(super) fn tos(&self, is_v6: bool) -> io::Result<u32> {
        either!(
            &self.0,
            socket => sys::socket::tos(socket, is_v6),
            memory => memory.get(|options| options.tos),
        )
    }

    pub(super) fn set_tos(&self, tos: u32, is_v6: bool) -> io::Result<()> {
        either!(
            &self.0,
            socket => sys::socket::set_tos(socket, tos, is_v6),
            memory => memory.set(|options| options.tos = tos),
        )
    }

    pub(super) fn recv_buffer_size(&self) -> io::Result<usize> {
        either!(
            &self.0,
            socket => socket.recv_buffer_size(),
            memory => memory.get(|options| options.receive_buffer),
        )
    }

    pub(super) fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        either!(
            &self.0,
            socket => socket.set_recv_buffer_size(bytes),
            memory => memory.set(|options| options.receive_buffer = bytes),
        )
    }

    pub(super) fn send_buffer_size(&self) -> io::Result<usize> {
        either!(
            &self.0,
            socket => socket.send_buffer_size(),
            memory => memory.get(|options| options.send_buffer),
        )
    }

    pub(super) fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        either!(
            &self.0,
            socket => socket.set_send_buffer_size(bytes),
            memory => memory.set(|options| options.send_buffer = bytes),
        )
    }
}

/// The time to live of a stream and of a listener.
macro_rules! impl_ttl {
    ($type:ty) => {
        impl $type {
            pub(super) fn ttl(&self) -> io::Result<u32> {
                either!(&self.0, socket => socket.ttl(), memory => memory.get(|options| options.ttl))
            }

            pub(super) fn set_ttl(&self, ttl: u32) -> io::Result<()> {
                either!(&self.0, socket => socket.set_ttl(ttl), memory => memory.set_ttl(ttl))
            }
        }
    };
}

impl_ttl!(Conn);
impl_ttl!(Acceptor);

/// The socket of a [`TcpListener`](super::TcpListener).
pub(super) struct Acceptor(pub(super) Transport<net::TcpListener>);

impl Acceptor {
    pub(super) fn from_std(listener: net::TcpListener) -> Self {
        Self(Transport::Kernel(listener))
    }

    /// Puts the listener on the loop.
    pub(super) fn open(self, handle: &LoopHandle, site: Site) -> io::Result<Source<Self>> {
        #[cfg(feature = "test-util")]
        if let Transport::Memory(memory) = &self.0 {
            let socket = memory.share();
            return Ok(socket.attach(Source::in_memory(handle, self, site)?, false));
        }
        sys::socket::keep_reserve();
        Source::new_at(handle, self, Interest::Read, site)
    }

    /// Returns whether a short read of its connections proves that no more bytes have arrived.
    pub(super) fn is_tcp(&self) -> bool {
        either!(&self.0, socket => sys::socket::is_tcp(socket), _memory => false)
    }

    pub(super) fn accept(&self) -> io::Result<(Conn, SocketAddr)> {
        either!(
            &self.0,
            socket => {
                let (stream, peer) = sys::socket::accept(socket)?;
                Ok((Conn::from_std(stream), peer))
            },
            memory => {
                let (stream, peer) = memory.accept()?;
                Ok((Conn(Transport::Memory(stream)), peer))
            },
        )
    }

    /// Lets no further handshake begin. Returns whether it has an effect.
    #[cfg(feature = "cluster")]
    pub(super) fn hold_back(&self) -> bool {
        either!(&self.0, socket => sys::socket::hold_back(socket), _memory => false)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        either!(&self.0, socket => socket.local_addr(), memory => memory.local_addr())
    }
}

impl_as_source!(Acceptor, |this| this.0.kernel());
