//! Sources that are byte streams or sockets: the base of pipes and of the sockets of
//! [`net`](crate::net).
// Marks: the functions of a read and a write are inlined by order, here, in `source/attempts.rs`
// and below them: an echo of 64 bytes costs 332 instructions with the marks and 386 without.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::task::{Context, Poll};

use super::source::Source;
use crate::event_loop::io::sources::Direction;
use crate::label::Role;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::{AsSource, Interest, Ready, is_writing};
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
use crate::sys::unfilled::Unfilled;
#[cfg(feature = "net")]
use crate::sys::unfilled::{Receive, fill_vec};

/// Implements [`AsyncRead`](crate::io::AsyncRead) for a stream with a field `source`, and for
/// references to it.
macro_rules! impl_async_read {
    ($stream:ty) => {
        $crate::io::bytes::impl_async_read!(@one $stream, |this| &*this);
        $crate::io::bytes::impl_async_read!(@one &$stream, |this| &**this);
    };
    (@one $type:ty, |$this:ident| $stream:expr) => {
        impl futures::io::AsyncRead for $type {
            #[inline(always)]
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_read(cx, buffer)
            }

            #[inline]
            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_read_vectored(cx, buffers)
            }
        }
    };
}
pub(crate) use impl_async_read;

/// Implements [`AsyncWrite`](crate::io::AsyncWrite) for a stream with a field `source`, and for
/// references to it. The two expressions close the flushed stream, given as `&mut T` and as `&T`.
macro_rules! impl_async_write {
    ($stream:ty, |$owned:ident| $close:expr, |$shared:ident| $close_shared:expr) => {
        $crate::io::bytes::impl_async_write!(
            @one $stream, |this| &*this, { let $owned = this.get_mut(); $close }
        );
        $crate::io::bytes::impl_async_write!(
            @one &$stream, |this| &**this, { let $shared = *this; $close_shared }
        );
    };
    (@one $type:ty, |$this:ident| $stream:expr, $close:expr) => {
        impl futures::io::AsyncWrite for $type {
            #[inline(always)]
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffer: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_write(cx, buffer)
            }

            #[inline]
            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_write_vectored(cx, buffers)
            }

            #[inline]
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                ($stream).source.poll_flush(cx)
            }

            #[inline]
            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                std::task::ready!(($stream).source.poll_flush(cx))?;
                std::task::Poll::Ready($close)
            }
        }
    };
}
pub(crate) use impl_async_write;

impl<T: AsSource> Source<T> {
    /// Registers a stream or a socket. Its pending writes and connects keep the loop alive even if
    /// it is unref'd.
    ///
    /// With `can_write`, the first write is attempted without waiting for an event, and the source
    /// is registered for writing only when a write would block.
    pub(crate) fn new_stream(
        handle: &LoopHandle,
        source: T,
        can_write: bool,
        site: Site,
    ) -> io::Result<Self> {
        let interest = if can_write {
            Interest::Read
        } else {
            Interest::Both
        };
        let source = Self::new_at(handle, source, interest, site)?;
        Ok(source.into_stream(can_write))
    }

    /// Makes the source one of a stream; see [`new_stream`](Self::new_stream).
    #[inline(always)]
    pub(crate) fn into_stream(self, can_write: bool) -> Self {
        self.state.count_writes_as_requests();
        if can_write {
            self.state.add_ready(Ready::WRITE);
        }
        self
    }

    /// Declares that a short read or write has drained or filled the stream, so that the next
    /// attempt waits for an event first. That saves a system call.
    ///
    /// This holds for TCP: a read ends early at urgent data only, which is an event of its own. It
    /// does not hold where a read may end although more data is queued, and no further event
    /// reports that data:
    ///
    /// - Unix streams, after bytes that carried descriptors, and between two senders if the
    ///   receiver requests credentials;
    /// - pipes, after a packet (`O_DIRECT`), a mode that the writer alone selects;
    /// - terminals, after a line;
    /// - datagrams, messages and records.
    #[cfg(feature = "net")]
    pub(crate) fn with_short_as_drained(self, is_drained: bool) -> Self {
        self.state.set_short_as_drained(is_drained);
        self
    }

    /// Sets the role of the descriptor, which reports print beside what the kernel knows.
    pub(crate) fn with_role(self, role: Role) -> Self {
        self.state.set_role(self.loop_core(), role);
        self
    }

