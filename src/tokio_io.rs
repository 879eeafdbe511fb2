//! tokio's I/O traits for the streams of this crate. Behind the feature `tokio-io`; needs no tokio
//! runtime.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::io::AsyncWrite as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::io::{Duplex, OwnedReadHalf, OwnedWriteHalf};
use crate::local::Local;
use crate::net;
use crate::sys::unfilled::fill_tokio;

macro_rules! impl_tokio_read {
    ($stream:ty) => {
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let read = ready!(futures::io::AsyncRead::poll_read(
                    self,
                    cx,
                    buffer.initialize_unfilled()
                ))?;
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
        }
    };
}

macro_rules! impl_tokio_write {
    ($stream:ty) => {
        impl AsyncWrite for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                futures::io::AsyncWrite::poll_write(self, cx, buffer)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures::io::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_close(cx)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures::io::AsyncWrite::poll_write_vectored(self, cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }
        }
    };
}

/// Sockets receive into the reader's memory as it is; the streams above need it zeroed.
macro_rules! impl_tokio_receive {
    ($stream:ty) => {
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                fill_tokio(buffer, |unfilled| self.poll_receive(cx, unfilled))
            }
        }
    };
}

impl_tokio_receive!(net::TcpStream);
impl_tokio_receive!(&net::TcpStream);
impl_tokio_write!(net::TcpStream);
impl_tokio_write!(&net::TcpStream);

impl_tokio_read!(crate::io::PipeReader);
impl_tokio_read!(&crate::io::PipeReader);
impl_tokio_write!(crate::io::PipeWriter);
impl_tokio_read!(crate::io::Stdin);
impl_tokio_write!(crate::io::Stdout);
impl_tokio_write!(crate::io::Stderr);

#[cfg(unix)]
mod unix {
    use super::*;

    impl_tokio_receive!(net::UnixStream);
    impl_tokio_receive!(&net::UnixStream);
    impl_tokio_write!(net::UnixStream);
    impl_tokio_write!(&net::UnixStream);
    #[cfg(feature = "tty")]
    impl_tokio_read!(crate::tty::Tty);
    #[cfg(feature = "tty")]
    impl_tokio_write!(crate::tty::Tty);
}

#[cfg(not(unix))]
mod windows {
    use super::*;
    use crate::net::windows::NamedPipeStream;

    impl_tokio_read!(NamedPipeStream);
    impl_tokio_read!(&NamedPipeStream);
    impl_tokio_write!(NamedPipeStream);
    impl_tokio_write!(&NamedPipeStream);
}

#[cfg(feature = "fs")]
mod file {
    use super::*;
    use crate::fs::File;
    use std::io::SeekFrom;
    use tokio::io::{AsyncBufRead, AsyncSeek};

    impl_tokio_read!(File);
    impl_tokio_read!(&File);
    impl_tokio_write!(File);
    impl_tokio_write!(&File);

    impl AsyncBufRead for File {
        fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            futures::io::AsyncBufRead::poll_fill_buf(self, cx)
        }

        fn consume(self: Pin<&mut Self>, count: usize) {
            futures::io::AsyncBufRead::consume(self, count);
        }
    }

    macro_rules! impl_tokio_seek {
        ($file:ty) => {
            /// Without a seek that was started, `poll_complete` returns the position.
            impl AsyncSeek for $file {
                fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
                    self.start_seek_to(position)
                }

                fn poll_complete(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                ) -> Poll<io::Result<u64>> {
                    self.poll_started_seek(cx)
                }
            }
        };
    }

    impl_tokio_seek!(File);
    impl_tokio_seek!(&File);
}

/// The half reads as the stream does.
impl<S: Duplex> AsyncRead for OwnedReadHalf<S>
where
    for<'a> &'a S: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut (*self).get_ref()).poll_read(cx, buffer)
    }
}

/// The half writes as the stream does. After its shutdown, dropping it does nothing more.
impl<S: Duplex> AsyncWrite for OwnedWriteHalf<S>
where
    for<'a> &'a S: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut (*self).get_ref()).poll_write(cx, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut (*self).get_ref()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut (*self).get_ref()).poll_shutdown(cx))?;
        self.note_shutdown();
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut (*self).get_ref()).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.get_ref().is_write_vectored()
    }
}

impl<R: AsyncRead> AsyncRead for Local<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_pin_mut().poll_read(cx, buffer)
    }
}

impl<W: AsyncWrite> AsyncWrite for Local<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_pin_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_pin_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_pin_mut().poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.try_get().is_some_and(AsyncWrite::is_write_vectored)
    }
}
