//! Waiting for the readiness of a socket of any family, and trying it.

/// Implements the methods of readiness for a socket with a field `source`, whose source is of the
/// type `$inner`. The methods of the names `$poll_read` and `$poll_write` poll.
macro_rules! impl_readiness {
    ($socket:ty, $inner:ty, $poll_read:ident, $poll_write:ident) => {
        /// Readiness: waiting for it, and what is done with it.
        impl $socket {
            /// Waits until the socket is readable: data, EOF or an error.
            ///
            /// # Errors
            ///
            /// Any OS error of registering for the next event, on platforms that need it.
            /// `ECANCELED` if the socket was closed through a view.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future deregisters its waker; no data is lost.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::io::ErrorKind;
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.send_to(b"hello", socket.local_addr()?).await?;
            ///     let mut buffer = [0; 16];
            ///     let length = loop {
            ///         socket.readable().await?;
            ///         match socket.try_recv(&mut buffer) {
            ///             Err(error) if error.kind() == ErrorKind::WouldBlock => {} // wait again
            ///             result => break result?,
            ///         }
            ///     };
            ///     assert_eq!(length, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn readable(&self) -> $crate::io::Readiness<'_, $inner> {
                self.source.readable()
            }

            /// Waits until the socket is writable, or has an error.
            ///
            /// # Errors
            ///
            /// Any OS error of registering for the next event, on platforms that need it.
            /// `ECANCELED` if the socket was closed through a view.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future deregisters its waker; nothing was written.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::{TcpListener, TcpStream};
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
            ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
            ///     stream.writable().await?;
            ///     assert_eq!(stream.try_write(b"hello")?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn writable(&self) -> $crate::io::Readiness<'_, $inner> {
                self.source.writable()
            }

            /// Waits until the socket is ready in one of the directions of `interest`, and returns
            /// in which. It returns at once until an attempt would block.
            ///
            /// # Errors
            ///
            /// Any OS error of registering for the next event, on platforms that need it.
            /// `ECANCELED` if the socket was closed through a view.
            /// [`Unsupported`](std::io::ErrorKind::Unsupported) for urgent data on platforms other
            /// than Linux.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future deregisters its waker; no data and no event is lost.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::Interest;
            /// use phaseloop::net::{TcpListener, TcpStream};
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
            ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
            ///     let ready = stream.ready(Interest::READABLE | Interest::WRITABLE).await?;
            ///     assert!(ready.is_writable() && !ready.is_readable());
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn ready(
                &self,
                interest: $crate::io::Interest,
            ) -> impl Future<Output = std::io::Result<$crate::io::Ready>> {
                self.source.ready(interest)
            }

            /// Polls for readability. One task at a time may wait this way: the socket keeps the
            /// last waker.
            ///
            /// # Errors
            ///
            /// The errors of [`readable`](Self::readable).
            pub fn $poll_read(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.source.poll_readable(cx)
            }

            /// Polls for writability. One task at a time may wait this way: the socket keeps the
            /// last waker.
            ///
            /// # Errors
            ///
            /// The errors of [`writable`](Self::writable).
            pub fn $poll_write(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.source.poll_writable(cx)
            }

            /// Calls `operation` if the socket is ready in one of the directions of `interest`.
            ///
            /// The operation does I/O on this socket, by its descriptor. It returns `WouldBlock`
            /// only if the kernel does: the socket then counts as not ready until the next event.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if the socket is not ready, and then
            /// `operation` was not called; otherwise its errors.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::Interest;
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.send_to(b"hello", socket.local_addr()?).await?;
            ///     socket.readable().await?;
            ///     // A call that has no method here, by the socket of the standard library.
            ///     let peek = || socket.get_ref().peek(&mut [0; 16]);
            ///     assert_eq!(socket.try_io(Interest::READABLE, peek)?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn try_io<R>(
                &self,
                interest: $crate::io::Interest,
                operation: impl FnOnce() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.source.try_io(interest, operation)
            }

            /// Calls `operation` once the socket is ready in one of the directions of `interest`,
            /// and again after each call that would block; see [`try_io`](Self::try_io).
            ///
            /// # Errors
            ///
            /// The errors of `operation`, other than `WouldBlock`, and those of
            /// [`ready`](Self::ready).
            ///
            /// # Cancel safety
            ///
            /// A future that is dropped before it completes has had no effect: `operation` was not
            /// called, or would have blocked.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::Interest;
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.send_to(b"hello", socket.local_addr()?).await?;
            ///     let peek = || socket.get_ref().peek(&mut [0; 16]);
            ///     assert_eq!(socket.async_io(Interest::READABLE, peek).await?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub async fn async_io<R>(
                &self,
                interest: $crate::io::Interest,
                operation: impl FnMut() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.source.async_io(interest, operation).await
            }
        }
    };
}
