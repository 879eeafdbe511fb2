//! A buffered reader that reports EOF to every caller.

use std::io::{self, IoSlice, SeekFrom};
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_lite::io::{self as base, AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
use pin_project_lite::pin_project;

pin_project! {
    /// Reads from `R` in large pieces, for callers that want lines or single bytes.
    ///
    /// A file has a buffer of its own, and needs no other. Writes and seeks pass through; a seek
    /// discards the buffer.
    ///
    /// # Cancel safety
    ///
    /// A `read` or `fill_buf` that is dropped has consumed no data. A `read_until` that is dropped
    /// has moved bytes into the caller's buffer, and a `read_line` that is dropped loses the start
    /// of its line. `lines` keeps that start from one `next` to the other.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::{AsyncBufReadExt, BufReader};
    /// use phaseloop::stream::StreamExt;
    ///
    /// phaseloop::block_on(async {
    ///     let mut lines = BufReader::new(&b"one\ntwo"[..]).lines();
    ///     assert_eq!(lines.next().await.unwrap().unwrap(), "one");
    ///     assert_eq!(lines.next().await.unwrap().unwrap(), "two");
    ///     assert!(lines.next().await.is_none());
    /// });
    /// ```
    #[derive(Debug)]
    pub struct BufReader<R> {
        #[pin]
        reader: base::BufReader<R>,
        // Whether the last operation was a fill that found EOF. `fill_buf` of futures-lite polls
        // twice, and panics unless the second poll is ready like the first. At EOF the buffer is
        // empty, so the second poll would read again, and that may wait.
        has_found_end: bool,
    }
}

impl<R: AsyncRead> BufReader<R> {
    /// Creates a reader with a buffer of 8 KiB.
    pub fn new(inner: R) -> Self {
        Self::over(base::BufReader::new(inner))
    }

    /// Creates a reader with a buffer of `capacity` bytes.
    pub fn with_capacity(capacity: usize, inner: R) -> Self {
        Self::over(base::BufReader::with_capacity(capacity, inner))
    }
}

impl<R> BufReader<R> {
    fn over(reader: base::BufReader<R>) -> Self {
        Self {
            reader,
            has_found_end: false,
        }
    }

    /// Returns the inner reader. Bytes that are read from it directly are missing here.
    pub fn get_ref(&self) -> &R {
        self.reader.get_ref()
    }

    /// Returns the inner reader. Bytes that are read from it directly are missing here.
    pub fn get_mut(&mut self) -> &mut R {
        self.has_found_end = false;
        self.reader.get_mut()
    }

    /// Returns the bytes in the buffer.
    pub fn buffer(&self) -> &[u8] {
        self.reader.buffer()
    }

    /// Returns the inner reader. The bytes in the buffer are lost.
    pub fn into_inner(self) -> R {
        self.reader.into_inner()
    }

    /// Returns the reader for an operation other than a fill.
    fn for_other(self: Pin<&mut Self>) -> Pin<&mut base::BufReader<R>> {
        let this = self.project();
        *this.has_found_end = false;
        this.reader
    }
}

impl<R: AsyncRead> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if take(this.has_found_end) {
            return Poll::Ready(Ok(&[]));
        }
        let filled = ready!(this.reader.poll_fill_buf(cx))?;
        *this.has_found_end = filled.is_empty();
        Poll::Ready(Ok(filled))
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        self.for_other().consume(count);
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.for_other().poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.for_other().poll_read_vectored(cx, buffers)
    }
}

impl<R: AsyncSeek> AsyncSeek for BufReader<R> {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        self.for_other().poll_seek(cx, to)
    }
}

impl<W: AsyncWrite> AsyncWrite for BufReader<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.for_other().poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.for_other().poll_write_vectored(cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.for_other().poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.for_other().poll_close(cx)
    }
}
