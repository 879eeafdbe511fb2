//! Reads and writes that do not wait.

use std::io::{self, IoSlice, IoSliceMut};

use super::TcpStream;

/// Reading and writing without waiting.
impl TcpStream {
    /// Reads without waiting; 0 is EOF.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if no data has arrived; otherwise any OS error of
    /// `recv`.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::ErrorKind;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     let mut buffer = [0; 16];
    ///     assert_eq!(client.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    ///     server.try_write(b"hello")?;
    ///     client.readable().await?;
    ///     assert_eq!(client.try_read(&mut buffer)?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read(buffer)
    }

    /// Reads without waiting into several buffers; see [`try_read`](Self::try_read).
    ///
    /// # Errors
    ///
    /// The errors of [`try_read`](Self::try_read).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{IoSlice, IoSliceMut};
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     server.try_write_vectored(&[IoSlice::new(b"head"), IoSlice::new(b"body")])?;
    ///     client.readable().await?;
    ///     let (mut head, mut body) = ([0; 4], [0; 4]);
    ///     let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
    ///     client.try_read_vectored(&mut parts)?;
    ///     assert_eq!((&head, &body), (b"head", b"body"));
    ///     Ok(())
    /// }
    /// ```
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.try_read_vectored(buffers)
    }

    /// Reads without waiting, and appends to `buffer`; 0 is EOF. It reads as much as the spare
    /// capacity holds, and a buffer without any grows.
    ///
    /// # Errors
    ///
    /// The errors of [`try_read`](Self::try_read). They leave the buffer as it was.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io;
    /// use phaseloop::io::AsyncWriteExt;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _peer) = listener.accept().await?;
    ///     client.write_all(b"hello").await?;
    ///     let mut received = Vec::with_capacity(1024);
    ///     while received.len() < 5 {
    ///         server.readable().await?;
    ///         match server.try_read_buf(&mut received) {
    ///             Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
    ///             _ => {}
    ///         }
    ///     }
    ///     assert_eq!(received, b"hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn try_read_buf(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.source.try_receive(buffer)
    }

    /// Writes without waiting, and returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the send buffer is full; otherwise any OS error
    /// of `send`, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe) or
    /// [`ConnectionReset`](io::ErrorKind::ConnectionReset) if the peer is gone.
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
    ///     // The kernel takes what fits, and refuses the rest: the peer does not read.
    ///     while stream.try_write(&[0; 65_536]).is_ok() {}
    ///     Ok(())
    /// }
    /// ```
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write(buffer)
    }

    /// Writes several buffers without waiting; see [`try_write`](Self::try_write).
    ///
    /// # Errors
    ///
    /// The errors of [`try_write`](Self::try_write).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::{IoSlice, IoSliceMut};
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     server.try_write_vectored(&[IoSlice::new(b"head"), IoSlice::new(b"body")])?;
    ///     client.readable().await?;
    ///     let (mut head, mut body) = ([0; 4], [0; 4]);
    ///     let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut body)];
    ///     client.try_read_vectored(&mut parts)?;
    ///     assert_eq!((&head, &body), (b"head", b"body"));
    ///     Ok(())
    /// }
    /// ```
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.try_write_vectored(buffers)
    }

    /// Reads without consuming: the next read returns the same bytes.
    ///
    /// # Errors
    ///
    /// Any OS error of `recv`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no data.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::net::{TcpListener, TcpStream};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     server.try_write(b"hello")?;
    ///     let mut buffer = [0; 5];
    ///     assert_eq!(client.peek(&mut buffer).await?, 5);
    ///     client.read_exact(&mut buffer).await?; // the bytes are still there
    ///     Ok(())
    /// }
    /// ```
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read_with(|stream| stream.peek(buffer)).await
    }
}
