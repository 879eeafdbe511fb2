//! Splitting a stream into two halves.

use std::cell::Cell;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};

use crate::sys::poller::Maker;

/// A stream whose two directions can be used at once through `&T`.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{Duplex, split};
/// use phaseloop::net::{TcpListener, TcpStream};
///
/// fn end<S: Duplex>(stream: S) {
///     let (_reader, writer) = split(stream);
///     drop(writer); // shuts the writing direction down
/// }
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     end(TcpStream::connect(listener.local_addr()?).await?);
///     Ok(())
/// }
/// ```
pub trait Duplex {
    /// Shuts down the writing direction: the peer sees EOF.
    ///
    /// # Errors
    ///
    /// Any OS error of `shutdown`, such as `NotConnected` if the peer is gone.
    fn shutdown_write(&self) -> io::Result<()>;
}

/// Splits a stream into a reading half and a writing half, for two tasks.
///
/// Dropping the writing half shuts down its direction. The stream closes when both halves are
/// dropped. [`OwnedWriteHalf::reunite`] joins the halves again.
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
///     let (server, _) = listener.accept().await?;
///     // `io::split(server)` does the same.
///     let (mut read, mut write) = server.into_split();
///     let mut client_write = &client;
///     client_write.write_all(b"ping").await?;
///     let mut buffer = [0; 4];
///     read.read_exact(&mut buffer).await?;
///     write.write_all(&buffer).await?;
///     let server = write.reunite(read).expect("halves of one stream");
///     assert_eq!(server.peer_addr()?, client.local_addr()?);
///     Ok(())
/// }
/// ```
pub fn split<S: Duplex>(stream: S) -> (OwnedReadHalf<S>, OwnedWriteHalf<S>) {
    let stream = Rc::new(stream);
    let write = OwnedWriteHalf {
        stream: stream.clone(),
        shutdown_on_drop: Cell::new(true),
        maker: Maker::this_process(),
    };
    (OwnedReadHalf { stream }, write)
}

/// The reading half of a stream.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt, split};
/// use phaseloop::net::UnixStream;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (one, other) = UnixStream::pair()?;
///     let (mut read, _write) = split(one);
///     (&other).write_all(b"hello").await?;
///     drop(other);
///     let mut text = String::new();
///     read.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
pub struct OwnedReadHalf<S: Duplex> {
    stream: Rc<S>,
}

/// The writing half of a stream. Dropping it shuts down that direction.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt, split};
/// use phaseloop::net::UnixStream;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (one, mut other) = UnixStream::pair()?;
///     let (_read, mut write) = split(one);
///     write.write_all(b"hello").await?;
///     drop(write); // `other` gets EOF
///     let mut text = String::new();
///     other.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
pub struct OwnedWriteHalf<S: Duplex> {
    stream: Rc<S>,
    shutdown_on_drop: Cell<bool>,
    /// In a forked child the drop leaves the direction open: it is that of the parent, too.
    maker: Maker,
}

impl<S: Duplex> OwnedReadHalf<S> {
    /// Returns the whole stream.
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
    ///     let (reader, writer) = stream.into_split();
    ///     assert_eq!(reader.get_ref().peer_addr()?, listener.local_addr()?);
    ///     writer.get_ref().set_nodelay(true)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Duplex> OwnedWriteHalf<S> {
    /// Returns the whole stream.
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
    ///     let (reader, writer) = stream.into_split();
    ///     assert_eq!(reader.get_ref().peer_addr()?, listener.local_addr()?);
    ///     writer.get_ref().set_nodelay(true)?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.stream
    }

    /// Notes that the direction is shut down.
    #[cfg(feature = "tokio-io")]
    pub(crate) fn note_shutdown(&self) {
        self.shutdown_on_drop.set(false);
    }

    /// Drops the half without shutting down its direction.
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
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (server, _) = listener.accept().await?;
    ///     let (mut reader, writer) = client.into_split();
    ///     writer.forget(); // the server gets no EOF
    ///     server.try_write(b"hello")?;
    ///     assert_eq!(reader.read(&mut [0; 16]).await?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn forget(self) {
        self.shutdown_on_drop.set(false);
    }

    /// Joins the halves again.
    ///
    /// # Errors
    ///
    /// Returns both halves if they belong to different streams.
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
    ///     let (reader, writer) = stream.into_split();
    ///     let stream = writer.reunite(reader).unwrap();
    ///     assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn reunite(self, read: OwnedReadHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Rc::ptr_eq(&self.stream, &read.stream) {
            return Err(ReuniteError(read, self));
        }
        self.shutdown_on_drop.set(false);
        drop(self);
        Rc::try_unwrap(read.stream).map_err(|_| unreachable!("a stream has two halves"))
    }
}

