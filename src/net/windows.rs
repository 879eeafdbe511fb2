//! Named pipes: local connections between processes. Windows only.
//!
//! A name looks like `\\.\pipe\name`. A connection carries bytes in both directions. It has no
//! direction of its own that could be shut down: the peer gets EOF when the stream is closed.
//!
//! The pipes work by overlapped operations of the kernel, whose completion is an event of the poll
//! phase.
//!
//! # Examples
//!
//! ```no_run
//! use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
//! use phaseloop::net::windows::{NamedPipeListener, NamedPipeStream};
//!
//! #[phaseloop::main]
//! async fn main() -> std::io::Result<()> {
//!     let listener = NamedPipeListener::bind(r"\\.\pipe\example")?;
//!     let mut client = NamedPipeStream::connect(r"\\.\pipe\example").await?;
//!     let mut server = listener.accept().await?;
//!     client.write_all(b"hello").await?;
//!     drop(client);
//!     let mut text = String::new();
//!     server.read_to_string(&mut text).await?;
//!     assert_eq!(text, "hello");
//!     Ok(())
//! }
//! ```

use std::fmt;
use std::future::Future;
use std::io;
use std::os::windows::io::{AsSocket, BorrowedSocket};
use std::panic::Location;
use std::path::Path;
use std::task::{Context, Poll};

use super::accept::{self, Accept, Accepted, Accepts};
use super::detached::Detached;
use crate::blocking::Work;
use crate::error::OsError;
use crate::event_loop::ledger::jobs::Purpose;
use crate::io::bytes::{impl_async_read, impl_async_write};
use crate::io::{Readiness, Source};
use crate::pool::Class;
use crate::runtime::handle::{Close, impl_handle, sealed};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::pipe::{PipeEnd, PipeListener, drain, open, wait_for_instance};
use crate::sys::poller::Interest;

/// Accepts connections to a named pipe of this machine.
///
/// The name is free again when the listener and all its connections are closed. Each turn accepts
/// at most one connection, as [`TcpListener`](super::TcpListener) does.
pub struct NamedPipeListener {
    source: Source<PipeListener>,
    accepted: Accepted,
}

impl NamedPipeListener {
    /// Creates a named pipe and listens on it. Clients of other machines are refused.
    ///
    /// # Errors
    ///
    /// [`AddrInUse`](io::ErrorKind::AddrInUse) if the name is taken,
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) and other OS errors of `CreateNamedPipe`. The
    /// error includes the name.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn bind(name: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind_at(name.as_ref(), Location::caller())
    }

    /// Binds on behalf of the caller at `site`.
    #[doc(hidden)]
    #[track_caller]
    pub fn bind_at(name: &Path, site: Site) -> io::Result<Self> {
        let handle = LoopHandle::current();
        let source = PipeListener::new(name)
            .and_then(|listener| Source::new_at(&handle, listener, Interest::Read, site))
            .map_err(|error| OsError::wrap(error, "bind", name.to_owned()))?;
        Ok(Self {
            source,
            accepted: Accepted::default(),
        })
    }

    /// Accepts a connection. It waits in the poll phase, once the returned future is awaited.
    ///
    /// # Errors
    ///
    /// Any OS error of `ConnectNamedPipe` and `CreateNamedPipe`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no connection was accepted.
    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = io::Result<NamedPipeStream>> {
        self.accept_at(Location::caller())
    }

    /// Accepts on behalf of the caller at `site`.
    #[doc(hidden)]
    pub fn accept_at(&self, site: Site) -> impl Future<Output = io::Result<NamedPipeStream>> {
        Accept::new(self, site)
    }

    /// Polls [`accept`](Self::accept). The listener keeps the waker of the last call, so that a
    /// caller which keeps no future is woken when a connection arrives.
    ///
    /// # Errors
    ///
    /// The errors of [`accept`](Self::accept).
    #[track_caller]
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<NamedPipeStream>> {
        accept::poll_accept(self, Location::caller(), cx)
    }

    /// Returns whether the listener rests after an error that stays.
    #[doc(hidden)]
    pub fn is_resting(&self) -> bool {
        self.accepted.is_resting()
    }

    /// The name of the pipe.
    #[must_use]
    pub fn name(&self) -> &Path {
        self.source.get_ref().name()
    }

    /// Closes the listener at once. The close completes in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl Accepts for NamedPipeListener {
    type Socket = PipeListener;
    type Raw = PipeEnd;
    type Connection = NamedPipeStream;

    fn parts(&self) -> (&Source<PipeListener>, &Accepted) {
        (&self.source, &self.accepted)
    }

    fn accept_raw(socket: &PipeListener) -> io::Result<PipeEnd> {
        socket.accept()
    }

    fn open(&self, end: PipeEnd, site: Site) -> io::Result<NamedPipeStream> {
        let handle = crate::runtime::handle::Handle::event_loop(self);
        NamedPipeStream::register(&handle, end, site)
    }
}

