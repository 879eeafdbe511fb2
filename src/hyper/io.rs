//! hyper's I/O traits.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};
use hyper::rt::{self, ReadBufCursor};

use super::link::Link;
use crate::local::Local;
use crate::net;
use crate::sys::unfilled::fill_hyper;

/// Implements hyper's I/O traits for a stream with the I/O traits of `futures`.
///
/// It holds the stream in a [`Local`], so it is `Send`: connections can be upgraded
/// (`with_upgrades`), and crates that ask for `Send` connections take it, such as hyper-util's
/// client and tonic's `Channel`. The sockets of this crate receive straight into hyper's memory.
/// For other streams, such as TLS, the first read allocates a buffer of 8 KiB.
///
/// Set [`set_nodelay`](net::TcpStream::set_nodelay) on a TCP stream first: otherwise small answers
/// wait for the acknowledgement of the previous one, up to 40 milliseconds. [`serve`](super::serve)
/// and [`Connector`](super::Connector) set it.
///
/// # Panics
///
/// Every use on another thread than its own panics. A drop on another thread sends the stream home.
///
/// # Examples
///
/// After `cargo add hyper --features client`:
///
/// ```no_run
/// use hyper::{Request, client::conn::http1::handshake};
/// use phaseloop::{hyper::HyperIo, net::TcpStream, spawn};
///
/// #[phaseloop::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let stream = TcpStream::connect("example.com:80").await?;
///     stream.set_nodelay(true)?;
///     let (mut sender, connection) = handshake(HyperIo::new(stream)).await?;
///     spawn(connection).detach();
///     let request = Request::get("/").header("host", "example.com");
///     let answer = sender.send_request(request.body(String::new())?).await?;
///     println!("{}", answer.status());
///     Ok(())
/// }
/// ```
pub struct HyperIo<S: 'static> {
    wire: Local<Wire<S>>,
}

/// What lives on the loop's thread.
struct Wire<S> {
    stream: S,
    /// A buffer for reads of streams that need initialised memory, which hyper does not lend.
    buffer: Box<[u8]>,
    /// Bytes that were read to find the version of HTTP, and that hyper has to read again.
    early: Vec<u8>,
    /// If a server watches the connection.
    link: Option<Rc<Link>>,
}

/// The size of hyper's first read.
const BUFFER: usize = 8 * 1024;

/// A head and a body that are shorter than this together are sent as one buffer: the copy takes
/// less time than the kernel needs for the second buffer.
const SMALL: usize = 1024;

impl<S> HyperIo<S> {
    /// Wraps a stream.
    #[track_caller]
    pub fn new(stream: S) -> Self {
        Self::with_link(stream, None)
    }

    /// Wraps the stream of a connection that a server watches.
    #[track_caller]
    pub(super) fn with_link(stream: S, link: Option<Rc<Link>>) -> Self {
        let wire = Wire {
            stream,
            buffer: Box::default(),
            early: Vec::new(),
            link,
        };
        Self {
            wire: Local::new(wire),
        }
    }

    /// Lets the next reads return these bytes first.
    pub(super) fn put_back(&mut self, bytes: &[u8])
    where
        S: Unpin,
    {
        self.wire.early.splice(..0, bytes.iter().copied());
    }

    /// Returns the stream.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.wire.stream
    }

    /// Returns the stream.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    #[must_use]
    pub fn get_mut(&mut self) -> &mut S
    where
        S: Unpin,
    {
        &mut self.wire.stream
    }

    /// Unwraps the stream.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    #[must_use]
    pub fn into_inner(self) -> S
    where
        S: Unpin,
    {
        self.wire.into_inner().stream
    }
}

impl<S: AsyncRead + Unpin> rt::Read for HyperIo<S> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let wire = &mut *self.wire;
        if !wire.early.is_empty() {
            read_early(&mut wire.early, cursor);
            return Poll::Ready(Ok(()));
        }
        let read = ready!(wire.poll_read(cx, cursor))?;
        if let (Some(link), true) = (&wire.link, read) {
            link.has_read();
        }
        Poll::Ready(Ok(()))
    }
}

fn read_early(early: &mut Vec<u8>, mut cursor: ReadBufCursor<'_>) {
    let count = early.len().min(cursor.remaining());
    cursor.put_slice(&early[..count]);
    early.drain(..count);
}

impl<S: AsyncRead + Unpin + 'static> Wire<S> {
    /// Reads, and returns whether there were bytes.
    #[inline]
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<bool>> {
        let room = cursor.remaining();
        let mut is_socket = true;
        let received = fill_hyper(&mut cursor, |unfilled| {
            let received = net::poll_receive(&mut self.stream, cx, unfilled);
            received.unwrap_or_else(|| {
                is_socket = false;
                Poll::Pending
            })
        });
        if !is_socket {
            return self.poll_copied(cx, cursor);
        }
        ready!(received)?;
        Poll::Ready(Ok(cursor.remaining() < room))
    }

    /// Reads into the buffer, and copies into hyper's memory.
    fn poll_copied(
        &mut self,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<bool>> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER].into_boxed_slice();
        }
        let room = cursor.remaining().min(self.buffer.len());
        let buffer = &mut self.buffer[..room];
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        cursor.put_slice(&buffer[..read]);
        Poll::Ready(Ok(read > 0))
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    /// Reports to the server whether the peer takes bytes.
    #[inline]
    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        if let Some(link) = &self.link {
            match written {
                Poll::Ready(_) => link.has_written(),
                Poll::Pending => link.write_waits(),
            }
        }
    }

    #[inline]
    fn poll_write(&mut self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buffer);
        self.note_write(&written);
        written
    }

    /// Writes all buffers as one.
    fn poll_write_joined(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut joined = [0; SMALL];
        let mut length = 0;
        for buffer in buffers {
            joined[length..][..buffer.len()].copy_from_slice(buffer);
            length += buffer.len();
        }
        self.poll_write(cx, &joined[..length])
    }
}

impl<S: AsyncWrite + Unpin> rt::Write for HyperIo<S> {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, buffer)
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire.stream).poll_close(cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    #[inline]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wire = &mut *self.wire;
        if let [buffer] = buffers {
            return wire.poll_write(cx, buffer);
        }
        let total = buffers.iter().map(|buffer| buffer.len());
        if total.fold(0, usize::saturating_add) <= SMALL {
            return wire.poll_write_joined(cx, buffers);
        }
        let written = Pin::new(&mut wire.stream).poll_write_vectored(cx, buffers);
        wire.note_write(&written);
        written
    }
}

impl<S: fmt::Debug> fmt::Debug for HyperIo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = self.wire.try_get().map(|wire| &wire.stream);
        f.debug_struct("HyperIo")
            .field("stream", &stream)
            .finish_non_exhaustive()
    }
}
