//! Unix sockets: streams, listeners, datagrams, and their names.

/// Implements what all Unix sockets have, for one with a field `source` of the standard library's
/// type `$std`, and with the functions `adopt` and `into_source`.
macro_rules! impl_unix_socket {
    ($socket:ident, $std:ty) => {
        /// Conversions, the name and the error of the socket.
        impl $socket {
            /// Registers a socket of the standard library with the running loop, in non-blocking
            /// mode. If it is bound to a path, the path is not removed.
            ///
            /// # Errors
            ///
            /// Any OS error of registering the descriptor with the poller.
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
            ///     let stream = UnixStream::from_std(one)?;
            ///     stream.try_write(b"hello")?;
            ///     stream.into_std().set_nonblocking(false)?; // blocking again
            ///     Ok(())
            /// }
            /// ```
            #[track_caller]
            #[inline]
            pub fn from_std(socket: $std) -> std::io::Result<Self> {
                let site = std::panic::Location::caller();
                let handle = $crate::runtime::loop_handle::LoopHandle::current();
                handle
                    .core()
                    .waits
                    .note_outside("a socket of the standard library", site);
                socket.set_nonblocking(true)?;
                Self::adopt(&handle, socket, site)
            }

            /// Deregisters the socket and returns it. It stays in non-blocking mode. If it is bound
            /// to a path, the path is not removed any more.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
            ///     let stream = UnixStream::from_std(one)?;
            ///     stream.try_write(b"hello")?;
            ///     stream.into_std().set_nonblocking(false)?; // blocking again
            ///     Ok(())
            /// }
            /// ```
            #[must_use]
            pub fn into_std(self) -> $std {
                self.into_source().into_inner()
            }

            /// Returns the name of the socket; `None` if it has none.
            ///
            /// # Errors
            ///
            /// Any OS error of `getsockname`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, other) = UnixStream::pair()?;
            ///     assert_eq!(one.local_name()?, None); // a pair has no names
            ///     assert_eq!(other.peer_name()?, None);
            ///     Ok(())
            /// }
            /// ```
            #[doc(alias = "local_addr")]
            pub fn local_name(&self) -> std::io::Result<Option<$crate::net::SocketName>> {
                $crate::net::unix::name::name_of(self.get_ref().local_addr())
            }

            /// Takes the pending error of the socket (`SO_ERROR`), if there is one.
            ///
            /// # Errors
            ///
            /// Any OS error of `getsockopt(SO_ERROR)`.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, _other) = UnixStream::pair()?;
            ///     assert!(one.take_error()?.is_none());
            ///     Ok(())
            /// }
            /// ```
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                self.get_ref().take_error()
            }

            /// Returns the socket of the standard library, for options without a method here.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixDatagram;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, _other) = UnixDatagram::pair()?;
            ///     assert_eq!(one.get_ref().read_timeout()?, None);
            ///     Ok(())
            /// }
            /// ```
            #[must_use]
            pub fn get_ref(&self) -> &$std {
                self.source.get_ref()
            }
        }

        $crate::runtime::handle::impl_handle!($socket, |this| this.source.handle_core());
        $crate::sys::poller::impl_as_source!($socket, |this| this.get_ref());
    };
}

/// Implements what the Unix sockets have that can be connected, which [`impl_unix_socket`] has
/// begun.
macro_rules! impl_unix_peer {
    ($socket:ident, $std:ty) => {
        /// Pairs of sockets, and the peer.
        impl $socket {
            /// Creates two connected sockets.
            ///
            /// # Errors
            ///
            /// Any OS error of `socketpair`.
            ///
            /// # Panics
            ///
            /// When no loop runs on this thread.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (mut one, mut other) = UnixStream::pair()?;
            ///     one.write_all(b"hello").await?;
            ///     let mut bytes = [0; 5];
            ///     other.read_exact(&mut bytes).await?;
            ///     assert_eq!(&bytes, b"hello");
            ///     Ok(())
            /// }
            /// ```
            #[track_caller]
            #[inline]
            pub fn pair() -> std::io::Result<(Self, Self)> {
                let (one, other) = <$std>::pair()?;
                let site = std::panic::Location::caller();
                let handle = $crate::runtime::loop_handle::LoopHandle::current();
                let adopt = |end: $std| {
                    end.set_nonblocking(true)?;
                    Self::adopt(&handle, end, site)
                };
                let (one, other) = (adopt(one)?, adopt(other)?);
                one.source.pair_with(&other.source);
                Ok((one, other))
            }

            /// Returns the name of the peer; `None` if it has none.
            ///
            /// # Errors
            ///
            /// Any OS error of `getpeername`: [`NotConnected`](std::io::ErrorKind::NotConnected) if
            /// there is no peer.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, other) = UnixStream::pair()?;
            ///     assert_eq!(one.local_name()?, None); // a pair has no names
            ///     assert_eq!(other.peer_name()?, None);
            ///     Ok(())
            /// }
            /// ```
            #[doc(alias = "peer_addr")]
            pub fn peer_name(&self) -> std::io::Result<Option<$crate::net::SocketName>> {
                $crate::net::unix::name::name_of(self.get_ref().peer_addr())
            }

            /// Shuts down one direction or both.
            ///
            /// # Errors
            ///
            /// [`NotConnected`](std::io::ErrorKind::NotConnected) if the peer of a stream is gone;
            /// any other OS error of `shutdown`.
            ///
            /// # Examples
            ///
            /// ```
            /// use std::net::Shutdown;
            /// use phaseloop::io::AsyncReadExt;
            /// use phaseloop::net::UnixStream;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let (one, mut other) = UnixStream::pair()?;
            ///     one.shutdown(Shutdown::Write)?;
            ///     assert_eq!(other.read(&mut [0; 8]).await?, 0); // EOF
            ///     Ok(())
            /// }
            /// ```
            pub fn shutdown(&self, how: std::net::Shutdown) -> std::io::Result<()> {
                self.get_ref().shutdown(how)?;
                if how != std::net::Shutdown::Write {
                    self.source.note_end_of_reading();
                }
                Ok(())
            }
        }
    };
}

mod datagram;
mod detached;
mod listener;
mod name;
mod received;
mod stream;

pub use datagram::UnixDatagram;
pub use listener::UnixListener;
pub use name::SocketName;
pub use stream::{PeerCredentials, UnixStream};
