//! Datagrams of any family.

use std::io;

/// Implements sending to the peer and receiving for a socket with a field `source`. `$recv_from`
/// receives a datagram and its sender, which is an `$address`, by the source's value.
macro_rules! impl_datagrams {
    ($socket:ty, $address:ty, $recv_from:path) => {
        /// Datagrams to the peer, and from any sender.
        impl $socket {
            /// Sends a datagram to the peer.
            ///
            /// # Errors
            ///
            /// Any OS error of `send`: no peer is set, the datagram is too long, or
            /// [`ConnectionRefused`](std::io::ErrorKind::ConnectionRefused), which for UDP reports
            /// that an earlier datagram reached no socket.
            ///
            /// # Cancel safety
            ///
            /// A future that is dropped before it completes has sent nothing.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let one = UdpSocket::bind("127.0.0.1:0").await?;
            ///     let other = UdpSocket::bind("127.0.0.1:0").await?;
            ///     one.connect(other.local_addr()?).await?;
            ///     one.send(b"hello").await?;
            ///     let mut buffer = [0; 1500];
            ///     let length = other.recv(&mut buffer).await?;
            ///     assert_eq!(&buffer[..length], b"hello");
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn send(&self, datagram: &[u8]) -> impl Future<Output = std::io::Result<usize>> {
                self.source.write_with(|socket| socket.send(datagram))
            }

            /// Sends to the peer without waiting.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if the send buffer, or the queue of a
            /// peer on this machine, is full; otherwise as [`send`](Self::send).
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
            ///     socket.connect(socket.local_addr()?).await?; // to itself
            ///     let mut buffer = [0; 16];
            ///     let error = socket.try_recv(&mut buffer).unwrap_err();
            ///     assert_eq!(error.kind(), ErrorKind::WouldBlock);
            ///     socket.try_send(b"hello")?;
            ///     socket.readable().await?;
            ///     assert_eq!(socket.try_recv(&mut buffer)?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn try_send(&self, datagram: &[u8]) -> std::io::Result<usize> {
                self.source.try_write_with(|socket| socket.send(datagram))
            }

            /// Polls [`send`](Self::send). One task at a time may wait this way.
            ///
            /// # Errors
            ///
            /// The errors of [`send`](Self::send).
            ///
            /// # Examples
            ///
            /// ```
            /// use std::future::poll_fn;
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.connect(socket.local_addr()?).await?; // to itself
            ///     poll_fn(|cx| socket.poll_send(cx, b"hello")).await?;
            ///     let mut buffer = [0; 16];
            ///     assert_eq!(poll_fn(|cx| socket.poll_recv(cx, &mut buffer)).await?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn poll_send(
                &self,
                cx: &mut std::task::Context<'_>,
                datagram: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.source
                    .poll_write_with(cx, |socket| socket.send(datagram))
            }

            /// Receives a datagram. Bytes beyond the length of the buffer are discarded.
            ///
            /// # Errors
            ///
            /// Any OS error of `recv`.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no datagram.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let one = UdpSocket::bind("127.0.0.1:0").await?;
            ///     let other = UdpSocket::bind("127.0.0.1:0").await?;
            ///     one.connect(other.local_addr()?).await?;
            ///     one.send(b"hello").await?;
            ///     let mut buffer = [0; 1500];
            ///     let length = other.recv(&mut buffer).await?;
            ///     assert_eq!(&buffer[..length], b"hello");
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn recv(&self, buffer: &mut [u8]) -> impl Future<Output = std::io::Result<usize>> {
                self.source.read_with(|socket| socket.recv(buffer))
            }

            /// Receives a datagram without waiting.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise
            /// as [`recv`](Self::recv).
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
            ///     socket.connect(socket.local_addr()?).await?; // to itself
            ///     let mut buffer = [0; 16];
            ///     let error = socket.try_recv(&mut buffer).unwrap_err();
            ///     assert_eq!(error.kind(), ErrorKind::WouldBlock);
            ///     socket.try_send(b"hello")?;
            ///     socket.readable().await?;
            ///     assert_eq!(socket.try_recv(&mut buffer)?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn try_recv(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.source.try_read_with(|socket| socket.recv(buffer))
            }

            /// Polls [`recv`](Self::recv). One task at a time may wait this way.
            ///
            /// # Errors
            ///
            /// The errors of [`recv`](Self::recv).
            ///
            /// # Examples
            ///
            /// ```
            /// use std::future::poll_fn;
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.connect(socket.local_addr()?).await?; // to itself
            ///     poll_fn(|cx| socket.poll_send(cx, b"hello")).await?;
            ///     let mut buffer = [0; 16];
            ///     assert_eq!(poll_fn(|cx| socket.poll_recv(cx, &mut buffer)).await?, 5);
            ///     Ok(())
            /// }
            /// ```
            pub fn poll_recv(
                &self,
                cx: &mut std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.source.poll_read_with(cx, |socket| socket.recv(buffer))
            }

            /// Receives a datagram and returns its length and its sender. Bytes beyond the length
            /// of the buffer are discarded.
            ///
            /// # Errors
            ///
            /// Any OS error of `recvfrom`.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no datagram.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let server = UdpSocket::bind("127.0.0.1:0").await?;
            ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
            ///     client.send_to(b"ping", server.local_addr()?).await?;
            ///     let mut buffer = [0; 1500];
            ///     let (length, sender) = server.recv_from(&mut buffer).await?;
            ///     server.send_to(&buffer[..length], sender).await?;
            ///     assert_eq!(client.recv(&mut buffer).await?, 4);
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn recv_from(
                &self,
                buffer: &mut [u8],
            ) -> impl Future<Output = std::io::Result<(usize, $address)>> {
                self.source.read_with(|socket| $recv_from(socket, buffer))
            }

            /// Receives a datagram and its sender without waiting.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise
            /// as [`recv_from`](Self::recv_from).
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     let address = socket.local_addr()?;
            ///     socket.send_to(b"hello", address).await?;
            ///     socket.readable().await?;
            ///     assert_eq!(socket.try_recv_from(&mut [0; 16])?, (5, address));
            ///     Ok(())
            /// }
            /// ```
            pub fn try_recv_from(&self, buffer: &mut [u8]) -> std::io::Result<(usize, $address)> {
                self.source
                    .try_read_with(|socket| $recv_from(socket, buffer))
            }

            /// Polls [`recv_from`](Self::recv_from). One task at a time may wait this way.
            ///
            /// # Errors
            ///
            /// The errors of [`recv_from`](Self::recv_from).
            #[inline]
            pub fn poll_recv_from(
                &self,
                cx: &mut std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> std::task::Poll<std::io::Result<(usize, $address)>> {
                self.source
                    .poll_read_with(cx, |socket| $recv_from(socket, buffer))
            }

            /// Receives a datagram into the spare capacity of a vector, and returns its length.
            /// Bytes beyond the capacity are discarded. A vector that is full grows by 64 bytes or
            /// more.
            ///
            /// # Errors
            ///
            /// Any OS error of `recv`. The vector is unchanged then.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no datagram, and leaves the vector unchanged.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     socket.send_to(b"hello", socket.local_addr()?).await?;
            ///     let mut datagram = Vec::with_capacity(1500);
            ///     socket.recv_buf(&mut datagram).await?;
            ///     assert_eq!(datagram, b"hello");
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn recv_buf(
                &self,
                buffer: &mut Vec<u8>,
            ) -> impl Future<Output = std::io::Result<usize>> {
                self.source.read_with(|socket| {
                    $crate::net::datagrams::into_spare(buffer, |spare| socket.recv(spare), |n| *n)
                })
            }

            /// Receives a datagram into the spare capacity of a vector without waiting; see
            /// [`recv_buf`](Self::recv_buf).
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise
            /// as [`recv_buf`](Self::recv_buf).
            pub fn try_recv_buf(&self, buffer: &mut Vec<u8>) -> std::io::Result<usize> {
                self.source.try_read_with(|socket| {
                    $crate::net::datagrams::into_spare(buffer, |spare| socket.recv(spare), |n| *n)
                })
            }

            /// Receives a datagram into the spare capacity of a vector, and returns its length and
            /// its sender; see [`recv_buf`](Self::recv_buf).
            ///
            /// # Errors
            ///
            /// Any OS error of `recvfrom`. The vector is unchanged then.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses no datagram, and leaves the vector unchanged.
            ///
            /// # Examples
            ///
            /// ```
            /// use phaseloop::net::UdpSocket;
            ///
            /// #[phaseloop::main]
            /// async fn main() -> std::io::Result<()> {
            ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
            ///     let address = socket.local_addr()?;
            ///     socket.send_to(b"hello", address).await?;
            ///     let mut datagram = Vec::with_capacity(1500);
            ///     assert_eq!(socket.recv_buf_from(&mut datagram).await?, (5, address));
            ///     assert_eq!(datagram, b"hello");
            ///     Ok(())
            /// }
            /// ```
            #[must_use = "futures do nothing unless awaited"]
            pub fn recv_buf_from(
                &self,
                buffer: &mut Vec<u8>,
            ) -> impl Future<Output = std::io::Result<(usize, $address)>> {
                self.source.read_with(|socket| {
                    let receive = |spare: &mut [u8]| $recv_from(socket, spare);
                    $crate::net::datagrams::into_spare(buffer, receive, |(n, _)| *n)
                })
            }

            /// Receives a datagram and its sender into the spare capacity of a vector without
            /// waiting; see [`recv_buf`](Self::recv_buf).
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](std::io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise
            /// as [`recv_buf_from`](Self::recv_buf_from).
            pub fn try_recv_buf_from(
                &self,
                buffer: &mut Vec<u8>,
            ) -> std::io::Result<(usize, $address)> {
                self.source.try_read_with(|socket| {
                    let receive = |spare: &mut [u8]| $recv_from(socket, spare);
                    $crate::net::datagrams::into_spare(buffer, receive, |(n, _)| *n)
                })
            }
        }
    };
}

