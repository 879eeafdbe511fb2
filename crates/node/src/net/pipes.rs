//! Local sockets of Windows: named pipes.
//!
//! A pipe cannot end one direction. As libuv does, a socket that has ended its writing side waits
//! until the peer has read all, and then takes a silence of 50 ms for the end of the other side: so
//! both sockets are closed, unless the peer has something to say.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};

use super::connection::{Accept, Connection, Listener, set_referenced};
use crate::callback_futures::is_ready;
use crate::site::Site;
use phaseloop::Close;
use phaseloop::net::windows::{NamedPipeListener, NamedPipeStream};
use phaseloop::time::{Sleep, sleep};

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
    /// The reader that waits.
    reader: Cell<Option<Waker>>,
    /// Waits until the other side counts as ended, once this side has.
    end: RefCell<Option<End>>,
}

/// The wait for the end of the other side.
struct End {
    /// Waits until the peer has read all; `None` once it has.
    drained: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// Since the last bytes of the peer.
    silence: Option<Sleep>,
}

impl Pipe {
    fn new(stream: NamedPipeStream) -> Self {
        Self {
            stream,
            reader: Cell::default(),
            end: RefCell::default(),
        }
    }
}

impl End {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(drained) = &mut self.drained {
            ready!(drained.as_mut().poll(cx));
            self.drained = None;
        }
        let silence = self.silence.get_or_insert_with(|| sleep(SILENCE));
        Pin::new(silence).poll(cx)
    }
}

impl Connection for Pipe {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = Pin::new(&mut &self.stream).poll_read(cx, buffer);
        match (&read, &mut *self.end.borrow_mut()) {
            (Poll::Pending, Some(end)) => return end.poll(cx).map(|()| Ok(0)),
            (Poll::Pending, None) => self.reader.set(Some(cx.waker().clone())),
            // The silence begins anew.
            (Poll::Ready(Ok(1..)), Some(end)) => end.silence = None,
            (Poll::Ready(_), _) => {}
        }
        read
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
        let drained = async move {
            // An error says that the peer is gone, which a read reports as well.
            let _ = drained.await;
        };
        self.end.replace(Some(End {
            drained: Some(Box::pin(drained)),
            silence: None,
        }));
        // A read that waits already has to wait for the end as well.
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
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
