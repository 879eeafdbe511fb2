//! The connection of a socket, and what waits for it.

use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, Waker};

use super::connection::Connection;
use crate::stream::write_chunks;
use phaseloop::extension::cancelled;

/// The connection of a socket: none before it is connected and after it is destroyed.
///
/// A write or a shutdown that waits when the connection is taken out is cancelled once the
/// connection is closed, as libuv does.
#[derive(Default)]
pub(super) struct Slot {
    connection: RefCell<Option<Box<dyn Connection>>>,
    /// The number of connections that were taken out. What waits for an earlier one must not use a
    /// later one: a socket may connect again.
    taken: Cell<u32>,
    /// The number of connections that are closed.
    closed: Cell<u32>,
    /// Wakes what waits for the kernel to take bytes.
    writers: RefCell<Vec<Waker>>,
}

impl Slot {
    pub(super) fn borrow(&self) -> Ref<'_, Option<Box<dyn Connection>>> {
        self.connection.borrow()
    }

    pub(super) fn put(&self, connection: Box<dyn Connection>) {
        let before = self.connection.replace(Some(connection));
        drop(before);
    }

    /// Takes the connection out, to be closed. The number is for [`cancel`](Self::cancel).
    pub(super) fn take(&self) -> Option<(Box<dyn Connection>, u32)> {
        let connection = self.connection.take()?;
        self.taken.set(self.taken.get() + 1);
        Some((connection, self.taken.get()))
    }

    /// Returns whether something waits that [`cancel`](Self::cancel) would end.
    pub(super) fn has_writers(&self) -> bool {
        !self.writers.borrow().is_empty()
    }

    /// Ends what waits for the connection that was taken out with this number.
    pub(super) fn cancel(&self, number: u32) {
        self.closed.set(number.max(self.closed.get()));
        for writer in self.writers.take() {
            writer.wake();
        }
    }

    /// Writes as much as the kernel takes now. `None`: nothing, because the kernel is full or there
    /// is no connection. Most writes need no more, and so no future.
    pub(super) fn write_now(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        let slot = self.borrow();
        let connection = slot.as_ref()?;
        if bytes.is_empty() {
            return Some(Ok(0));
        }
        let mut cx = Context::from_waker(Waker::noop());
        match connection.poll_write(&mut cx, bytes) {
            Poll::Ready(written) => Some(written),
            Poll::Pending => None,
        }
    }

    /// Writes all bytes to the connection that is there now.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let number = self.taken.get();
        while !bytes.is_empty() {
            let size = poll_fn(|cx| {
                self.poll_with(number, cx, |connection, cx| {
                    connection.poll_write(cx, bytes)
                })
            });
            bytes = &bytes[size.await?..];
        }
        Ok(())
    }

    /// Writes all chunks with vectored writes to the connection that is there now.
    pub(super) async fn write_all_chunks(&self, chunks: &[Vec<u8>]) -> io::Result<()> {
        let number = self.taken.get();
        write_chunks(chunks, |cx, buffers| {
            self.poll_with(number, cx, |connection, cx| {
                connection.poll_write_vectored(cx, buffers)
            })
        })
        .await
    }

    /// Shuts down the writing direction. Without a connection there is nothing to do.
    pub(super) async fn shut_down(&self) -> io::Result<()> {
        if self.borrow().is_none() {
            return Ok(());
        }
        let number = self.taken.get();
        poll_fn(|cx| self.poll_with(number, cx, |connection, cx| connection.poll_shutdown(cx)))
            .await
    }

    /// Polls the connection, unless it was taken out since `number` connections were.
    fn poll_with<T>(
        &self,
        number: u32,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&dyn Connection, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if self.closed.get() > number {
            return Poll::Ready(Err(cancelled()));
        }
        let connection = self.borrow();
        let polled = match &*connection {
            Some(connection) if self.taken.get() == number => poll(&**connection, cx),
            None if self.taken.get() == number => {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            _ => Poll::Pending,
        };
        let mut writers = self.writers.borrow_mut();
        let place = writers.iter().position(|known| known.will_wake(cx.waker()));
        match (place, polled.is_pending()) {
            (None, true) => writers.push(cx.waker().clone()),
            (Some(place), false) => drop(writers.swap_remove(place)),
            _ => {}
        }
        polled
    }
}
