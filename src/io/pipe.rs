//! The ends of pipes.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::Location;

use super::bytes::{impl_async_read, impl_async_write};
use super::source::{Readiness, Source};
use crate::event_loop::api::handle::{Close, Handle, HandleCore, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::descriptor;
use crate::sys::poller::Ready;

/// A pipe: what is written to its one end is read from the other. Neither end is inherited by child processes.
///
/// # Errors
///
/// The system's, when it has no descriptors left.
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

/// Puts a descriptor that does not block on the running loop.
#[track_caller]
fn register(end: OwnedFd, site: Site) -> io::Result<Source<File>> {
    Source::new_stream(&LoopHandle::current(), File::from(end), true, site)
}

/// Puts a descriptor that was open before on the running loop. Also returns whether it blocked.
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
    // Asked first: a descriptor that cannot be watched keeps its mode.
    let source = register(end, site)?;
    if !access.is_nonblocking {
        descriptor::set_nonblocking(source.get_ref(), true)?;
    }
    Ok((source, !access.is_nonblocking))
}

/// Takes an end off the loop, in the mode in which it came.
fn give_back(source: Source<File>, blocks: bool) -> io::Result<OwnedFd> {
    let end = OwnedFd::from(source.into_inner());
    if blocks {
        descriptor::set_nonblocking(&end, false)?;
    }
    Ok(end)
}

/// Closes the source and leaves the handle: every attempt fails from now on, without waiting.
fn end(source: &mut Source<File>) {
    source.end();
    let for_good = Ready::READ_FOR_GOOD.with(Ready::WRITE_FOR_GOOD);
    source
        .state
        .add_ready(Ready::READ.with(Ready::WRITE).with(for_good));
}

/// The end of a pipe to read from.
///
/// Reads go through [`AsyncRead`](crate::io::AsyncRead), which is implemented for `PipeReader` and `&PipeReader`, or
/// through the `try_` methods, which never wait. The end of the stream comes when the last writer is closed, in whatever
/// process.
///
/// Besides pipes it takes everything that is read as one and can be watched: named pipes, terminals and other character
/// devices. A pipe in packet mode (`O_DIRECT`) gives a packet a read. [`stdin`](super::stdin) is for what may be a file,
/// too.
///
/// # Cancel safety
///
/// A read that was given up has taken nothing. One task at a time may wait through the trait; through
/// [`readable`](Self::readable), any number.
pub struct PipeReader {
    source: Source<File>,
    /// Whether it blocks off the loop.
    blocks: bool,
}

impl PipeReader {
    /// Puts a descriptor on the running loop. It is made non-blocking, for everybody who shares it.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) when it is not open for reading,
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) when it cannot be watched (a regular file), else the system's.
    /// The descriptor is closed then.
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

    /// The same, made by the line `site`.
    #[track_caller]
    pub(crate) fn from_fd_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_read)?;
        Ok(Self { source, blocks })
    }

    /// Takes the end off the loop. It blocks again if it did when it came; that of a fresh [`pipe`] does.
    ///
    /// # Errors
    ///
    /// The system's; the end is closed then.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }

    /// Waits until there is something to read, the end, or an error.
    pub fn readable(&self) -> Readiness<'_, File> {
        self.source.readable()
    }

    /// Reads what is there; 0 is the end.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is nothing now, else the system's.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.try_read_bytes(buffer)
    }

    /// Reads what is there into several buffers; see [`try_read`](Self::try_read).
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source.try_read_buffers(buffers)
    }

    /// Closes the end at once and has that reported in the closing phase; see [`Close`].
    pub fn close(self) -> Close {
        self.source.close()
    }
}

impl_async_read!(PipeReader);

/// The end of a pipe to write to.
///
/// Writes go through [`AsyncWrite`](crate::io::AsyncWrite), which is implemented for `PipeWriter` and `&PipeWriter`, or
/// through the `try_` methods, which never wait. Whether the other end is still there shows in the next write.
///
/// The reader sees the end when the last writer is closed. Closing through `AsyncWrite` does that, as dropping does; later
/// writes fail with [`BrokenPipe`](io::ErrorKind::BrokenPipe). Through a `&PipeWriter`, which may not be the only one,
/// it does nothing.
///
/// # Cancel safety
///
/// A write that was given up has written nothing. One task at a time may wait through the trait; through
/// [`writable`](Self::writable), any number.
pub struct PipeWriter {
    source: Source<File>,
    /// Whether it blocks off the loop.
    blocks: bool,
}

impl PipeWriter {
    /// Puts a descriptor on the running loop; see [`PipeReader::from_fd`].
    ///
    /// # Errors
    ///
    /// As there: [`InvalidInput`](io::ErrorKind::InvalidInput) when it is not open for writing.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_fd(end: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::from_fd_at(end.into(), Location::caller())
    }

    /// The same, made by the line `site`.
    #[track_caller]
    pub(crate) fn from_fd_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_write)?;
        Ok(Self { source, blocks })
    }

    /// Takes the end off the loop. It blocks again if it did when it came; that of a fresh [`pipe`] does.
    ///
    /// # Errors
    ///
    /// The system's; the end is closed then.
    ///
    /// # Panics
    ///
    /// When it was closed through `AsyncWrite`.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }

    /// Waits until there is room to write, or an error.
    pub fn writable(&self) -> Readiness<'_, File> {
        self.source.writable()
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when there is none now, else the system's:
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when no reader is left.
    pub fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.source.try_write_bytes(buffer)
    }

    /// Writes from several buffers; see [`try_write`](Self::try_write).
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source.try_write_buffers(buffers)
    }

    /// Closes the end at once and has that reported in the closing phase; see [`Close`].
    ///
    /// Not named `close`: that is the name under which `AsyncWriteExt` closes it without a report.
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
        impl Handle for $end {}

        impl sealed::Sealed for $end {
            fn handle_core(&self) -> &HandleCore {
                self.source.handle_core()
            }
        }

        /// The descriptor; panics when it was closed through `AsyncWrite`.
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
