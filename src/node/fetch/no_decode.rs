//! Bodies as they are received: the feature `fetch-gzip` is off.

use std::io;

/// What the peer may compress bodies with.
pub(super) const ACCEPTED: Option<&str> = None;

/// Unpacks nothing.
#[derive(Debug)]
pub(super) enum Decoder {}

impl Decoder {
    pub(super) fn of(_: Option<&str>) -> Option<Self> {
        None
    }

    pub(super) fn feed(&mut self, _: Vec<u8>) {
        match *self {}
    }

    pub(super) fn step(&mut self) -> io::Result<Option<Vec<u8>>> {
        match *self {}
    }

    pub(super) fn finish(&mut self) -> io::Result<Option<Vec<u8>>> {
        match *self {}
    }
}