    /// Polls a read or write of up to `asked` bytes.
    #[inline(always)]
    fn poll_transfer(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        asked: usize,
        mut operation: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if !self.may_try(direction) {
                return self.wait_in_slot(direction, cx).map(Err);
            }
            match self.call(&mut operation) {
                Ok(count) => {
                    self.note_count(direction, asked, count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) => self
                    .end_attempt(direction, error)
                    .inspect_err(|_| self.count_waits())?,
            }
        }
    }

    /// Attempts a read or write of up to `asked` bytes.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and the errors of `operation`.
    fn try_transfer(
        &self,
        direction: Direction,
        asked: usize,
        mut operation: impl FnMut(&T) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let result = self.try_with(direction, &mut operation);
        self.note_transfer(direction, asked, &result);
        result
    }

    /// Attempts a reading operation.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and the errors of `operation`.
    #[cfg(feature = "net")]
    pub(crate) fn try_read_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.try_with(Direction::Read, &mut operation)
    }

    /// Attempts a writing operation.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and the errors of `operation`.
    #[cfg(feature = "net")]
    pub(crate) fn try_write_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.try_with(Direction::Write, &mut operation)
    }

    /// Updates the readiness after an attempt. After EOF or an error the stream is not active any
    /// more, even before the callback that delivers it has returned; the readiness stays.
    fn note_transfer(&self, direction: Direction, asked: usize, result: &io::Result<usize>) {
        match result {
            Ok(count) => self.note_count(direction, asked, *count),
            Err(_) => self.count_waits(),
        }
    }

    /// Updates the readiness after an attempt that has moved `count` bytes.
    #[inline(always)]
    fn note_count(&self, direction: Direction, asked: usize, count: usize) {
        if count >= asked {
            return;
        }
        if count == 0 {
            self.count_waits();
        } else if count < MOST_PER_CALL {
            self.state.clear_after_partial(direction);
        }
    }
}

/// The most bytes that Linux moves in one call, whatever the length of the buffer: 2 GiB minus a
/// page. A call that moves this many is not short.
const MOST_PER_CALL: usize = 0x7fff_f000;

/// The most buffers in one call (`IOV_MAX`). The standard library passes no more than this to the
/// kernel. Some platforms take fewer, but there a short call is never taken for a drained stream.
const BUFFERS_PER_CALL: usize = 1024;

/// Returns the number of bytes that a call with these buffers moves if the stream does not cut it
/// short. Buffers beyond the limit do not count: the call would look short, and the next one would
/// wait for an event that never comes.
fn total_len(lengths: impl Iterator<Item = usize>) -> usize {
    lengths
        .take(BUFFERS_PER_CALL)
        .fold(0, usize::saturating_add)
}

/// How a way to wait cuts reads and writes short. The kernel leaves them as they are.
impl<T: AsSource> Source<T> {
    /// Returns how many of `asked` bytes a polled attempt may move. If the attempt would block, the
    /// source is not ready any more.
    #[inline(always)]
    fn most(&self, direction: Direction, asked: usize) -> usize {
        if !self.state.is_asked() {
            return asked;
        }
        self.ask_bytes(direction, asked).unwrap_or(asked)
    }

    /// Returns how many of `asked` bytes an attempt may move that does not wait.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the way to wait decides so.
    fn try_most(&self, direction: Direction, asked: usize) -> io::Result<usize> {
        if !self.state.is_asked() {
            return Ok(asked);
        }
        let most = self.ask_bytes(direction, asked);
        most.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    // Cold: only the loops of tests ask.
    #[cold]
    fn ask_bytes(&self, direction: Direction, asked: usize) -> Option<usize> {
        if asked == 0 || !self.state.is_ready(direction) {
            return Some(asked);
        }
        self.loop_core()
            .ask_attempt(&self.state, direction, Some(asked))
    }
}

/// Returns the start of the first buffer that is not empty, if an attempt may move `most` bytes
/// only.
fn cut<'a>(buffers: &'a [IoSlice<'_>], asked: usize, most: usize) -> Option<&'a [u8]> {
    let first = buffers.iter().find(|buffer| !buffer.is_empty())?;
    (most < asked).then(|| &first[..most.min(first.len())])
}

/// Returns the start of the first buffer that is not empty; see [`cut`].
fn cut_mut<'a>(
    buffers: &'a mut [IoSliceMut<'_>],
    asked: usize,
    most: usize,
) -> Option<&'a mut [u8]> {
    let first = buffers.iter_mut().find(|buffer| !buffer.is_empty())?;
    let length = most.min(first.len());
    (most < asked).then(|| &mut first[..length])
}

