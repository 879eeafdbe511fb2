//! The handles behind the standard streams.

use std::os::windows::io::{AsHandle, BorrowedHandle};

use super::{Stderr, Stdin, Stdout};

macro_rules! impl_borrow {
    ($stream:ident) => {
        /// The stream's own handle, not the standard one.
        impl AsHandle for $stream {
            fn as_handle(&self) -> BorrowedHandle<'_> {
                self.source.borrow()
            }
        }
    };
}

impl_borrow!(Stdin);
impl_borrow!(Stdout);
impl_borrow!(Stderr);
