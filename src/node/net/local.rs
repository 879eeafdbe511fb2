//! Local sockets.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use super::connection::{Accept, Connection, Listener, is_ready};
use crate::event_loop::handles::Close;
use crate::net::{UnixListener, UnixStream};

pub(super) async fn connect(path: &Path) -> io::Result<Box<dyn Connection>> {
    Ok(Box::new(UnixStream::connect(path).await?))
}

pub(super) fn listen(path: &Path) -> io::Result<Box<dyn Listener>> {
    Ok(Box::new(UnixListener::bind(path)?))
}

impl Connection for UnixStream {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_read(cx, buffer)
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, buffer)
    }

    fn is_readable(&self) -> bool {
        is_ready(self.readable())
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }

    fn close(self: Box<Self>) -> Close {
        self.close_now()
    }

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
