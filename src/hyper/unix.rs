//! Unix sockets below HTTP.

use std::future::{Ready, ready};
use std::io;
use std::panic::Location;

use super::{Addressed, Listener};
use crate::net::{PeerCredentials, UnixListener, UnixStream};

impl Listener for UnixListener {
    type Accepted = UnixStream;
    type Stream = UnixStream;
    type Opening = Ready<io::Result<UnixStream>>;

    async fn accept(&self, site: &'static Location<'static>) -> io::Result<UnixStream> {
        let (stream, _) = self.accept_at(site).await?;
        Ok(stream)
    }

    fn open(&self, stream: UnixStream) -> Self::Opening {
        ready(Ok(stream))
    }
}

/// The process at the other end, if the system names it.
impl Addressed for UnixListener {
    type Address = Option<PeerCredentials>;

    fn address(&self, stream: &UnixStream) -> Option<PeerCredentials> {
        stream.peer_credentials().ok()
    }
}
