//! TCP connections.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{self, Shutdown, SocketAddr};
use std::panic::Location;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::address::{ToAddresses, first_of};
use super::options::{Keepalive, set_keepalive};
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::io::{Duplex, Readiness, Source};
use crate::kinds::Site;
use crate::phase;
use crate::sys;

/// Implements the traits of `futures` for a socket and for references to it. Closing ends the writing direction.
macro_rules! impl_async_stream {
    ($stream:ty) => {
        crate::io::bytes::impl_async_read!($stream);
        crate::io::bytes::impl_async_write!(
            $stream,
            |stream| crate::net::stream::end_writing(stream),
            |stream| crate::net::stream::end_writing(stream)
        );

        impl crate::io::Duplex for $stream {
            fn shutdown_write(&self) -> std::io::Result<()> {
                self.shutdown(std::net::Shutdown::Write)
            }
        }
    };
}

/// Ends the writing direction; reading goes on. A peer that is gone need not be told that nothing more will come.
pub(super) fn end_writing(stream: &impl Duplex) -> io::Result<()> {
    match stream.shutdown_write() {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// A TCP connection.
///
/// Reads and writes go through the traits of `futures` ([`AsyncRead`](crate::io::AsyncRead),
/// [`AsyncWrite`](crate::io::AsyncWrite)), which are implemented for `TcpStream` and `&TcpStream`, or through the `try_`
/// methods, which never wait. One task at a time may wait to read through these traits, and one to write.
///
/// Closing through `AsyncWrite` ends the writing direction and leaves the other open; dropping the stream closes it.
///
/// # Cancel safety
///
/// A read or write that was given up has not happened. Given up through the traits it cannot be told from one that is only
/// slow: until the next event or the stream's end it still counts as somebody who waits, and keeps the loop alive.
/// [`readable`](Self::readable) with [`try_read`](Self::try_read), and [`writable`](Self::writable) with
/// [`try_write`](Self::try_write), leave nothing behind.
pub struct TcpStream {
    source: Source<net::TcpStream>,
}

impl TcpStream {
    /// Connects to the first of the target's addresses that answers. Nothing is done before the returned future is awaited.
    ///
    /// The result comes in the poll phase; a refusal that is known at once, in the pending phase. A link-local IPv6 address
    /// without a scope is looked for on the first interface that has such addresses.
    ///
    /// # Errors
    ///
    /// That of the last address that was tried, which it names; [`os_error`](crate::os_error) finds the system's number.
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is no
    /// address; what looking up a name reports.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket: nothing stays connected.
    ///
    /// # Panics
    ///
    /// When it is awaited where no loop runs.
    #[track_caller]
    pub fn connect(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        Self::connect_at(target, Location::caller())
    }

    /// The same for the line `site`.
    pub(crate) async fn connect_at(target: impl ToAddresses, site: Site) -> io::Result<Self> {
        first_of("connect", target, async move |address| {
            let domain = Domain::for_address(address);
            let socket = sys::socket::socket(domain, Type::STREAM, Some(Protocol::TCP))?;
            Self::connect_socket(socket, address, site).await
        })
        .await
    }

    /// Connects a socket that was made before.
    pub(super) async fn connect_socket(
        socket: Socket,
        address: SocketAddr,
        site: Site,
    ) -> io::Result<Self> {
        let handle = LoopHandle::current_for(site);
        let address = sys::socket::fill_scope(address);
        let at_once = match sys::socket::connect(&socket, &SockAddr::from(address)) {
            Ok(at_once) => at_once,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // As late as if the peer had been asked (R165).
                phase::pending().await;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        // A socket that is not connected yet is writable only when the next event says so.
        let source = Source::new_stream(&handle, socket.into(), at_once, site)?;
        let stream = Self {
            source: source.with_short_as_drained(true),
        };
        if !at_once {
            stream.source.writable().await?;
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
        }
        Ok(stream)
    }

    /// Puts a connected stream on the loop. It may be of another protocol than TCP if its owner says so.
    pub(super) fn register(
        handle: &LoopHandle,
        stream: net::TcpStream,
        is_tcp: bool,
        site: Site,
    ) -> io::Result<Self> {
        let source = Source::new_stream(handle, stream, true, site)?;
        Ok(Self {
            source: source.with_short_as_drained(is_tcp),
        })
    }

    /// Puts a connected stream of the standard library on the running loop. It is made non-blocking.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let is_tcp = sys::socket::is_tcp(&stream);
        Self::register(&LoopHandle::current(), stream, is_tcp, Location::caller())
    }

    /// Takes the stream off the loop. It stays non-blocking.
    #[must_use]
    pub fn into_std(self) -> net::TcpStream {
        self.source.into_inner()
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.get_ref().local_addr()
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// The system's: [`NotConnected`](io::ErrorKind::NotConnected) once the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.get_ref().peer_addr()
    }

    /// Waits until there is something to read, the end, or an error.
    pub fn readable(&self) -> Readiness<'_, net::TcpStream> {
        self.source.readable()
    }

    /// Waits until there is room to write, or an error.
    pub fn writable(&self) -> Readiness<'_, net::TcpStream> {
        self.source.writable()
    }

    /// Reads what is there; 0 is the end.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing now, else the system's.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read_bytes(buffer)
    }

    /// Reads what is there into several buffers; see [`try_read`](Self::try_read).
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.try_read_buffers(buffers)
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none now, else the system's:
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) or [`ConnectionReset`](io::ErrorKind::ConnectionReset) when the peer is gone.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write_bytes(buffer)
    }

    /// Writes from several buffers; see [`try_write`](Self::try_write).
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.try_write_buffers(buffers)
    }

    /// Reads without taking: the next read gets the same bytes.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read_with(|stream| stream.peek(buffer)).await
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) when the peer is gone.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.get_ref().shutdown(how)
    }

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.get_ref().nodelay()
    }

    /// Sends small writes at once instead of gathering them.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.get_ref().set_nodelay(nodelay)
    }

    /// Probes the peer when the connection is silent; `None` does not.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for times below a second or no retries, else the system's.
    pub fn set_keepalive(&self, keepalive: Option<Keepalive>) -> io::Result<()> {
        set_keepalive(&self.options(), keepalive)
    }

    /// Whether the peer is probed when the connection is silent.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn keepalive(&self) -> io::Result<bool> {
        self.options().keepalive()
    }

    /// What closing does with bytes that are not yet sent: `None` leaves them to the system, zero drops them with a reset.
    /// Any other time lets the close, and so the loop, block until they are sent or the time is over.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.options().set_linger(linger)
    }

    /// What [`set_linger`](Self::set_linger) has set.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.options().linger()
    }

    /// How many hops packets may take.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn ttl(&self) -> io::Result<u32> {
        self.get_ref().ttl()
    }

    /// Sets how many hops packets may take, 1 to 255.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.get_ref().set_ttl(ttl)
    }

    /// The size of the system's buffer for what was received. Linux reports twice what was set.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn recv_buffer_size(&self) -> io::Result<usize> {
        self.options().recv_buffer_size()
    }

    /// Sets the size of the system's buffer for what was received.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_recv_buffer_size(bytes)
    }

    /// The size of the system's buffer for what is to be sent. Linux reports twice what was set.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn send_buffer_size(&self) -> io::Result<usize> {
        self.options().send_buffer_size()
    }

    /// Sets the size of the system's buffer for what is to be sent.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.options().set_send_buffer_size(bytes)
    }

    /// Takes the error that the system keeps for the socket, if any.
    ///
    /// # Errors
    ///
    /// The system's, when it cannot be asked.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.get_ref().take_error()
    }

    /// Closes the connection at once, both directions, and has that reported in the closing phase; see [`Close`].
    ///
    /// Not named `close`: that is the name under which `AsyncWriteExt` ends the writing direction.
    pub fn close_now(self) -> Close {
        self.source.close()
    }

    /// Closes the connection with a reset: what is not yet sent is dropped, and the peer sees an error instead of the end.
    ///
    /// # Errors
    ///
    /// The system's; the connection is closed all the same.
    pub fn reset(self) -> io::Result<Close> {
        let prepared = self.set_linger(Some(Duration::ZERO));
        let close = self.close_now();
        prepared.map(|()| close)
    }

    /// The socket itself, for options that have no method here.
    #[must_use]
    pub fn get_ref(&self) -> &net::TcpStream {
        self.source.get_ref()
    }

    fn options(&self) -> SockRef<'_> {
        SockRef::from(self.get_ref())
    }
}

impl_async_stream!(TcpStream);

impl Handle for TcpStream {}

impl sealed::Sealed for TcpStream {
    fn handle_core(&self) -> &HandleCore {
        self.source.handle_core()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .finish_non_exhaustive()
    }
}
