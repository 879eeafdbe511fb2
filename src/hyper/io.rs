//! hyper's I/O traits.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_lite::io::{AsyncRead, AsyncWrite};
use hyper::rt::{self, ReadBufCursor};

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
/// wait for the acknowledgement of the previous one, up to 40 milliseconds.
///
/// # Panics
///
/// Every use on another thread than its own panics. A drop on another thread sends the stream home.
///
/// # Examples
///
/// ```no_run
/// use hyper::{Request, body::Bytes, client::conn::http1::handshake};
/// use http_body_util::Empty;
/// use phaseloop::{hyper::HyperIo, net::TcpStream, spawn};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// phaseloop::block_on(async {
///     let stream = TcpStream::connect("example.com:80").await?;
///     stream.set_nodelay(true)?;
///     let (mut sender, connection) = handshake(HyperIo::new(stream)).await?;
///     spawn(connection).detach();
///     let request = Request::get("/").header("host", "example.com");
///     let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
///     println!("{}", answer.status());
///     Ok(())
/// })
/// # }
/// ```
pub struct HyperIo<S: 'static> {
    stream: Local<S>,
    /// A buffer for reads of streams that need initialised memory, which hyper does not lend.
    buffer: Box<[u8]>,
}

/// The size of hyper's first read.
const BUFFER: usize = 8 * 1024;

impl<S> HyperIo<S> {
    /// Wraps a stream.
    #[track_caller]
    pub fn new(stream: S) -> Self {
        Self {
            stream: Local::new(stream),
            buffer: Box::default(),
        }
    }

    /// Returns the stream.
    ///
    /// # Panics
    ///
    /// On another thread.
    #[track_caller]
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.stream
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
        &mut self.stream
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
        self.stream.into_inner()
    }
}

impl<S: AsyncRead + Unpin> rt::Read for HyperIo<S> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, buffer } = &mut *self;
        let stream = &mut **stream;
        let mut is_socket = true;
        let received = fill_hyper(&mut cursor, |unfilled| {
            let received = net::poll_receive(stream, cx, unfilled);
            received.unwrap_or_else(|| {
                is_socket = false;
                Poll::Pending
            })
        });
        match is_socket {
            true => received,
            false => poll_copied(stream, cx, buffer, cursor),
        }
    }
}

/// Reads into `buffer`, and copies into hyper's memory.
fn poll_copied(
    stream: &mut (impl AsyncRead + Unpin),
    cx: &mut Context<'_>,
    buffer: &mut Box<[u8]>,
    mut cursor: ReadBufCursor<'_>,
) -> Poll<io::Result<()>> {
    if buffer.is_empty() {
        *buffer = vec![0; BUFFER].into_boxed_slice();
    }
    let room = cursor.remaining().min(buffer.len());
    let buffer = &mut buffer[..room];
    let read = ready!(Pin::new(stream).poll_read(cx, buffer))?;
    cursor.put_slice(&buffer[..read]);
    Poll::Ready(Ok(()))
}

impl<S: AsyncWrite + Unpin> rt::Write for HyperIo<S> {
    #[inline]
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_pin_mut().poll_write(cx, buffer)
    }

    #[inline]
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_pin_mut().poll_close(cx)
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
        self.stream.as_pin_mut().poll_write_vectored(cx, buffers)
    }
}

impl<S: fmt::Debug> fmt::Debug for HyperIo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperIo")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
