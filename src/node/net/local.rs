//! Local sockets.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::connection::{Accept, Connection, Listener};
use crate::net::{UnixListener, UnixStream};

pub(super) async fn connect(path: &Path) -> io::Result<Box<dyn Connection>> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

pub(super) fn listen(path: &Path) -> io::Result<Box<dyn Listener>> {
    Ok(Box::new(UnixListener::bind(path)?))
}

impl Connection for UnixStream {
    connection_of_stream!();

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}

impl Listener for UnixListener {
    fn accept(&self) -> Accept<'_> {
        Box::pin(async {
            let connection: Box<dyn Connection> = Box::new(Self::accept(self).await?);
            Ok(connection)
        })
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }
}
