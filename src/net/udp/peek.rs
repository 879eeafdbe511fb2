//! Looking at a datagram that stays.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use super::UdpSocket;

/// Receiving without consuming: the next receive returns the same datagram.
impl UdpSocket {
    /// Receives a datagram without consuming it. Bytes beyond the length of the buffer are left
    /// out.
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
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.send_to(b"hello", socket.local_addr()?).await?;
    ///     let mut buffer = [0; 1500];
    ///     assert_eq!(socket.peek(&mut buffer).await?, 5);
    ///     assert_eq!(socket.recv(&mut buffer).await?, 5); // the datagram is still there
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn peek(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.source.read_with(|socket| socket.peek(buffer))
    }

    /// Receives a datagram without consuming it and without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise as
    /// [`peek`](Self::peek).
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
    ///     socket.readable().await?;
    ///     assert_eq!(socket.try_peek(&mut [0; 1500])?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read_with(|socket| socket.peek(buffer))
    }

    /// Polls [`peek`](Self::peek). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`peek`](Self::peek).
    pub fn poll_peek(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.source.poll_read_with(cx, |socket| socket.peek(buffer))
    }

    /// Receives a datagram without consuming it, and returns its length and its sender.
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
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let address = socket.local_addr()?;
    ///     socket.send_to(b"hello", address).await?;
    ///     assert_eq!(socket.peek_from(&mut [0; 1500]).await?, (5, address));
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn peek_from(
        &self,
        buffer: &mut [u8],
    ) -> impl Future<Output = io::Result<(usize, SocketAddr)>> {
        self.source.read_with(|socket| socket.peek_from(buffer))
    }

    /// Receives a datagram and its sender without consuming it and without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise as
    /// [`peek_from`](Self::peek_from).
    pub fn try_peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.try_read_with(|socket| socket.peek_from(buffer))
    }

    /// Polls [`peek_from`](Self::peek_from). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`peek_from`](Self::peek_from).
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.source
            .poll_read_with(cx, |socket| socket.peek_from(buffer))
    }

    /// Returns the sender of the next datagram, which stays.
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
    ///     let a = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let b = UdpSocket::bind("127.0.0.1:0").await?;
    ///     a.send_to(b"hello", b.local_addr()?).await?;
    ///     assert_eq!(b.peek_sender().await?, a.local_addr()?);
    ///     assert_eq!(b.recv(&mut [0; 16]).await?, 5);
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn peek_sender(&self) -> impl Future<Output = io::Result<SocketAddr>> {
        self.source
            .read_with(|socket| sender(socket.peek_from(&mut [])))
    }

    /// Returns the sender of the next datagram without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise as
    /// [`peek_sender`](Self::peek_sender).
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
    ///     socket.readable().await?;
    ///     assert_eq!(socket.try_peek_sender()?, socket.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.source
            .try_read_with(|socket| sender(socket.peek_from(&mut [])))
    }

    /// Polls [`peek_sender`](Self::peek_sender). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`peek_sender`](Self::peek_sender).
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.source
            .poll_read_with(cx, |socket| sender(socket.peek_from(&mut [])))
    }
}

fn sender(peeked: io::Result<(usize, SocketAddr)>) -> io::Result<SocketAddr> {
    peeked.map(|(_, sender)| sender)
}
