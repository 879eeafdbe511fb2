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
