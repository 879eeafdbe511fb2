//! Streams as `AsyncRead` and `AsyncWrite` of `futures`.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use futures::Stream;
use futures::io::{AsyncRead, AsyncWrite};

use super::iterate::Chunks;
use super::readable::Readable;
use super::writable::Writable;
use super::{CLOSE, DRAIN, FINISH};
use crate::events::{ERROR, Emitter as _, ListenerId};

impl Readable<Vec<u8>> {
    /// Converts the stream to a reader of its bytes. The reader consumes the stream as
    /// [`chunks`](Self::chunks) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping a pending read loses no data. Dropping the reader before EOF destroys the stream.
    #[must_use]
    pub fn into_reader(self) -> Reader {
        Reader {
            chunks: self.chunks(),
            rest: Vec::new(),
            taken: 0,
        }
    }
}

/// Reads the bytes of a stream; returned by [`Readable::into_reader`].
///
/// # Cancel safety
///
/// Dropping a pending read loses no data. Dropping the reader before EOF destroys the stream.
///
/// # Examples
///
/// ```
/// use phaseloop::io::AsyncReadExt as _;
/// use phaseloop_node::{Exit, run, stream::Readable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let source = Readable::bytes().build();
///         source.push(b"hello".to_vec());
///         source.push_end();
///         let mut text = String::new();
///         source.into_reader().read_to_string(&mut text).await.unwrap();
///         assert_eq!(text, "hello");
///     })
/// }
/// ```
#[derive(Debug)]
pub struct Reader {
    chunks: Chunks<Vec<u8>>,
    /// The last chunk; its first `taken` bytes have been read.
    rest: Vec<u8>,
    taken: usize,
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.taken == self.rest.len() {
            match ready!(Pin::new(&mut self.chunks).poll_next(cx)) {
                Some(chunk) => self.rest = chunk?,
                None => return Poll::Ready(Ok(0)),
            }
            self.taken = 0;
        }
        let left = &self.rest[self.taken..];
        let size = left.len().min(buffer.len());
        buffer[..size].copy_from_slice(&left[..size]);
        self.taken += size;
        Poll::Ready(Ok(size))
    }
}

impl Writable<Vec<u8>> {
    /// Converts the stream to a writer. A write waits while the stream is full. Closing the writer
    /// ends the stream.
    ///
    /// A call returns the error of the stream if it has failed. Dropping the writer without closing
    /// it leaves the stream open.
    #[must_use]
    pub fn into_writer(self) -> Writer {
        let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
        let wake = |waker: &Rc<RefCell<Option<Waker>>>| {
            let waker = waker.clone();
            move |()| wake_up(&waker)
        };
        let mut listeners: Vec<_> = [DRAIN, FINISH, CLOSE]
            .map(|event| {
                let wake = wake(&waker);
                self.on(event, move |()| wake(()))
            })
            .into();
        let on_error = wake(&waker);
        listeners.push(self.on(ERROR, move |_| on_error(())));
        Writer {
            writable: self,
            waker,
            listeners,
        }
    }
}

fn wake_up(waker: &RefCell<Option<Waker>>) {
    let waker = waker.take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Writes bytes into a stream; returned by [`Writable::into_writer`].
///
/// # Cancel safety
///
/// Dropping a pending write writes nothing. Dropping a pending close leaves the stream ending.
///
/// # Examples
///
/// ```
/// use phaseloop::io::AsyncWriteExt as _;
/// use phaseloop_node::{Exit, run, stream::Writable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = Writable::bytes(|bytes: Vec<u8>, done| {
///             assert_eq!(bytes, b"hello");
///             done.ok();
///         })
///         .build();
///         let mut writer = sink.into_writer();
///         writer.write_all(b"hello").await.unwrap();
///         writer.close().await.unwrap();
///     })
/// }
/// ```
pub struct Writer {
    writable: Writable<Vec<u8>>,
    /// The waker of the task that waits for room, or for the end.
    waker: Rc<RefCell<Option<Waker>>>,
    /// The listeners of the stream. The last one is for 'error'.
    listeners: Vec<ListenerId>,
}

impl Writer {
    fn check(&self) -> io::Result<()> {
        if let Some(error) = self.writable.errored() {
            return Err(error.into());
        }
        if self.writable.destroyed() && !self.writable.finished() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    fn wait<T>(&self, cx: &Context<'_>) -> Poll<T> {
        let before = self.waker.replace(Some(cx.waker().clone()));
        drop(before);
        Poll::Pending
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        if self.writable.need_drain() {
            return self.wait(cx);
        }
        let waker = self.waker.clone();
        let written = move |_| wake_up(&waker);
        self.writable.write_with(bytes.to_vec(), written);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        if self.writable.length() > 0 {
            return self.wait(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        if self.writable.finished() {
            return Poll::Ready(Ok(()));
        }
        if !self.writable.ended() {
            self.writable.end(());
        }
        self.wait(cx)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.writable.errored().is_some() {
            // The error was returned from a call, perhaps before its event. Its listener stays, so
            // that the event counts as handled.
            self.listeners.pop();
        }
        for listener in self.listeners.drain(..) {
            self.writable.off(listener);
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writer").field(&self.writable).finish()
    }
}
