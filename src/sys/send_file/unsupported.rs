//! Other platforms: the caller copies.

use std::fs::File;
use std::io;

use crate::sys::poller::AsSource;

pub(super) fn cached(_: &File, _: u64, _: usize) -> Option<usize> {
    None
}

pub(super) fn send(_: &impl AsSource, _: &File, _: u64, _: usize) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
