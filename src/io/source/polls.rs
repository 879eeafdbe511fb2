//! The poll functions of a source, for one caller at a time.

use std::io;
use std::task::{Context, Poll};

use super::Source;
use crate::event_loop::io::sources::Direction;
use crate::sys::poller::AsSource;

/// Polling, for one caller at a time and direction.
impl<T: AsSource> Source<T> {
    /// Polls for readability; the function behind [`readable`](Self::readable), for one caller at a
    /// time: only the last waker is kept.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it. `ECANCELED` if
    /// the source was closed through a view.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::future::poll_fn;
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, mut theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     poll_fn(|cx| source.poll_writable(cx)).await?;
    ///     poll_fn(|cx| source.poll_write_with(cx, |mut stream| stream.write(b"ping"))).await?;
    ///     theirs.write_all(b"pong")?;
    ///     poll_fn(|cx| source.poll_readable(cx)).await?;
    ///     let read = |mut stream: &UnixStream| stream.read(&mut [0; 16]);
    ///     assert_eq!(poll_fn(|cx| source.poll_read_with(cx, read)).await?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Read, cx)
    }

    /// Polls for writability; see [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it. `ECANCELED` if
    /// the source was closed through a view.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::future::poll_fn;
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, mut theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     poll_fn(|cx| source.poll_writable(cx)).await?;
    ///     poll_fn(|cx| source.poll_write_with(cx, |mut stream| stream.write(b"ping"))).await?;
    ///     theirs.write_all(b"pong")?;
    ///     poll_fn(|cx| source.poll_readable(cx)).await?;
    ///     let read = |mut stream: &UnixStream| stream.read(&mut [0; 16]);
    ///     assert_eq!(poll_fn(|cx| source.poll_read_with(cx, read)).await?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Write, cx)
    }

    /// Polls a reading operation; the function behind [`read_with`](Self::read_with), for one
    /// caller at a time.
    ///
    /// # Errors
    ///
    /// The errors of `operation`, other than `WouldBlock` and `Interrupted`.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::future::poll_fn;
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, mut theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     poll_fn(|cx| source.poll_writable(cx)).await?;
    ///     poll_fn(|cx| source.poll_write_with(cx, |mut stream| stream.write(b"ping"))).await?;
    ///     theirs.write_all(b"pong")?;
    ///     poll_fn(|cx| source.poll_readable(cx)).await?;
    ///     let read = |mut stream: &UnixStream| stream.read(&mut [0; 16]);
    ///     assert_eq!(poll_fn(|cx| source.poll_read_with(cx, read)).await?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_read_with<R>(
        &self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Direction::Read, cx, operation)
    }

    /// Polls a writing operation; the function behind [`write_with`](Self::write_with), for one
    /// caller at a time.
    ///
    /// # Errors
    ///
    /// The errors of `operation`, other than `WouldBlock` and `Interrupted`.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::future::poll_fn;
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, mut theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     poll_fn(|cx| source.poll_writable(cx)).await?;
    ///     poll_fn(|cx| source.poll_write_with(cx, |mut stream| stream.write(b"ping"))).await?;
    ///     theirs.write_all(b"pong")?;
    ///     poll_fn(|cx| source.poll_readable(cx)).await?;
    ///     let read = |mut stream: &UnixStream| stream.read(&mut [0; 16]);
    ///     assert_eq!(poll_fn(|cx| source.poll_read_with(cx, read)).await?, 4);
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_write_with<R>(
        &self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Direction::Write, cx, operation)
    }
}
