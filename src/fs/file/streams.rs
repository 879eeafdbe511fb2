//! The traits of the `futures` crate.

use std::io::{self, IoSlice, IoSliceMut, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};

use super::File;
use super::cursor::Cursor;
use super::writer::Shared;

impl File {
    /// Polls an operation at the position. The waker is registered while the cursor is not
    /// borrowed: cloning or dropping a waker runs user code, which may use the file.
    pub(super) fn poll_at<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Cursor, &Arc<Shared>) -> Poll<T>,
    ) -> Poll<T> {
        let first = poll(&mut self.cursor.borrow_mut(), &self.shared);
        if first.is_ready() {
            return first;
        }
        self.shared.wait(cx.waker());
        // Polls again: the operation may have become ready before the waker was registered.
        poll(&mut self.cursor.borrow_mut(), &self.shared)
    }

    #[inline]
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_at(cx, |cursor, shared| cursor.poll_read(shared, buffers))
    }

    #[inline]
    fn poll_write(&self, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_at(cx, |cursor, shared| cursor.poll_write(shared, buffers))
    }

    /// Waits until the OS has accepted the written bytes, and returns the error of a write.
    #[inline]
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_at(cx, |_, shared| Cursor::poll_written(shared)));
        Poll::Ready(self.shared.take_error().map_or(Ok(()), Err))
    }

    #[inline]
    fn poll_seek(&self, cx: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        self.poll_at(cx, |cursor, shared| cursor.poll_seek(shared, to))
    }
}

/// Seeking in two steps, as tokio's trait has it.
#[cfg(feature = "tokio-io")]
impl File {
    /// # Errors
    ///
    /// If another seek was started and is not complete.
    pub(crate) fn start_seek_to(&self, to: SeekFrom) -> io::Result<()> {
        if self.sought.get().is_some() {
            return Err(io::Error::other(
                "another seek of the file is under way: complete it first",
            ));
        }
        self.sought.set(Some(to));
        Ok(())
    }

    /// Completes the seek that was started. Without one, it returns the position.
    pub(crate) fn poll_started_seek(&self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let to = self.sought.get().unwrap_or(SeekFrom::Current(0));
        let position = ready!(self.poll_seek(cx, to));
        self.sought.set(None);
        Poll::Ready(position)
    }
}

/// Implements the I/O traits for `File` and for `&File`.
macro_rules! impl_streams {
    ($file:ty) => {
        impl AsyncRead for $file {
            #[inline]
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                File::poll_read(&self, cx, &mut [IoSliceMut::new(buffer)])
            }

            #[inline]
            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                File::poll_read(&self, cx, buffers)
            }
        }

        impl AsyncWrite for $file {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                File::poll_write(&self, cx, &[IoSlice::new(buffer)])
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                File::poll_write(&self, cx, buffers)
            }

            #[inline]
            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                File::poll_flush(&self, cx)
            }

            /// Flushes. The file closes when it is dropped, or by [`File::close`].
            #[inline]
            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                File::poll_flush(&self, cx)
            }
        }

        impl AsyncSeek for $file {
            #[inline]
            fn poll_seek(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: SeekFrom,
            ) -> Poll<io::Result<u64>> {
                File::poll_seek(&self, cx, to)
            }
        }
    };
}

impl_streams!(File);
impl_streams!(&File);

impl AsyncBufRead for File {
    #[inline]
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let file = self.get_mut();
        if !file.cursor.get_mut().take_end_of_stream() {
            ready!(file.poll_at(cx, |cursor, shared| cursor.poll_fill(shared, 1)))?;
        }
        Poll::Ready(Ok(file.cursor.get_mut().ahead()))
    }

    #[inline]
    fn consume(self: Pin<&mut Self>, count: usize) {
        let cursor = self.get_mut().cursor.get_mut();
        cursor.consume(count);
        cursor.forget_end();
    }
}
