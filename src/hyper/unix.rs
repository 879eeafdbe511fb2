//! Unix sockets below HTTP.

use std::future::{Ready, ready};
use std::io;
use std::panic::Location;

use super::Listener;
use crate::net::{UnixListener, UnixStream};

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
