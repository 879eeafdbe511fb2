//! Pipes.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::panic::Location;

use super::bytes::{impl_async_read, impl_async_write};
use super::source::Source;
use super::when_ready::Readiness;
use crate::runtime::handle::{Close, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::pipe::{self as sys, PipeEnd};
use crate::sys::poller::Ready;

/// Creates a pipe: bytes written to the writer are read from the reader. Child processes inherit
/// neither end.
///
/// On Windows it is a named pipe with a name that no other pipe has.
///
/// # Errors
///
/// Any OS error of `pipe2` and `epoll_ctl`, such as `EMFILE` if the process has no descriptor left.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (mut reader, mut writer) = phaseloop::io::pipe()?;
///     writer.write_all(b"hello").await?;
///     writer.close().await?; // or drop it
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
#[track_caller]
#[inline]
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let site = Location::caller();
    let (reader, writer) = sys::pipe()?;
    let reader = PipeReader {
        source: register(reader, site)?,
        #[cfg(unix)]
        blocks: true,
    };
    let writer = PipeWriter {
        source: register(writer, site)?,
        #[cfg(unix)]
        blocks: true,
    };
    Ok((reader, writer))
}

/// Registers an end with the running loop.
#[track_caller]
#[inline]
fn register(end: PipeEnd, site: Site) -> io::Result<Source<PipeEnd>> {
    Source::new_stream(&LoopHandle::current(), end, true, site)
}

/// Closes the source and keeps the handle: later attempts fail without waiting.
fn end(source: &mut Source<PipeEnd>) {
    source.end();
    let for_good = Ready::READ_FOR_GOOD.with(Ready::WRITE_FOR_GOOD);
    source
        .state
        .add_ready(Ready::READ.with(Ready::WRITE).with(for_good));
}

/// The reading end of a pipe.
///
/// `PipeReader` and `&PipeReader` implement [`AsyncRead`](crate::io::AsyncRead). The `try_` methods
/// never wait. EOF comes when the last writer, in any process, is closed.
///
/// It also reads FIFOs, terminals and other character devices that can be polled. A pipe in packet
/// mode (`O_DIRECT`) delivers one packet a read. [`stdin`](super::stdin) also reads files.
///
/// On Windows a waiting reader has handed memory to the kernel, which puts up to 64 KiB there
/// before they are asked for.
///
/// # Cancel safety
///
/// A read whose future is dropped has consumed no data. One task at a time may wait through the
/// trait; any number may wait through [`readable`](Self::readable).
///
/// # Examples
///
/// ```
/// use phaseloop::io::{AsyncReadExt, AsyncWriteExt, pipe};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (mut reader, mut writer) = pipe()?;
///     writer.write_all(b"hello").await?;
///     drop(writer);
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// }
/// ```
pub struct PipeReader {
    source: Source<PipeEnd>,
    /// Whether the descriptor was in blocking mode, which `into_owned_fd` restores.
    #[cfg(unix)]
    blocks: bool,
}

impl PipeReader {
    /// Waits until the pipe is readable: data, EOF or an error.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::pipe;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = pipe()?;
    ///     writer.writable().await?;
    ///     assert_eq!(writer.try_write(b"hello")?, 5);
    ///     reader.readable().await?;
    ///     assert_eq!(reader.try_read(&mut [0; 16])?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn readable(&self) -> Readiness<'_, PipeEnd> {
        self.source.readable()
    }

    /// Reads without waiting; 0 is EOF.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the pipe is empty; otherwise any OS error of
    /// `read`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::pipe;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = pipe()?;
    ///     writer.writable().await?;
    ///     assert_eq!(writer.try_write(b"hello")?, 5);
    ///     reader.readable().await?;
    ///     assert_eq!(reader.try_read(&mut [0; 16])?, 5);
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
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.try_read_vectored(buffers)
    }

    /// Closes the descriptor at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::{AsyncReadExt, pipe};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (mut reader, writer) = pipe()?;
    ///     writer.close_now().await;
    ///     assert_eq!(reader.read(&mut [0; 8]).await?, 0); // EOF
    ///     reader.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl_async_read!(PipeReader);

/// The writing end of a pipe.
///
/// `PipeWriter` and `&PipeWriter` implement [`AsyncWrite`](crate::io::AsyncWrite). The `try_`
/// methods never wait. A write fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe) once no reader
/// is left.
///
/// On Windows a write hands up to 64 KiB to the kernel, and completes before the reader has made
/// room for them. `flush` waits until the kernel has them all; an error of theirs is that of the
/// next write or flush. Dropping the writer delivers them nevertheless, before the reader gets EOF,
/// unless this process ends first.
///
/// The reader gets EOF when the last writer is closed. Closing through `AsyncWrite` and dropping
/// both close the writer; later writes fail with `BrokenPipe`. Closing through a `&PipeWriter` does
/// nothing, since other references may still write.
///
/// # Cancel safety
///
/// A write whose future is dropped has written nothing. One task at a time may wait through the
/// trait; any number may wait through [`writable`](Self::writable).
///
/// # Examples
///
/// ```
/// use std::io::ErrorKind;
/// use phaseloop::io::pipe;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (reader, writer) = pipe()?;
///     assert_eq!(writer.try_write(b"hello")?, 5);
///     drop(reader);
///     assert_eq!(writer.try_write(b"hello").unwrap_err().kind(), ErrorKind::BrokenPipe);
///     Ok(())
/// }
/// ```
pub struct PipeWriter {
    source: Source<PipeEnd>,
    /// Whether the descriptor was in blocking mode, which `into_owned_fd` restores.
    #[cfg(unix)]
    blocks: bool,
}

impl PipeWriter {
    /// Waits until the pipe is writable, or has an error.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; nothing was written.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::pipe;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = pipe()?;
    ///     writer.writable().await?;
    ///     assert_eq!(writer.try_write(b"hello")?, 5);
    ///     reader.readable().await?;
    ///     assert_eq!(reader.try_read(&mut [0; 16])?, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn writable(&self) -> Readiness<'_, PipeEnd> {
        self.source.writable()
    }

    /// Writes without waiting, and returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the pipe is full; otherwise any OS error of
    /// `write`, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe) if no reader is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::pipe;
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = pipe()?;
    ///     writer.writable().await?;
    ///     assert_eq!(writer.try_write(b"hello")?, 5);
    ///     reader.readable().await?;
    ///     assert_eq!(reader.try_read(&mut [0; 16])?, 5);
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
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.try_write_vectored(buffers)
    }

    /// Closes the descriptor at once. The close completes in the closing phase; see [`Close`].
    ///
    /// `close` is the method of `AsyncWriteExt`, which closes without a notification.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::{AsyncReadExt, pipe};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (mut reader, writer) = pipe()?;
    ///     writer.close_now().await;
    ///     assert_eq!(reader.read(&mut [0; 8]).await?, 0); // EOF
    ///     reader.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn close_now(self) -> Close {
        self.source.close()
    }
}

impl_async_write!(
    PipeWriter,
    |writer| {
        end(&mut writer.source);
        Ok(())
    },
    |_writer| Ok(())
);

macro_rules! impl_end {
    ($end:ident) => {
        impl_handle!($end, |this| this.source.handle_core());

        impl fmt::Debug for $end {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($end)).field(&self.source).finish()
            }
        }
    };
}

impl_end!(PipeReader);
impl_end!(PipeWriter);
