//! The reads of a socket, in the order of libuv's streams.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Inner;
use crate::node::callback_futures::{call_user, in_callbacks, run_as_callback};
use crate::node::error::Error;
use crate::node::net::connection::Connection;
use crate::node::stream::Readable;
use crate::phase;

/// The size of the buffer of one read.
const READ_SIZE: usize = 64 * 1024;

/// The largest number of reads in one poll phase.
const READS_PER_PHASE: usize = 32;

/// The state of a socket's reads.
#[derive(Default)]
pub(super) struct Reading {
    /// The stream asks for more.
    is_wanted: Cell<bool>,
    /// A future reads, or waits to do so.
    is_running: Cell<bool>,
    /// Wakes that future when the socket is destroyed.
    waker: RefCell<Option<Waker>>,
}

impl Reading {
    /// Ends the reading future. The connection is already gone.
    pub(super) fn end(&self) {
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wakes(&self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if !self.waker.borrow().as_ref().is_some_and(is_known) {
            let before = self.waker.replace(Some(waker.clone()));
            drop(before);
        }
    }
}

impl Inner {
    /// Reads until the stream is full.
    pub(super) fn start_reading(self: &Rc<Self>, readable: &Readable<Vec<u8>>) {
        self.reading.is_wanted.set(true);
        if self.reading.is_running.replace(true) {
            return;
        }
        let (inner, readable) = (self.clone(), readable.clone());
        in_callbacks(async move {
            inner.read_while_wanted(&readable).await;
            inner.reading.is_running.set(false);
        });
    }

    /// Reads in poll phases, each chunk in its own callback. A read that does not fill the buffer
    /// is the last of its phase, unless the peer hung up: then EOF follows the data at once.
    async fn read_while_wanted(&self, readable: &Readable<Vec<u8>>) {
        let mut buffer = vec![0; READ_SIZE];
        let mut left = 0;
        while self.reading.is_wanted.get() {
            let is_readable = self.asks(|connection| connection.is_readable());
            if is_readable && left == 0 {
                // Data that is already there is delivered in the next poll phase.
                phase::poll().await;
            }
            if !is_readable || left == 0 {
                left = READS_PER_PHASE;
            }
            left -= 1;
            let read = poll_fn(|cx| self.poll_read(cx, &mut buffer)).await;
            let Some(read) = read else { return };
            self.is_active();
            let size = match read {
                Ok(size) => size,
                Err(error) => {
                    self.reading.is_wanted.set(false);
                    return readable.destroy(Some(Error::of_call(error, "read")));
                }
            };
            let is_drained = size < READ_SIZE && !self.asks(|connection| connection.is_hung_up());
            // A panic of a listener leaves this callback at the next wait; reading continues then.
            let delivered =
                call_user(|| run_as_callback(|| self.deliver(readable, &buffer[..size])));
            if is_drained || delivered.is_none() {
                left = 0;
            }
        }
    }

    fn deliver(&self, readable: &Readable<Vec<u8>>, bytes: &[u8]) {
        if bytes.is_empty() {
            self.reading.is_wanted.set(false);
            readable.push_end();
            readable.read_size(0);
        } else if !readable.push(bytes.to_vec()) {
            self.reading.is_wanted.set(false);
        }
    }

    /// Reads once. Returns `None` if the connection is gone.
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Option<io::Result<usize>>> {
        let read = match &*self.slot.borrow() {
            Some(connection) => connection.poll_read(cx, buffer).map(Some),
            None => Poll::Ready(None),
        };
        if read.is_pending() {
            self.reading.wakes(cx.waker());
        }
        read
    }

    fn asks(&self, question: impl FnOnce(&dyn Connection) -> bool) -> bool {
        self.slot.borrow().as_deref().is_some_and(question)
    }
}
