//! What exists on Windows only.

use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle, RawHandle};

use super::file::File;

/// Directories have no modes here.
pub(super) fn set_mode(_: &mut std::fs::DirBuilder, _: u32) {}

/// Wraps an open handle, as [`File::from_std`] does.
impl From<OwnedHandle> for File {
    fn from(file: OwnedHandle) -> Self {
        Self::from_std(file.into())
    }
}

impl AsHandle for File {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.get_ref().as_handle()
    }
}

impl AsRawHandle for File {
    fn as_raw_handle(&self) -> RawHandle {
        self.get_ref().as_raw_handle()
    }
}
