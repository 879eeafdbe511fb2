//! Platforms without local sockets.

use std::io;
use std::path::Path;

use super::connection::{Connection, Listener};
use crate::site::Site;

pub(super) async fn connect(_path: &Path, _site: Site) -> io::Result<Box<dyn Connection>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn listen(_path: &Path, _site: Site) -> io::Result<Box<dyn Listener>> {
    Err(io::ErrorKind::Unsupported.into())
}
