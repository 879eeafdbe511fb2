//! The descriptors behind the standard streams.

use std::os::fd::{AsFd, BorrowedFd};

use super::{Stderr, Stdin, Stdout};

macro_rules! impl_borrow {
    ($stream:ident) => {
        /// The handle's own descriptor, not the standard one.
        impl AsFd for $stream {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.borrow()
            }
        }
    };
}

impl_borrow!(Stdin);
impl_borrow!(Stdout);
impl_borrow!(Stderr);