/// Returns the whole stream.
impl<S: Duplex> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

/// Returns the whole stream.
impl<S: Duplex> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Duplex> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.shutdown_on_drop.get() && !self.maker.is_parent() {
            // The peer may be gone, and a drop cannot return the error.
            let _ = self.stream.shutdown_write();
        }
    }
}

impl<S: Duplex> AsyncRead for OwnedReadHalf<S>
where
    for<'a> &'a S: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.stream).poll_read(cx, buffer)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.stream).poll_read_vectored(cx, buffers)
    }
}

impl<S: Duplex> AsyncWrite for OwnedWriteHalf<S>
where
    for<'a> &'a S: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.stream).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.stream).poll_write_vectored(cx, buffers)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self.stream).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut &*self.stream).poll_close(cx))?;
        self.shutdown_on_drop.set(false);
        Poll::Ready(Ok(()))
    }
}

impl<S: Duplex + fmt::Debug> fmt::Debug for OwnedReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedReadHalf").field(&self.stream).finish()
    }
}

impl<S: Duplex + fmt::Debug> fmt::Debug for OwnedWriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedWriteHalf").field(&self.stream).finish()
    }
}

/// The error of [`OwnedWriteHalf::reunite`]: the halves belong to different streams.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::{io::{ReuniteError, split}, net::UnixStream};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (one, other) = UnixStream::pair()?;
///     let ((reader, _), (_, writer)) = (split(one), split(other));
///     // The error returns both halves.
///     let ReuniteError(_reader, _writer) = writer.reunite(reader).unwrap_err();
///     Ok(())
/// }
/// ```
pub struct ReuniteError<S: Duplex>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

impl<S: Duplex> fmt::Debug for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The halves have no text that would help, so there is no longer form.
        fmt::Display::fmt(self, f)
    }
}

impl<S: Duplex> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of one stream")
    }
}

impl<S: Duplex> std::error::Error for ReuniteError<S> {}

#[cfg(test)]
mod tests {
    use super::{Duplex, split};
    use futures::io::AsyncWrite;
    use std::cell::Cell;
    use std::io;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll};

    /// A stream whose first close waits, as one that has bytes to send does.
    struct Slow {
        closes: Cell<u32>,
        shutdowns: Rc<Cell<u32>>,
    }

    impl Duplex for Slow {
        fn shutdown_write(&self) -> io::Result<()> {
            self.shutdowns.set(self.shutdowns.get() + 1);
            Ok(())
        }
    }

    impl AsyncWrite for &Slow {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buffer.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.closes.set(self.closes.get() + 1);
            match self.closes.get() {
                1 => Poll::Pending,
                _ => Poll::Ready(Ok(())),
            }
        }
    }

    #[test]
    fn a_close_that_is_given_up_leaves_the_shutdown_to_the_drop() {
        let mut task = tokio_test::task::spawn(());
        for (polls, shutdowns) in [(0, 1), (1, 1), (2, 0)] {
            let seen = Rc::new(Cell::new(0));
            let (_read, mut write) = split(Slow {
                closes: Cell::new(0),
                shutdowns: seen.clone(),
            });
            for _ in 0..polls {
                let _ = task.enter(|cx, _| Pin::new(&mut write).poll_close(cx));
            }
            drop(write);
            assert_eq!(seen.get(), shutdowns, "after {polls} polls of the close");
        }
    }
}
