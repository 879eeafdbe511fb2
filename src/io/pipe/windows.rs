//! Pipes of Windows: handles that were opened for overlapped operations.

use std::io;
use std::os::windows::io::{AsHandle, BorrowedHandle, OwnedHandle};
use std::panic::Location;

use super::{PipeReader, PipeWriter, register};
use crate::site::Site;
use crate::sys::pipe::{Access, PipeEnd};

impl PipeReader {
    /// Registers the reading end of a pipe with the running loop. Windows only.
    ///
    /// The handle must have been opened for overlapped operations, as the standard library does for
    /// the streams of its children.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it was not opened so; otherwise any OS
    /// error of `CreateEvent`. The handle is closed in each case.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_handle(end: impl Into<OwnedHandle>) -> io::Result<Self> {
        Self::from_owned_at(end.into(), Location::caller())
    }

    /// Registers an end on behalf of the caller at `site`.
    #[track_caller]
    pub(crate) fn from_owned_at(end: OwnedHandle, site: Site) -> io::Result<Self> {
        let source = register(PipeEnd::new(end, Access::Read)?, site)?;
        Ok(Self { source })
    }
}

impl PipeWriter {
    /// Registers the writing end of a pipe with the running loop; see [`PipeReader::from_handle`].
    /// Windows only.
    ///
    /// # Errors
    ///
    /// The errors of [`PipeReader::from_handle`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn from_handle(end: impl Into<OwnedHandle>) -> io::Result<Self> {
        Self::from_owned_at(end.into(), Location::caller())
    }

    /// Registers an end on behalf of the caller at `site`.
    #[track_caller]
    pub(crate) fn from_owned_at(end: OwnedHandle, site: Site) -> io::Result<Self> {
        let source = register(PipeEnd::new(end, Access::Write)?, site)?;
        Ok(Self { source })
    }
}

macro_rules! impl_as_handle {
    ($end:ident) => {
        /// Returns the handle; panics when it was closed through `AsyncWrite`.
        impl AsHandle for $end {
            fn as_handle(&self) -> BorrowedHandle<'_> {
                self.source.get_ref().as_handle()
            }
        }
    };
}

impl_as_handle!(PipeReader);
impl_as_handle!(PipeWriter);
