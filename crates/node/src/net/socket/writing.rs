//! The writes of a socket, and the end of its writing direction.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use super::{CONNECT, Inner};
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use crate::events::Emitter as _;
use crate::stream::{CLOSE, Device, Done};
use phaseloop::phase;

impl Inner {
    /// Writes now, or from a listener of 'connect'. A close before that fails the write from a
    /// listener of 'close'.
    fn write_when_connected<W>(self: &Rc<Self>, write: W, done: Done)
    where
        W: AsyncFnOnce(&Self) -> io::Result<()> + 'static,
    {
        if self.is_open() {
            return self.start_writing(write, done);
        }
        let Some(duplex) = self.duplex().filter(|_| self.is_connecting()) else {
            return done.fail(socket_closed());
        };
        let waits = Rc::new(Cell::new(Some((write, done))));
        let closed = waits.clone();
        let on_close = duplex.once(CLOSE, move |()| {
            if let Some((_, done)) = closed.take() {
                let text = "Socket closed before the connection was established";
                done.fail(Error::with_code(
                    "ERR_SOCKET_CLOSED_BEFORE_CONNECTION",
                    text,
                ));
            }
        });
        let inner = self.clone();
        duplex.once(CONNECT, move |()| {
            if let Some(duplex) = inner.duplex() {
                duplex.off(on_close);
            }
            // A listener before this one may have destroyed the socket.
            match waits.take() {
                Some((write, done)) if inner.is_open() => inner.start_writing(write, done),
                Some((_, done)) => done.fail(socket_closed()),
                None => {}
            }
        });
    }

    fn start_writing<W>(self: &Rc<Self>, write: W, done: Done)
    where
        W: AsyncFnOnce(&Self) -> io::Result<()> + 'static,
    {
        let inner = self.clone();
        in_callbacks(async move {
            inner.is_active();
            let written = write(&inner).await;
            inner.is_active();
            done.call(written.map_err(write_error));
        });
    }
}

impl Device<Vec<u8>> for Inner {
    fn write(self: Rc<Self>, mut bytes: Vec<u8>, done: Done) {
        match self.slot.write_now(&bytes) {
            Some(Ok(size)) if size < bytes.len() => drop(bytes.drain(..size)),
            Some(result) => {
                self.is_active();
                return done.call(result.map(drop).map_err(write_error));
            }
            None => {}
        }
        let write = async move |inner: &Self| inner.slot.write_all(&bytes).await;
        self.write_when_connected(write, done);
    }

    /// Writes all buffered chunks with one vectored write.
    fn write_all(self: Rc<Self>, chunks: Vec<Vec<u8>>, done: Done) {
        let write = async move |inner: &Self| inner.slot.write_all_chunks(&chunks).await;
        self.write_when_connected(write, done);
    }

    /// Shuts down the writing direction in the pending phase, after all writes. libuv's
    /// `uv_shutdown` also completes there.
    fn end(self: Rc<Self>, done: Done) {
        if !self.is_open() && !self.is_connecting() {
            // Without a connection there is nothing to shut down.
            return done.ok();
        }
        let inner = self.clone();
        let shut_down = move || {
            in_callbacks(async move {
                phase::pending().await;
                done.call(match inner.slot.shut_down().await {
                    Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                        Err(Error::of_call(error, "shutdown"))
                    }
                    _ => Ok(()),
                });
            });
        };
        if let Some(duplex) = self.duplex() {
            self.when_connected(duplex.emitter(), shut_down);
        }
    }

    fn refusal_after_end(&self) -> Option<Error> {
        let duplex = self.duplex()?;
        let is_ended = duplex.readable().ended() && !duplex.allow_half_open();
        let message = "This socket has been ended by the other party";
        is_ended.then(|| Error::with_code("EPIPE", message))
    }
}

fn socket_closed() -> Error {
    Error::with_code("ERR_SOCKET_CLOSED", "Socket is closed")
}

fn write_error(error: io::Error) -> Error {
    Error::of_call(error, "write")
}
