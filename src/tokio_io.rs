//! tokio's I/O traits for the streams of this crate. Behind the feature `tokio-io`; needs no tokio runtime.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::AsyncWrite as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::net;

macro_rules! impl_tokio_io {
    ($stream:ty) => {
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                let read = ready!(futures_io::AsyncRead::poll_read(
                    self,
                    cx,
                    buffer.initialize_unfilled()
                ))?;
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
        }

        impl AsyncWrite for $stream {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &[u8],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write(self, cx, buffer)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures_io::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_close(cx)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write_vectored(self, cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }
        }
    };
}

impl_tokio_io!(net::TcpStream);
#[cfg(unix)]
impl_tokio_io!(net::UnixStream);
