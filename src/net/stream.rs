//! TCP connections.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};

use super::address::{ToAddresses, resolve};
use super::options::{Keepalive, set_keepalive};
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::event_loop::sources::Direction;
use crate::io::{Readiness, Source};
use crate::phase;
use crate::sys;

/// Implements the traits of `futures` for a stream and for references to it, by its poll functions.
macro_rules! impl_async_stream {
    ($stream:ty) => {
        impl_async_stream!(@one $stream, |this| &*this);
        impl_async_stream!(@one &$stream, |this| &**this);

        impl crate::io::Duplex for $stream {
            fn shutdown_write(&self) -> std::io::Result<()> {
                self.shutdown(std::net::Shutdown::Write)
            }
        }
    };
    (@one $type:ty, |$this:ident| $stream:expr) => {
        impl futures_io::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_read_bytes(cx, buffer)
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_read_buffers(cx, buffers)
            }
        }

        impl futures_io::AsyncWrite for $type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffer: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_write_bytes(cx, buffer)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_write_buffers(cx, buffers)
            }

            /// There is no buffer between the caller and the system.
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            /// Ends the writing direction; reading goes on.
            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                std::task::Poll::Ready(crate::net::stream::end_writing(
                    ($stream).shutdown(std::net::Shutdown::Write),
                ))
            }
        }
    };
}
pub(super) use impl_async_stream;

/// A peer that is gone need not be told that nothing more will come.
pub(super) fn end_writing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}

/// How many buffers one call takes (R155). Fewer on some systems, where a short call says nothing anyway.
const BUFFERS_PER_CALL: usize = 1024;

/// How many bytes a call with these buffers moves if nothing but the stream cuts it short.
fn bytes_of(lengths: impl Iterator<Item = usize>) -> usize {
    lengths
        .take(BUFFERS_PER_CALL)
        .fold(0, usize::saturating_add)
}

/// A stream source's reads and writes, for whatever kind of stream.
pub(super) trait StreamSource {
    fn poll_read_bytes(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;
    fn poll_read_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>>;
    fn poll_write_bytes(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>>;
    fn poll_write_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;
    fn try_read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn try_read_buffers(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    fn try_write_bytes(&self, buffer: &[u8]) -> io::Result<usize>;
    fn try_write_buffers(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize>;
}

impl<T: crate::io::AsSource> StreamSource for Source<T>
where
    for<'a> &'a T: Read + Write,
{
    fn poll_read_bytes(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Read, cx, buffer.len(), |mut io| io.read(buffer))
    }

    fn poll_read_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.poll_bytes(Direction::Read, cx, asked, |mut io| {
            io.read_vectored(buffers)
        })
    }

    fn poll_write_bytes(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Write, cx, buffer.len(), |mut io| {
            io.write(buffer)
        })
    }

    fn poll_write_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.poll_bytes(Direction::Write, cx, asked, |mut io| {
            io.write_vectored(buffers)
        })
    }

    fn try_read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_bytes(Direction::Read, buffer.len(), |mut io| io.read(buffer))
    }

    fn try_read_buffers(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.try_bytes(Direction::Read, asked, |mut io| io.read_vectored(buffers))
    }

    fn try_write_bytes(&self, buffer: &[u8]) -> io::Result<usize> {
        self.try_bytes(Direction::Write, buffer.len(), |mut io| io.write(buffer))
    }

    fn try_write_buffers(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.try_bytes(Direction::Write, asked, |mut io| io.write_vectored(buffers))
    }
}

/// A TCP connection.
///
/// Reads and writes go through the traits of `futures` ([`AsyncRead`](futures_io::AsyncRead),
/// [`AsyncWrite`](futures_io::AsyncWrite)), which are implemented for `TcpStream` and `&TcpStream`, or through the `try_`
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
    /// Connects to the first of the target's addresses that answers.
    ///
    /// The result comes in the poll phase; a refusal that is known at once, in the pending phase.
    ///
    /// # Errors
    ///
    /// That of the last address that was tried; [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is no
    /// address; what looking up a name reports.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket: nothing stays connected.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub async fn connect(target: impl ToAddresses) -> io::Result<Self> {
        let mut last = None;
        for address in resolve(target).await? {
            match Self::connect_to(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("there is at least one address"))
    }

    async fn connect_to(address: SocketAddr) -> io::Result<Self> {
        let socket = sys::socket::socket(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        Self::connect_socket(&LoopHandle::current(), socket, address).await
    }

    /// Connects a socket that was made before.
    pub(super) async fn connect_socket(
        handle: &LoopHandle,
        socket: Socket,
        address: SocketAddr,
    ) -> io::Result<Self> {
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
        let source = Source::new_stream(handle, socket.into(), at_once)?;
        let stream = Self { source };
        if !at_once {
            stream.source.writable().await?;
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
        }
        Ok(stream)
    }

    #[track_caller]
    pub(super) fn register(handle: &LoopHandle, stream: net::TcpStream) -> io::Result<Self> {
        let source = Source::new_stream(handle, stream, true)?;
        Ok(Self { source })
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
        Self::register(&LoopHandle::current(), stream)
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
