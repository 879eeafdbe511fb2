//! The reads of a socket, in the order of libuv's streams.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use super::{Inner, Socket};
use crate::callback_futures::{call_user, in_callbacks, run_as_callback};
use crate::context::Node;
use crate::error::Error;
use crate::events::Emitter;
use crate::net::connection::Connection;
use crate::stream::Readable;
use phaseloop::phase;

/// The size of the buffer of one read.
const READ_SIZE: usize = 64 * 1024;

/// The largest number of reads in one poll phase.
const READS_PER_PHASE: usize = 32;

/// The buffer that all sockets of a loop read into. A socket has it only between a read and the
/// delivery of its bytes, so that idle sockets need no memory for it.
#[derive(Clone, Default)]
pub(crate) struct ReadBuffer(Rc<Cell<Option<Vec<u8>>>>);

impl ReadBuffer {
    fn take(&self) -> Vec<u8> {
        // A socket that reads while another one delivers gets a buffer of its own.
        self.0.take().unwrap_or_else(|| vec![0; READ_SIZE])
    }

    fn put(&self, buffer: Vec<u8>) {
        self.0.set(Some(buffer));
    }
}

/// Takes the bytes of a socket in place of the socket's stream. EOF and errors still go to the
/// stream.
pub(crate) trait Consumer {
    /// Called in the poll phase with the bytes of one read, outside of any callback: the consumer
    /// decides which calls are callbacks of their own.
    fn read(self: Rc<Self>, bytes: &[u8]);
}

/// The state of a socket's reads.
#[derive(Default)]
pub(super) struct Reading {
    /// Weak, because the consumer holds the socket.
    consumer: RefCell<Option<Weak<dyn Consumer>>>,
    /// The consumer has stopped the reads.
    is_held: Cell<bool>,
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

    fn consumer(&self) -> Option<Rc<dyn Consumer>> {
        self.consumer.borrow().as_ref().and_then(Weak::upgrade)
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
        self.in_frame(|| {
            in_callbacks(async move {
                inner.read_while_wanted(&readable).await;
                inner.reading.is_running.set(false);
            });
        });
    }

    /// Reads in poll phases, each chunk in its own callback. A read that does not fill the buffer
    /// is the last of its phase, unless the peer hung up: then EOF follows the data at once.
    async fn read_while_wanted(&self, readable: &Readable<Vec<u8>>) {
        let buffers = Node::current().read_buffer.clone();
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
            let (read, buffer) = poll_fn(|cx| self.poll_read(cx, &buffers)).await;
            let Some(read) = read else { return };
            self.is_active();
            let size = match read {
                Ok(size) => size,
                Err(error) => {
                    self.reading.is_wanted.set(false);
                    let error = Error::of_call(error, "read");
                    return self.in_frame(|| readable.destroy(Some(error)));
                }
            };
            let is_drained = size < READ_SIZE && !self.asks(|connection| connection.is_hung_up());
            // A panic of a listener leaves this callback at the next wait; reading continues then.
            let delivered = call_user(|| self.in_frame(|| self.deliver(readable, &buffer[..size])));
            buffers.put(buffer);
            if is_drained || delivered.is_none() {
                left = 0;
            }
        }
    }

    fn deliver(&self, readable: &Readable<Vec<u8>>, bytes: &[u8]) {
        let consumer = self.reading.consumer().filter(|_| !bytes.is_empty());
        let Some(consumer) = consumer else {
            return run_as_callback(|| self.push(readable, bytes));
        };
        readable.count_read(bytes.len());
        // A listener that the consumer's user adds during the call gets later bytes only: the
        // consumer may have handed the socket over to it.
        let is_heard = readable.listener_count(Readable::<Vec<u8>>::DATA) > 0;
        consumer.read(bytes);
        if is_heard {
            run_as_callback(|| {
                readable.emit(Readable::<Vec<u8>>::DATA, bytes.to_vec());
            });
        }
    }

    fn push(&self, readable: &Readable<Vec<u8>>, bytes: &[u8]) {
        if bytes.is_empty() {
            self.reading.is_wanted.set(false);
            readable.push_end();
            readable.read_size(0);
        } else if !readable.push(bytes.to_vec()) {
            self.reading.is_wanted.set(false);
        }
    }

    /// Reads once. Returns the buffer with what was read; `None` if the connection is gone.
    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffers: &ReadBuffer,
    ) -> Poll<(Option<io::Result<usize>>, Vec<u8>)> {
        let mut buffer = buffers.take();
        let read = match &*self.slot.borrow() {
            Some(connection) => connection.poll_read(cx, &mut buffer).map(Some),
            None => Poll::Ready(None),
        };
        match read {
            Poll::Ready(read) => Poll::Ready((read, buffer)),
            Poll::Pending => {
                buffers.put(buffer);
                self.reading.wakes(cx.waker());
                Poll::Pending
            }
        }
    }

    fn asks(&self, question: impl FnOnce(&dyn Connection) -> bool) -> bool {
        self.slot.borrow().as_deref().is_some_and(question)
    }
}

/// What a consumer of the bytes does with the socket.
impl Socket {
    /// Passes the bytes of later reads to `consumer`.
    pub(crate) fn consumed_by(&self, consumer: Weak<dyn Consumer>) {
        self.inner.reading.consumer.replace(Some(consumer));
    }

    /// Passes the bytes of later reads to the socket's stream again.
    pub(crate) fn unconsumed(&self) {
        self.inner.reading.consumer.take();
        self.inner.reading.is_held.set(false);
    }

    /// Stops reading. A read that waits already is still delivered.
    pub(crate) fn stop_reading(&self) {
        self.inner.reading.is_wanted.set(false);
    }

    /// Continues to read, unless reads are held.
    pub(crate) fn read_on(&self) {
        let may_read = !self.inner.reading.is_held.get() && self.inner.is_open();
        if may_read && self.readable().is_readable() {
            self.inner.start_reading(self.readable());
        }
    }

    /// Sets whether [`read_on`](Self::read_on) has no effect.
    pub(crate) fn hold_reads(&self, holds: bool) {
        self.inner.reading.is_held.set(holds);
    }

    /// Returns whether reads are held.
    pub(crate) fn holds_reads(&self) -> bool {
        self.inner.reading.is_held.get()
    }
}
