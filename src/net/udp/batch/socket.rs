//! Sending and receiving batches.

use std::io;
use std::task::{Context, Poll, ready};

use super::Batch;
use crate::net::UdpSocket;

/// Datagrams in batches.
impl UdpSocket {
    /// Replaces the datagrams of `batch` by received ones: at least one, at most its capacity.
    /// Returns their number.
    ///
    /// A datagram longer than its buffer is truncated and [marked](super::Datagram::is_truncated).
    ///
    /// # Errors
    ///
    /// Any OS error of `recvmmsg`. The batch is empty then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing was received.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     for text in [b"one", b"two"] {
    ///         socket.send_to(text, socket.local_addr()?).await?;
    ///     }
    ///     let mut batch = Batch::new(64, 1500);
    ///     socket.recv_batch(&mut batch).await?; // what has arrived, by one system call
    ///     for datagram in &batch {
    ///         println!("{:?} from {:?}", datagram.bytes(), datagram.address());
    ///     }
    ///     assert!(!batch.is_empty());
    ///     Ok(())
    /// }
    /// ```
    pub async fn recv_batch(&self, batch: &mut Batch) -> io::Result<usize> {
        self.source.read_with(|socket| batch.receive(socket)).await
    }

    /// Sends the datagrams of `batch` in order, and waits while the send buffer is full. Sent
    /// datagrams leave the batch; on success it is empty.
    ///
    /// # Errors
    ///
    /// The OS error of `sendmmsg` for one datagram. The datagrams before it were sent. Those behind
    /// it were not; they are still in the batch for the next call. The failed datagram leaves the
    /// batch, and [`Batch::failed`] returns it. As with [`send`](Self::send), the error may report
    /// an earlier datagram ([`ConnectionRefused`](io::ErrorKind::ConnectionRefused)), but this
    /// datagram was not sent.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, sent datagrams have left the batch and the
    /// rest is in it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let here = socket.local_addr()?;
    ///     let mut batch = Batch::new(8, 100_000);
    ///     batch.push(b"one", here)?;
    ///     batch.push(&[0; 100_000], here)?; // More than UDP can carry.
    ///     batch.push(b"two", here)?;
    ///     let mut refused = Vec::new();
    ///     while let Err(_error) = socket.send_batch(&mut batch).await {
    ///         refused.extend(batch.failed().map(|datagram| datagram.bytes().len()));
    ///     }
    ///     assert_eq!(refused, [100_000]);
    ///     Ok(())
    /// }
    /// ```
    pub async fn send_batch(&self, batch: &mut Batch) -> io::Result<()> {
        batch.has_failed = false;
        while !batch.is_empty() {
            self.source.write_with(|socket| batch.send(socket)).await?;
        }
        Ok(())
    }

    /// Replaces the datagrams of `batch` by received ones, without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram has arrived; otherwise as
    /// [`recv_batch`](Self::recv_batch).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::net::{Batch, UdpSocket};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     for text in [b"one", b"two"] {
    ///         socket.send_to(text, socket.local_addr()?).await?;
    ///     }
    ///     let mut batch = Batch::new(64, 1500);
    ///     socket.recv_batch(&mut batch).await?; // what has arrived, by one system call
    ///     for datagram in &batch {
    ///         println!("{:?} from {:?}", datagram.bytes(), datagram.address());
    ///     }
    ///     assert!(!batch.is_empty());
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn try_recv_batch(&self, batch: &mut Batch) -> io::Result<usize> {
        self.source.try_read_with(|socket| batch.receive(socket))
    }

    /// Sends datagrams of `batch` without waiting, with one system call on Linux, and returns their
    /// number. Sent datagrams leave the batch. If a datagram other than the first fails, the next
    /// call returns its error.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise as
    /// [`send_batch`](Self::send_batch).
    #[inline]
    pub fn try_send_batch(&self, batch: &mut Batch) -> io::Result<usize> {
        self.source.try_write_with(|socket| batch.send(socket))
    }

    /// Polls [`recv_batch`](Self::recv_batch). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`recv_batch`](Self::recv_batch).
    #[inline]
    pub fn poll_recv_batch(
        &self,
        cx: &mut Context<'_>,
        batch: &mut Batch,
    ) -> Poll<io::Result<usize>> {
        self.source
            .poll_read_with(cx, |socket| batch.receive(socket))
    }

    /// Polls [`send_batch`](Self::send_batch). One task at a time may wait this way.
    ///
    /// # Errors
    ///
    /// The errors of [`send_batch`](Self::send_batch).
    #[inline]
    pub fn poll_send_batch(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        batch.has_failed = false;
        while !batch.is_empty() {
            ready!(self.source.poll_write_with(cx, |socket| batch.send(socket)))?;
        }
        Poll::Ready(Ok(()))
    }
}
