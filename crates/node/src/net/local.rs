//! Local (Unix domain) sockets.

use std::io;
use std::net::SocketAddr;
use std::panic::Location;
use std::path::Path;

use super::connection::{Connection, Listener};
use super::socket::{Socket, SocketOptions};
use crate::site::Site;
use phaseloop::net::{UnixListener, UnixStream};

pub(super) async fn connect(path: &Path, site: Site) -> io::Result<Box<dyn Connection>> {
    Ok(Box::new(UnixStream::connect_at(path, site).await?))
}

#[track_caller]
pub(super) fn listen(path: &Path, site: Site) -> io::Result<Box<dyn Listener>> {
    Ok(Box::new(UnixListener::bind_at(path, site)?))
}

/// Creates a socket over a connected stream.
#[track_caller]
pub(crate) fn socket_of(stream: std::os::unix::net::UnixStream) -> io::Result<Socket> {
    let connection = Box::new(UnixStream::from_std(stream)?);
    Ok(Socket::of(
        connection,
        SocketOptions::default(),
        None,
        Location::caller(),
    ))
}

impl Connection for UnixStream {
    connection_of_stream!();

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}

impl Listener for UnixListener {
    listener_of_sockets!();

    fn address(&self) -> Option<SocketAddr> {
        None
    }
}
