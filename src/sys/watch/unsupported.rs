//! Where nothing fits.

use std::io;
use std::path::Path;
use std::rc::Rc;

use super::{Notice, WatchId};
use crate::sys::poller::Poller;

/// Cannot be made.
pub(crate) enum Notices {}

impl Notices {
    pub(crate) fn new(_: Rc<Poller>, _: usize) -> io::Result<Self> {
        let text = "this system's notices about files are not known; `watch_poll` works everywhere";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    pub(crate) fn add(&self, _: &Path) -> io::Result<WatchId> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: WatchId) {
        match *self {}
    }

    pub(crate) fn read(&self, _: usize, _: impl FnMut(Notice)) -> io::Result<bool> {
        match *self {}
    }
}