impl_handle!(NamedPipeListener, |this| this.source.handle_core());

impl fmt::Debug for NamedPipeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedPipeListener")
            .field(&self.source)
            .finish()
    }
}

/// A connection over a named pipe.
///
/// `NamedPipeStream` and `&NamedPipeStream` implement [`AsyncRead`](crate::io::AsyncRead) and
/// [`AsyncWrite`](crate::io::AsyncWrite). Reads and writes are those of
/// [`PipeReader`](crate::io::PipeReader) and [`PipeWriter`](crate::io::PipeWriter): a write
/// completes when the kernel has the bytes in hand, and `flush` waits until they are in the pipe.
/// Closing through `AsyncWrite` flushes; dropping closes the stream and delivers what was written.
pub struct NamedPipeStream {
    source: Source<PipeEnd>,
}

impl NamedPipeStream {
    /// Connects to a named pipe when the returned future is awaited.
    ///
    /// If all instances of the pipe are taken, it waits for one, with jobs of the pool.
    ///
    /// # Errors
    ///
    /// [`NotFound`](io::ErrorKind::NotFound) if no listener has the name,
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) and any other OS error of
    /// `CreateFile`. The error includes the name.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    ///
    /// # Panics
    ///
    /// When the future is awaited and no loop runs on this thread.
    #[track_caller]
    pub fn connect(name: impl AsRef<Path>) -> impl Future<Output = io::Result<Self>> {
        Self::connect_at(name, Location::caller())
    }

    /// Connects on behalf of the caller at `site`.
    #[doc(hidden)]
    pub async fn connect_at(name: impl AsRef<Path>, site: Site) -> io::Result<Self> {
        let handle = LoopHandle::current_for("net::windows::NamedPipeStream::connect", Some(site));
        let name = name.as_ref();
        loop {
            let error = match open(name).and_then(|end| Self::register(&handle, end, site)) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if error.kind() != io::ErrorKind::WouldBlock {
                crate::phase::pending().await;
                return Err(OsError::wrap(error, "connect", name.to_owned()));
            }
            let purpose = Purpose::new(Class::Fs, "connect").at(site);
            let name = name.to_owned();
            Work::submit(&handle, purpose, move || wait_for_instance(&name))?.await;
        }
    }

    fn register(handle: &LoopHandle, end: PipeEnd, site: Site) -> io::Result<Self> {
        let source = Source::new_stream(handle, end, true, site)?;
        Ok(Self { source })
    }

    /// Waits until the stream is readable: data, EOF or an error.
    ///
    /// Dropping the returned future loses no data.
    pub fn readable(&self) -> Readiness<'_, PipeEnd> {
        self.source.readable()
    }

    /// Waits until the stream is writable, or has an error.
    pub fn writable(&self) -> Readiness<'_, PipeEnd> {
        self.source.writable()
    }

    /// Reads without waiting; 0 is EOF.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is nothing to read; otherwise any OS
    /// error of `ReadFile`.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read(buffer)
    }

    /// Writes without waiting, and returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) while earlier bytes are on their way; otherwise
    /// any OS error of `WriteFile`.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.source.try_write(bytes)
    }

    /// Returns a future of the moment when the peer has read all that was written. A thread of the
    /// pool waits for it.
    #[doc(hidden)]
    pub fn drained(&self) -> io::Result<impl Future<Output = io::Result<()>> + use<>> {
        let core = sealed::Sealed::handle_core(self);
        let pipe = self.source.get_ref().duplicate()?;
        let purpose = Purpose::new(Class::Fs, "shutdown").at(core.header.site);
        Work::submit(&core.handle, purpose, move || drain(&pipe))
    }

    /// Closes the stream at once. The close completes in the closing phase; see [`Close`].
    pub fn close_now(self) -> Close {
        self.source.close()
    }
}

impl_async_read!(NamedPipeStream);
impl_async_write!(NamedPipeStream, |_stream| Ok(()), |_stream| Ok(()));
impl_handle!(NamedPipeStream, |this| this.source.handle_core());

impl fmt::Debug for NamedPipeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedPipeStream")
            .field(&self.source)
            .finish()
    }
}

/// The handle of the socket.
///
/// # Panics
///
/// `as_socket` panics for a socket in memory, which only a test has.
impl<T> AsSocket for Detached<T> {
    fn as_socket(&self) -> BorrowedSocket<'_> {
        self.lend()
    }
}
