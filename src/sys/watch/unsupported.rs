//! Platforms without an implementation.

use std::io;
use std::path::Path;
use std::rc::Rc;

use crate::sys::poller::Poller;
use crate::sys::watch::{Notice, WatchId};

/// This type has no values on this platform.
pub(crate) enum Notices {}

impl Notices {
    pub(crate) fn new(_: Rc<Poller>, _: usize) -> io::Result<Self> {
        let text = "file notifications are not implemented on this platform; use `watch_poll`";
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    pub(crate) fn owns(&self, _: usize) -> bool {
        match *self {}
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
