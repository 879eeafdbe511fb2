//! TCP connections.

mod attempts;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{self, Shutdown, SocketAddr};
use std::panic::Location;
use std::time::Duration;

use socket2::Socket;

use super::connect::Connect;
use crate::io::Source;
use crate::label::Role;
use crate::net::address::ToAddresses;
use crate::net::transport::{Conn, Transport};
use crate::runtime::handle::{Close, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys;
use crate::sys::poller::impl_as_source;

/// A TCP connection.
///
/// Reads and writes go through the traits of `futures` ([`AsyncRead`](crate::io::AsyncRead),
/// [`AsyncWrite`](crate::io::AsyncWrite)), which are implemented for `TcpStream` and `&TcpStream`,
/// or through the `try_` methods, which never wait. One task at a time may wait to read through
/// these traits, and one to write.
///
/// Closing through `AsyncWrite` shuts down the writing direction and leaves the reading direction
/// open. Dropping the stream closes the connection.
///
/// # Cancel safety
///
/// A read or write whose future is dropped before it completes has no effect. The I/O traits do not
/// report such a drop to the stream: until the next event the stream counts as waited for, and
/// keeps the loop alive. [`readable`](Self::readable) with [`try_read`](Self::try_read), and
/// [`writable`](Self::writable) with [`try_write`](Self::try_write), stop counting at once.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let (mut server, _) = listener.accept().await?;
///     client.write_all(b"hello").await?;
///     client.close().await?; // the server gets EOF
///     let mut text = String::new();
///     server.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_tcp_t")]
pub struct TcpStream {
    source: Source<Conn>,
}

// One of these for each connection. A socket that may be in memory is larger.
#[cfg(all(target_pointer_width = "64", not(feature = "test-util")))]
const _: () = assert!(size_of::<TcpStream>() <= 6 * size_of::<usize>());

impl TcpStream {
    /// Connects to the first address of the target that accepts. The attempt starts when the
    /// returned future is awaited.
    ///
    /// The result is delivered in the poll phase; an error that is known at once, in the pending
    /// phase. A link-local IPv6 address without a scope uses the first interface that has a
    /// link-local address.
    ///
    /// # Errors
    ///
    /// The OS error of `connect` for the last address that was tried, which the error names;
    /// [`os_error`](crate::os_error) returns its number.
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a target that is neither an address nor a
    /// name with a port. The errors of [`lookup_host`](crate::net::lookup_host) for a name.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    ///
    /// # Panics
    ///
    /// When the future is awaited and no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    ///     let refused = TcpStream::connect("127.0.0.1:1").await.unwrap_err();
    ///     println!("{refused}"); // connect 127.0.0.1:1: Connection refused (os error 111)
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn connect(target: impl ToAddresses) -> impl Future<Output = io::Result<Self>> {
        Self::connect_at(target, Location::caller())
    }

    /// Connects on behalf of the caller at `site`.
    #[doc(hidden)]
    pub fn connect_at<T: ToAddresses>(
        target: T,
        site: Site,
    ) -> impl Future<Output = io::Result<Self>> {
        Connect::new(target, site)
    }

    /// Puts a socket on the loop that is connected, or being connected.
    pub(super) fn of_connect(
        handle: &LoopHandle,
        socket: Transport<Socket>,
        is_connected: bool,
        site: Site,
    ) -> io::Result<Self> {
        // A connecting socket becomes writable with the next event, not before.
        let is_in_kernel = !socket.is_in_memory();
        let source = socket.into_conn().open(handle, is_connected, site)?;
        Ok(Self {
            source: source
                .with_short_as_drained(is_in_kernel)
                .with_role(Role::Connected),
        })
    }

    pub(super) fn source(&self) -> &Source<Conn> {
        &self.source
    }

    pub(in crate::net) fn from_source(source: Source<Conn>) -> Self {
        Self { source }
    }

    pub(in crate::net) fn into_source(self) -> Source<Conn> {
        self.source
    }

    /// Puts a connected stream on the loop. It may be of another protocol than TCP if its owner
    /// says so.
    pub(in crate::net) fn register(
        handle: &LoopHandle,
        stream: Conn,
        is_tcp: bool,
        role: Role,
        site: Site,
    ) -> io::Result<Self> {
        let source = stream.open(handle, true, site)?;
        Ok(Self {
            source: source.with_short_as_drained(is_tcp).with_role(role),
        })
    }

    /// Registers a connected stream of the standard library with the running loop, in non-blocking
    /// mode.
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
    /// use phaseloop::net::TcpStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let stream = TcpStream::from_std(stream)?;
    ///     stream.try_write(b"hello")?;
    ///     stream.into_std().set_nonblocking(false)?; // blocking again
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let is_tcp = sys::socket::is_tcp(&stream);
        let (handle, site) = (LoopHandle::current(), Location::caller());
        handle
            .core()
            .waits
            .note_outside("a socket of the standard library", site);
        Self::register(&handle, Conn::from_std(stream), is_tcp, Role::Unknown, site)
    }

    /// Deregisters the stream and returns it. It stays in non-blocking mode.
    ///
    /// # Panics
    ///
    /// If the stream is on a network in memory, which only a test has.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::TcpStream;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    ///     let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let stream = TcpStream::from_std(stream)?;
    ///     stream.try_write(b"hello")?;
    ///     stream.into_std().set_nonblocking(false)?; // blocking again
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn into_std(self) -> net::TcpStream {
        self.source.into_inner().0.into_kernel()
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
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, peer) = listener.accept().await?;
    ///     assert_eq!(client.local_addr()?, peer);
    ///     assert_eq!(server.peer_addr()?, peer);
    ///     Ok(())
    /// }
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().local_addr()
    }

    /// Returns the address of the peer.
    ///
    /// # Errors
    ///
    /// Any OS error of `getpeername`: [`NotConnected`](io::ErrorKind::NotConnected) once the
    /// connection is gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, peer) = listener.accept().await?;
    ///     assert_eq!(client.local_addr()?, peer);
    ///     assert_eq!(server.peer_addr()?, peer);
    ///     Ok(())
    /// }
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.get_ref().peer_addr()
    }

    /// Returns whether the loop knows that the peer has closed both directions.
    #[doc(hidden)]
    pub fn is_hung_up(&self) -> bool {
        self.source.is_hung_up()
    }

    /// Sends a range of a file, without a copy where the OS can: `sendfile` on Linux, macOS,
    /// FreeBSD and DragonFly. Elsewhere, and on a network in memory, the bytes are copied in
    /// pieces.
    ///
    /// The future returns the number of bytes sent: fewer than the range has if the file ends
    /// before it, also if it is truncated meanwhile. The position of the file does not move, and
    /// writes that the file has accepted before are sent, too.
    ///
    /// Bytes in the page cache are sent by the loop's thread, at most 1 MiB before a poll phase
    /// runs. For others a job of the pool reads them first, so that no send waits for a disk. Linux
    /// reports what is cached; on other systems every piece is read by a job.
    ///
    /// Write what precedes the bytes, such as a header, before. Only one task at a time should
    /// write.
    ///
    /// A peer that is gone is an error, as for a write. `sendfile` can also raise `SIGPIPE` then,
    /// which programs of Rust ignore; a program whose `main` is in another language has to.
    ///
    /// # Errors
    ///
    /// Any OS error of sending, and of reading the file, with the path of the file.
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a range that ends before it starts.
    /// [`SendFile::sent`](crate::net::SendFile::sent) is how much was sent before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future sends no more. [`SendFile::sent`](crate::net::SendFile::sent) is exact
    /// at any time: sending can go on from there.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::fs::File;
    /// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (mut server, _) = listener.accept().await?;
    ///     let file = File::open("Cargo.toml").await?;
    ///     server.write_all(b"here it is: ").await?;
    ///     assert_eq!(server.send_file(&file, 1..8).await?, 7);
    ///     drop(server);
    ///     let mut text = String::new();
    ///     client.read_to_string(&mut text).await?;
    ///     assert_eq!(text, "here it is: package");
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "fs")]
    pub fn send_file<'a>(
        &'a self,
        file: &'a crate::fs::File,
        range: impl std::ops::RangeBounds<u64>,
    ) -> crate::net::SendFile<'a> {
        crate::net::send_file::send_file(&self.source, file, range)
    }

    /// Shuts down one direction or both.
    ///
    /// # Errors
    ///
    /// [`NotConnected`](io::ErrorKind::NotConnected) if the peer is gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::net::Shutdown;
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (mut server, _) = listener.accept().await?;
    ///     client.shutdown(Shutdown::Write)?;
    ///     assert_eq!(server.read(&mut [0; 8]).await?, 0); // EOF
    ///     server.try_write(b"the other direction is open")?;
    ///     Ok(())
    /// }
    /// ```
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.get_ref().shutdown(how)?;
        if how != Shutdown::Write {
            self.source.note_end_of_reading();
        }
        Ok(())
    }

    /// Closes the connection at once. The close completes in the closing phase; see [`Close`].
    ///
    /// `close` is the method of `AsyncWriteExt` that shuts down the writing direction.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     stream.close_now().await; // the closing phase has run
    ///     Ok(())
    /// }
    /// ```
    pub fn close_now(self) -> Close {
        self.source.close()
    }

    /// Closes the connection with a reset: unsent data is discarded, and the peer gets an error in
    /// place of EOF.
    ///
    /// # Errors
    ///
    /// Any OS error of `setsockopt(SO_LINGER)`. The connection is closed in any case.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (mut server, _) = listener.accept().await?;
    ///     client.reset()?.await;
    ///     let error = server.read(&mut [0; 8]).await.unwrap_err();
    ///     assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    ///     Ok(())
    /// }
    /// ```
    pub fn reset(self) -> io::Result<Close> {
        let prepared = self.set_linger(Some(Duration::ZERO));
        let close = self.close_now();
        prepared.map(|()| close)
    }

    /// Returns the socket of the standard library, for options without a method here.
    ///
    /// # Panics
    ///
    /// If the stream is on a network in memory, which only a test has.
    #[must_use]
    pub fn get_ref(&self) -> &net::TcpStream {
        self.source.get_ref().0.kernel()
    }
}

impl_async_stream!(TcpStream);
impl_readiness!(TcpStream, Conn, poll_read_ready, poll_write_ready);
impl_as_source!(TcpStream, |this| this.get_ref());

impl_handle!(TcpStream, |this| this.source.handle_core());

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("local", &self.local_addr().ok())
            .field("peer", &self.peer_addr().ok())
            .finish_non_exhaustive()
    }
}
