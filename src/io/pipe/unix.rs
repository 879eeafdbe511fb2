//! Pipes of Unix: descriptors, and their mode.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;

use super::{PipeReader, PipeWriter, register};
use crate::io::source::Source;
use crate::site::Site;
use crate::sys::descriptor;

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
    let source = register(end.into(), site)?;
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
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    ///     let mut output = PipeReader::from_fd(child.stdout.take().unwrap())?;
    ///     let mut text = String::new();
    ///     output.read_to_string(&mut text).await?;
    ///     assert_eq!(text, "hello\n");
    ///     child.wait()?;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn from_fd(end: impl Into<OwnedFd>) -> io::Result<Self> {
        Self::from_owned_at(end.into(), Location::caller())
    }

    /// Registers a descriptor on behalf of the caller at `site`.
    #[track_caller]
    #[inline]
    pub(crate) fn from_owned_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_read)?;
        Ok(Self { source, blocks })
    }

    /// Deregisters the descriptor and returns it. Its blocking mode is restored; an end created by
    /// [`pipe`](crate::io::pipe()) is set to blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl`. The descriptor is closed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::{AsyncReadExt, PipeReader, PipeWriter};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = std::io::pipe()?;
    ///     let (mut reader, writer) = (PipeReader::from_fd(reader)?, PipeWriter::from_fd(writer)?);
    ///     writer.try_write(b"hello")?;
    ///     drop(writer.into_owned_fd()?);
    ///     let mut text = String::new();
    ///     reader.read_to_string(&mut text).await?;
    ///     assert_eq!(text, "hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }
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
        Self::from_owned_at(end.into(), Location::caller())
    }

    /// Registers a descriptor on behalf of the caller at `site`.
    #[track_caller]
    #[inline]
    pub(crate) fn from_owned_at(end: OwnedFd, site: Site) -> io::Result<Self> {
        let (source, blocks) = adopt(end, site, |access| access.can_write)?;
        Ok(Self { source, blocks })
    }

    /// Deregisters the descriptor and returns it. Its blocking mode is restored; an end created by
    /// [`pipe`](crate::io::pipe()) is set to blocking mode.
    ///
    /// # Errors
    ///
    /// Any OS error of `fcntl`. The descriptor is closed then.
    ///
    /// # Panics
    ///
    /// When the writer was closed through `AsyncWrite`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::{AsyncReadExt, PipeReader, PipeWriter};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (reader, writer) = std::io::pipe()?;
    ///     let (mut reader, writer) = (PipeReader::from_fd(reader)?, PipeWriter::from_fd(writer)?);
    ///     writer.try_write(b"hello")?;
    ///     drop(writer.into_owned_fd()?);
    ///     let mut text = String::new();
    ///     reader.read_to_string(&mut text).await?;
    ///     assert_eq!(text, "hello");
    ///     Ok(())
    /// }
    /// ```
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        give_back(self.source, self.blocks)
    }
}

macro_rules! impl_as_fd {
    ($end:ident) => {
        /// Returns the descriptor; panics when it was closed through `AsyncWrite`.
        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.get_ref().as_fd()
            }
        }

        /// Returns the descriptor; panics when it was closed through `AsyncWrite`.
        impl AsRawFd for $end {
            fn as_raw_fd(&self) -> RawFd {
                self.source.get_ref().as_raw_fd()
            }
        }
    };
}

impl_as_fd!(PipeReader);
impl_as_fd!(PipeWriter);
