//! What exists on Windows only.

use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, RawHandle};

use super::file::File;

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
