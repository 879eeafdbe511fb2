//! Local sockets.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use super::connection::{Accept, Connection, Listener};
use crate::kinds::Site;
use crate::net::{UnixListener, UnixStream};

pub(super) async fn connect(path: &Path, site: Site) -> io::Result<Box<dyn Connection>> {
    Ok(Box::new(UnixStream::connect_at(path, site).await?))
}

#[track_caller]
pub(super) fn listen(path: &Path, site: Site) -> io::Result<Box<dyn Listener>> {
    Ok(Box::new(UnixListener::bind_at(path, site)?))
}

impl Connection for UnixStream {
    connection_of_stream!();

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}

impl Listener for UnixListener {
    fn accept(&self, site: Site) -> Accept<'_> {
        Box::pin(async move {
            let connection: Box<dyn Connection> = Box::new(self.accept_at(site).await?);
            Ok(connection)
        })
    }

    fn is_resting(&self) -> bool {
        Self::is_resting(self)
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }
}
