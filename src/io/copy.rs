//! Copying from one stream to another.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};

/// The buffer size that libuv suggests for a read.
const BUFFER: usize = 64 * 1024;

/// Copies `reader` to `writer` until EOF, flushes, and returns the number of bytes copied.
///
/// Bytes are written before more are read, so a slow writer applies backpressure to the reader.
///
/// # Errors
///
/// The errors of `reader` and `writer`; [`WriteZero`](io::ErrorKind::WriteZero) if the writer
/// accepts no bytes.
///
/// # Cancel safety
///
/// Not cancel safe: bytes that were read and not yet written are lost.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut text = Vec::new();
///     let copied = phaseloop::io::copy(&b"hello"[..], &mut text).await?;
///     assert_eq!((copied, text), (5, b"hello".to_vec()));
///     Ok(())
/// }
/// ```
pub async fn copy<R, W>(mut reader: R, mut writer: W) -> io::Result<u64>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut direction = Direction::new();
    std::future::poll_fn(|cx| direction.poll(cx, Pin::new(&mut reader), Pin::new(&mut writer)))
        .await
}

/// Copies in both directions between two streams until both are at EOF. It returns the number of
/// bytes from `a` to `b`, and from `b` to `a`. EOF of one stream closes the writing direction of
/// the other.
///
/// # Errors
///
/// The first error of either direction.
///
/// # Cancel safety
///
/// Not cancel safe: bytes that were read and not yet written are lost, in both directions.
///
/// # Examples
///
/// ```no_run
/// use phaseloop::{io::copy_both_ways, net::{TcpListener, TcpStream}, spawn};
///
/// /// Passes each connection on to another server.
/// async fn proxy(listener: TcpListener, server: &'static str) -> std::io::Result<()> {
///     loop {
///         let (client, _) = listener.accept().await?;
///         spawn(async move {
///             let server = TcpStream::connect(server).await?;
///             copy_both_ways(client, server).await
///         })
///         .detach();
///     }
/// }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     proxy(TcpListener::bind("0.0.0.0:8080").await?, "127.0.0.1:80").await
/// }
/// ```
#[doc(alias = "copy_bidirectional")]
pub async fn copy_both_ways<A, B>(mut a: A, mut b: B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (mut forth, mut back) = (Direction::new(), Direction::new());
    forth.close_writer = true;
    back.close_writer = true;
    let (mut forth_done, mut back_done) = (None, None);
    std::future::poll_fn(|cx| {
        if forth_done.is_none() {
            if let Poll::Ready(copied) = forth.poll(cx, Pin::new(&mut a), Pin::new(&mut b)) {
                forth_done = Some(copied?);
            }
        }
        if back_done.is_none() {
            if let Poll::Ready(copied) = back.poll(cx, Pin::new(&mut b), Pin::new(&mut a)) {
                back_done = Some(copied?);
            }
        }
        match (forth_done, back_done) {
            (Some(forth), Some(back)) => Poll::Ready(Ok((forth, back))),
            _ => Poll::Pending,
        }
    })
    .await
}

/// The state of one direction.
struct Direction {
    buffer: Box<[u8]>,
    /// The part of the buffer that was read and not yet written.
    start: usize,
    end: usize,
    copied: u64,
    is_at_end: bool,
    close_writer: bool,
}

impl Direction {
    fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            copied: 0,
            is_at_end: false,
            close_writer: false,
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut impl AsyncRead>,
        mut writer: Pin<&mut impl AsyncWrite>,
    ) -> Poll<io::Result<u64>> {
        loop {
            while self.start < self.end {
                let rest = &self.buffer[self.start..self.end];
                let written = ready!(writer.as_mut().poll_write(cx, rest))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.start += written;
                self.copied += written as u64;
            }
            if self.is_at_end {
                if self.close_writer {
                    ready!(writer.as_mut().poll_close(cx))?;
                } else {
                    ready!(writer.as_mut().poll_flush(cx))?;
                }
                return Poll::Ready(Ok(self.copied));
            }
            match reader.as_mut().poll_read(cx, &mut self.buffer) {
                Poll::Ready(read) => {
                    (self.start, self.end) = (0, read?);
                    self.is_at_end = self.end == 0;
                }
                Poll::Pending => {
                    // Flush while the reader is idle: written bytes must not stay in the writer's
                    // buffer.
                    ready!(writer.as_mut().poll_flush(cx))?;
                    return Poll::Pending;
                }
            }
        }
    }
}