/// The least room for a datagram in a vector.
const LEAST_ROOM: usize = 64;

/// Lets `receive` fill the spare capacity of a vector. `length` is how many bytes of it were
/// received.
pub(super) fn into_spare<R>(
    buffer: &mut Vec<u8>,
    receive: impl FnOnce(&mut [u8]) -> io::Result<R>,
    length: impl FnOnce(&R) -> usize,
) -> io::Result<R> {
    let before = buffer.len();
    if before == buffer.capacity() {
        buffer.reserve(LEAST_ROOM);
    }
    buffer.resize(buffer.capacity(), 0);
    let received = receive(&mut buffer[before..]);
    let filled = received.as_ref().map_or(0, length);
    buffer.truncate(before + filled);
    received
}

#[cfg(test)]
mod tests {
    use super::into_spare;
    use std::io::{self, ErrorKind};

    #[test]
    fn a_vector_grows_by_what_was_received_and_by_nothing_after_an_error() {
        let mut buffer = Vec::with_capacity(8);
        buffer.push(b'>');
        let capacity = buffer.capacity();
        let receive = |spare: &mut [u8]| {
            assert_eq!(spare.len(), capacity - 1);
            spare[..2].copy_from_slice(b"ab");
            Ok(2)
        };
        assert_eq!(into_spare(&mut buffer, receive, |n| *n).unwrap(), 2);
        assert_eq!(buffer, b">ab");
        let failed = |_: &mut [u8]| Err::<usize, _>(io::Error::from(ErrorKind::WouldBlock));
        assert!(into_spare(&mut buffer, failed, |n| *n).is_err());
        assert_eq!((&buffer[..], buffer.capacity()), (&b">ab"[..], capacity));
    }

    #[test]
    fn a_vector_without_room_gets_some() {
        let mut buffer = Vec::new();
        let receive = |spare: &mut [u8]| Ok(spare.len());
        let received = into_spare(&mut buffer, receive, |n| *n).unwrap();
        assert!(received >= 64 && buffer.len() == received);
    }
}
