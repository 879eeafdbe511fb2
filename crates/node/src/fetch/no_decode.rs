//! Bodies as they are received: the feature `fetch-gzip` is off.

use crate::error::Error;

/// Returns what the peer may compress bodies with.
pub(super) fn accepted(_: &str) -> Option<&'static str> {
    None
}

/// Unpacks nothing.
#[derive(Debug)]
pub(super) enum Decoder {}

impl Decoder {
    pub(super) fn of(_: Option<&str>) -> Result<Option<Self>, Error> {
        Ok(None)
    }

    pub(super) fn feed(&mut self, _: Vec<u8>) {
        match *self {}
    }

    pub(super) fn step(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match *self {}
    }

    pub(super) fn finish(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match *self {}
    }
}