impl<T: AsSource> Source<T>
where
    for<'a> &'a T: Read,
{
    #[inline(always)]
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let buffer = {
            let most = self.most(Direction::Read, buffer.len());
            &mut buffer[..most]
        };
        self.poll_transfer(Direction::Read, cx, buffer.len(), |mut io| io.read(buffer))
    }

    pub(crate) fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = total_len(buffers.iter().map(|buffer| buffer.len()));
        if let Some(first) = cut_mut(buffers, asked, self.most(Direction::Read, asked)) {
            return self.poll_transfer(Direction::Read, cx, first.len(), |mut io| io.read(first));
        }
        self.poll_transfer(Direction::Read, cx, asked, |mut io| {
            io.read_vectored(buffers)
        })
    }

    /// Polls a receive into memory that is not initialised.
    #[cfg(any(feature = "hyper", feature = "tokio-io"))]
    #[inline(always)]
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Unfilled<'_>,
    ) -> Poll<io::Result<usize>>
    where
        T: Receive,
    {
        buffer.truncate(self.most(Direction::Read, buffer.len()));
        self.poll_transfer(Direction::Read, cx, buffer.len(), |io| buffer.receive(io))
    }

    /// Attempts a receive that appends to a buffer.
    #[cfg(feature = "net")]
    pub(crate) fn try_receive(&self, buffer: &mut Vec<u8>) -> io::Result<usize>
    where
        T: Receive,
    {
        fill_vec(buffer, |unfilled| {
            unfilled.truncate(self.try_most(Direction::Read, unfilled.len())?);
            self.try_transfer(Direction::Read, unfilled.len(), |io| unfilled.receive(io))
        })
    }

    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let buffer = {
            let most = self.try_most(Direction::Read, buffer.len())?;
            &mut buffer[..most]
        };
        self.try_transfer(Direction::Read, buffer.len(), |mut io| io.read(buffer))
    }

    pub(crate) fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let asked = total_len(buffers.iter().map(|buffer| buffer.len()));
        if let Some(first) = cut_mut(buffers, asked, self.try_most(Direction::Read, asked)?) {
            return self.try_transfer(Direction::Read, first.len(), |mut io| io.read(first));
        }
        self.try_transfer(Direction::Read, asked, |mut io| io.read_vectored(buffers))
    }
}

impl<T: AsSource> Source<T>
where
    for<'a> &'a T: Write,
{
    #[inline(always)]
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buffer = &buffer[..self.most(Direction::Write, buffer.len())];
        self.poll_transfer(Direction::Write, cx, buffer.len(), |mut io| {
            io.write(buffer)
        })
    }

    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = total_len(buffers.iter().map(|buffer| buffer.len()));
        if let Some(first) = cut(buffers, asked, self.most(Direction::Write, asked)) {
            return self.poll_transfer(Direction::Write, cx, first.len(), |mut io| io.write(first));
        }
        self.poll_transfer(Direction::Write, cx, asked, |mut io| {
            io.write_vectored(buffers)
        })
    }

    /// Returns at once where no buffer lies between the caller and the kernel. A pipe of Windows
    /// waits for the bytes that it has accepted.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let registration = self.registration.as_ref();
        if registration.is_some_and(|registration| is_writing(registration.get())) {
            return self.poll_with(Direction::Write, cx, |mut io| io.flush());
        }
        Poll::Ready(Ok(()))
    }

    pub(crate) fn try_write(&self, buffer: &[u8]) -> io::Result<usize> {
        let buffer = &buffer[..self.try_most(Direction::Write, buffer.len())?];
        self.try_transfer(Direction::Write, buffer.len(), |mut io| io.write(buffer))
    }

    pub(crate) fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let asked = total_len(buffers.iter().map(|buffer| buffer.len()));
        if let Some(first) = cut(buffers, asked, self.try_most(Direction::Write, asked)?) {
            return self.try_transfer(Direction::Write, first.len(), |mut io| io.write(first));
        }
        self.try_transfer(Direction::Write, asked, |mut io| io.write_vectored(buffers))
    }
}
