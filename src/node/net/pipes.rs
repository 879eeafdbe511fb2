//! Local sockets of Windows: named pipes.
//!
//! A pipe cannot end one direction. As libuv does, a socket that has ended its writing side waits
//! until the peer has read all, and then takes a silence of 50 ms for the end of the other side: so
//! both sockets are closed, unless the peer has something to say.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::io::{AsyncRead, AsyncWrite};

use super::connection::{Accept, Connection, Listener, set_referenced};
use crate::event_loop::api::handle::Close;
use crate::net::windows::{NamedPipeListener, NamedPipeStream};
use crate::node::callback_futures::is_ready;
use crate::site::Site;

/// How long a socket waits for the other side after its own end.
const SILENCE: Duration = Duration::from_millis(50);

pub(super) async fn connect(path: &Path, site: Site) -> io::Result<Box<dyn Connection>> {
    let stream = NamedPipeStream::connect_at(path, site).await?;
    Ok(Box::new(Pipe::new(stream)))
}

#[track_caller]
pub(super) fn listen(path: &Path, site: Site) -> io::Result<Box<dyn Listener>> {
    Ok(Box::new(NamedPipeListener::bind_at(path, site)?))
}

struct Pipe {
    stream: NamedPipeStream,
    /// Waits until the other side counts as ended, once this side has.
    end: RefCell<Option<Pin<Box<dyn Future<Output = ()>>>>>,
}

impl Pipe {
    fn new(stream: NamedPipeStream) -> Self {
        Self {
            stream,
            end: RefCell::default(),
        }
    }
}

impl Connection for Pipe {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut &self.stream).poll_read(cx, buffer);
        let mut end = self.end.borrow_mut();
        match (&read, &mut *end) {
            (Poll::Pending, Some(end)) => end.as_mut().poll(cx).map(|()| Ok(0)),
            _ => read,
        }
    }

    fn poll_write(&self, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &self.stream).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_readable(&self) -> bool {
        is_ready(self.stream.readable())
    }

    fn is_hung_up(&self) -> bool {
        false
    }

    fn shutdown_write(&self) -> io::Result<()> {
        let drained = self.stream.drained()?;
        let end = async move {
            // An error says that the peer is gone, which a read tells as well.
            let _ = drained.await;
            crate::time::sleep(SILENCE).await;
        };
        self.end.replace(Some(Box::pin(end)));
        Ok(())
    }

    fn set_referenced(&self, is_referenced: bool) {
        set_referenced(&self.stream, is_referenced);
    }

    fn close(self: Box<Self>) -> Close {
        self.stream.close_now()
    }

    fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (None, None)
    }
}

impl Listener for NamedPipeListener {
    fn accept(&self, site: Site) -> Accept<'_> {
        Box::pin(async move {
            let pipe = Pipe::new(self.accept_at(site).await?);
            let connection: Box<dyn Connection> = Box::new(pipe);
            Ok(connection)
        })
    }

    fn is_resting(&self) -> bool {
        Self::is_resting(self)
    }

    fn set_referenced(&self, is_referenced: bool) {
        set_referenced(self, is_referenced);
    }

    fn address(&self) -> Option<SocketAddr> {
        None
    }
}
