//! Pipes.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::Location;

use super::bytes::{impl_async_read, impl_async_write};
use super::source::Source;
use super::when_ready::Readiness;
use crate::event_loop::api::handle::{Close, impl_handle};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::descriptor;
use crate::sys::poller::Ready;

/// Creates a pipe: bytes written to the writer are read from the reader. Child processes inherit
/// neither end.
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
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (mut reader, mut writer) = phaseloop::io::pipe()?;
///     writer.write_all(b"hello").await?;
///     writer.close().await?; // or drop it
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// })
/// # }
/// ```
#[track_caller]
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let site = Location::caller();
    let (reader, writer) = descriptor::pipe()?;
    let blocks = true;
    let reader = PipeReader {
        source: register(reader, site)?,
        blocks,
    };
    let writer = PipeWriter {
        source: register(writer, site)?,
        blocks,
    };
    Ok((reader, writer))
}

/// Registers a non-blocking descriptor with the running loop.
#[track_caller]
fn register(end: OwnedFd, site: Site) -> io::Result<Source<File>> {
    Source::new_stream(&LoopHandle::current(), File::from(end), true, site)
}

/// Registers a foreign descriptor with the running loop, in non-blocking mode. It also returns
/// whether the descriptor was in blocking mode before.
#[track_caller]
fn adopt(
    end: OwnedFd,
    site: Site,
    fits: impl FnOnce(&descriptor::Access) -> bool,
) -> io::Result<(Source<File>, bool)> {
    let access = descriptor::access(&end)?;
    if !fits(&access) {
        let text = "the descriptor is not open for this direction";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    // Check first: a descriptor that cannot be polled must keep its mode.
    let source = register(end, site)?;
    if !access.is_nonblocking {
        descriptor::set_nonblocking(source.get_ref(), true)?;
    }
    Ok((source, !access.is_nonblocking))
}

/// Deregisters an end and restores its mode.
fn give_back(source: Source<File>, blocks: bool) -> io::Result<OwnedFd> {
    let end = OwnedFd::from(source.into_inner());
    if blocks {
        descriptor::set_nonblocking(&end, false)?;
    }
    Ok(end)
}

/// Closes the source and keeps the handle: later attempts fail without waiting.
fn end(source: &mut Source<File>) {
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
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (mut reader, mut writer) = pipe()?;
///     writer.write_all(b"hello").await?;
///     drop(writer);
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok(())
/// })
/// # }
/// ```
pub struct PipeReader {
    source: Source<File>,
    /// Whether the descriptor was in blocking mode, which `into_owned_fd` restores.
    blocks: bool,
}

impl PipeReader {
    /// Registers a descriptor with the running loop. It is set to non-blocking mode, which every
    /// process that shares its open file description sees.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is not open for reading,
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it cannot be polled (a regular
    /// file); otherwise any OS error of `fcntl` or `epoll_ctl`. The descriptor is closed in each
    /// case.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::AsyncReadExt;
    /// use phaseloop::io::PipeReader;
    /// use std::process::{Command, Stdio};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// phaseloop::block_on(async {
    ///     let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    ///     let mut output = PipeReader::from_fd(child.stdout.take().unwrap())?;
    ///     let mut text = String::new();
    ///     output.read_to_string(&mut text).await?;
    ///     assert_eq!(text, "hello\n");
    ///     # child.wait()?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    #[track_caller]
    pub fn from_fd(end: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::from_fd_at(end.into(), Location::caller())
    }

    /// Registers a descriptor on behalf of the caller at `site`.
    #[track_caller]
    pub(crate) fn from_fd_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_read)?;
        Ok(Self { source, blocks })
    }

    /// Deregisters the descriptor and returns it. Its blocking mode is restored; an end created by
    /// [`pipe`] is set to blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl`. The descriptor is closed then.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }

    /// Waits until the pipe is readable: data, EOF or an error.
    ///
    /// Dropping the returned future loses no data.
    pub fn readable(&self) -> Readiness<'_, File> {
        self.source.readable()
    }

    /// Reads without waiting; 0 is EOF.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the pipe is empty; otherwise any OS error of
    /// `read`.
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
/// # fn main() -> std::io::Result<()> {
/// phaseloop::block_on(async {
///     let (reader, writer) = pipe()?;
///     assert_eq!(writer.try_write(b"hello")?, 5);
///     drop(reader);
///     assert_eq!(writer.try_write(b"hello").unwrap_err().kind(), ErrorKind::BrokenPipe);
///     Ok(())
/// })
/// # }
/// ```
pub struct PipeWriter {
    source: Source<File>,
    /// Whether the descriptor was in blocking mode, which `into_owned_fd` restores.
    blocks: bool,
}

impl PipeWriter {
    /// Registers a descriptor with the running loop, in non-blocking mode; see
    /// [`PipeReader::from_fd`].
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it is not open for writing; otherwise the
    /// errors of [`PipeReader::from_fd`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_fd(end: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::from_fd_at(end.into(), Location::caller())
    }

    /// Registers a descriptor on behalf of the caller at `site`.
    #[track_caller]
    pub(crate) fn from_fd_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_write)?;
        Ok(Self { source, blocks })
    }

    /// Deregisters the descriptor and returns it. Its blocking mode is restored; an end created by
    /// [`pipe`] is set to blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl`. The descriptor is closed then.
    ///
    /// # Panics
    ///
    /// When the writer was closed through `AsyncWrite`.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }

    /// Waits until the pipe is writable, or has an error.
    ///
    /// Dropping the returned future writes nothing.
    pub fn writable(&self) -> Readiness<'_, File> {
        self.source.writable()
    }

    /// Writes without waiting, and returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the pipe is full; otherwise any OS error of
    /// `write`, such as [`BrokenPipe`](io::ErrorKind::BrokenPipe) if no reader is left.
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

        /// Returns the descriptor; panics when it was closed through `AsyncWrite`.
        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.get_ref().as_fd()
            }
        }

        impl fmt::Debug for $end {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($end)).field(&self.source).finish()
            }
        }
    };
}

impl_end!(PipeReader);
impl_end!(PipeWriter);
