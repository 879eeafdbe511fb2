//! The I/O traits of streams of any family.

use std::io;

use crate::io::Duplex;

/// Implements the I/O traits of `futures` for a socket and for references to it. `poll_close` shuts
/// down the writing direction.
macro_rules! impl_async_stream {
    ($stream:ty) => {
        crate::io::bytes::impl_async_read!($stream);
        crate::io::bytes::impl_async_write!(
            $stream,
            |stream| crate::net::duplex::end_writing(stream),
            |stream| crate::net::duplex::end_writing(stream)
        );

        impl $stream {
            /// Splits the stream into halves with one owner each, as
            /// [`io::split`](crate::io::split()) does.
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
            ///     let client = TcpStream::connect(listener.local_addr()?).await?;
            ///     let (mut server, _) = listener.accept().await?;
            ///     let (mut reader, mut writer) = client.into_split();
            ///     // One task writes while another reads.
            ///     let writing = phaseloop::spawn(async move { writer.write_all(b"ping").await });
            ///     let mut bytes = [0; 4];
            ///     server.read_exact(&mut bytes).await?;
            ///     server.write_all(&bytes).await?;
            ///     reader.read_exact(&mut bytes).await?;
            ///     assert_eq!(&bytes, b"ping");
            ///     writing.await.unwrap()?;
            ///     Ok(())
            /// }
            /// ```
            pub fn into_split(
                self,
            ) -> (
                crate::io::OwnedReadHalf<Self>,
                crate::io::OwnedWriteHalf<Self>,
            ) {
                crate::io::split(self)
            }
        }

        #[cfg(any(feature = "hyper", feature = "tokio-io"))]
        impl $stream {
            /// Polls a receive into memory that is not initialised.
            #[inline]
            pub(crate) fn poll_receive(
                &self,
                cx: &mut std::task::Context<'_>,
                buffer: &mut crate::sys::unfilled::Unfilled<'_>,
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.source.poll_receive(cx, buffer)
            }
        }

        impl crate::io::Duplex for $stream {
            fn shutdown_write(&self) -> std::io::Result<()> {
                self.shutdown(std::net::Shutdown::Write)
            }
        }
    };
}

/// Shuts down the writing direction. `NotConnected` is ignored: a peer that is gone needs no EOF.
pub(super) fn end_writing(stream: &impl Duplex) -> io::Result<()> {
    match stream.shutdown_write() {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        result => result,
    }
}
