//! The traits of the `futures` crate.

use std::io::{self, IoSlice, IoSliceMut, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};

use super::File;
use super::cursor::Cursor;

impl File {
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.cursor
            .borrow_mut()
            .poll_read(&self.shared, cx, buffers)
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.cursor
            .borrow_mut()
            .poll_write(&self.shared, cx, buffers)
    }

    /// Waits until the system has what was written, and says whether it could be written.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Cursor::poll_written(&self.shared, cx));
        Poll::Ready(self.shared.take_error().map_or(Ok(()), Err))
    }

    fn poll_seek(&self, cx: &mut Context<'_>, to: SeekFrom) -> Poll<io::Result<u64>> {
        self.cursor.borrow_mut().poll_seek(&self.shared, cx, to)
    }
}

/// The same for `File` and `&File`.
macro_rules! impl_streams {
    ($file:ty) => {
        impl AsyncRead for $file {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                File::poll_read(&self, cx, &mut [IoSliceMut::new(buffer)])
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                File::poll_read(&self, cx, buffers)
            }
        }

        impl AsyncWrite for $file {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                File::poll_write(&self, cx, &[IoSlice::new(buffer)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                File::poll_write(&self, cx, buffers)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                File::poll_flush(&self, cx)
            }

            /// As a flush: the file closes when it is dropped, or by its own `close`.
            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                File::poll_flush(&self, cx)
            }
        }

        impl AsyncSeek for $file {
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
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let Self { shared, cursor } = self.get_mut();
        let cursor = cursor.get_mut();
        ready!(cursor.poll_fill(shared, cx, 1))?;
        Poll::Ready(Ok(cursor.ahead()))
    }

    fn consume(self: Pin<&mut Self>, count: usize) {
        self.get_mut().cursor.get_mut().consume(count);
    }
}
