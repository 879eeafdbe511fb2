//! Sources that are streams of bytes, or sockets: what pipes and the sockets of [`net`](crate::net) are made of.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::task::{Context, Poll, ready};

use super::source::Source;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::phases::sources::Direction;
use crate::site::Site;
use crate::sys::poller::{AsSource, Ready};

/// Implements `futures`' [`AsyncRead`](crate::io::AsyncRead) for a stream with a field `source`, and for references to it.
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
                ($stream).source.poll_read_bytes(cx, buffer)
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_read_buffers(cx, buffers)
            }
        }
    };
}
pub(crate) use impl_async_read;

/// The same for [`AsyncWrite`](crate::io::AsyncWrite); the expressions close the stream, which is flushed, given as `&mut T`
/// and as `&T`.
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
                ($stream).source.poll_write_bytes(cx, buffer)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buffers: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $this = self;
                ($stream).source.poll_write_buffers(cx, buffers)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                ($stream).source.poll_flush_bytes(cx)
            }

            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let $this = self;
                std::task::ready!(($stream).source.poll_flush_bytes(cx))?;
                std::task::Poll::Ready($close)
            }
        }
    };
}
pub(crate) use impl_async_write;

impl<T: AsSource> Source<T> {
    /// Registers a stream or a socket, whose writes and connects keep the loop alive whether it is unref'd or not.
    ///
    /// One that `can_write` is tried without waiting for an event that says so (R143).
    pub(crate) fn new_stream(
        handle: &LoopHandle,
        source: T,
        can_write: bool,
        site: Site,
    ) -> io::Result<Self> {
        let source = Self::new_at(handle, source, site)?;
        source.state.writes_are_requests.set(true);
        if can_write {
            source.state.add_ready(Ready::WRITE);
        }
        Ok(source)
    }

    /// Says that a read or write that moves less than it was asked to has emptied or filled the stream, so that the next
    /// attempt waits for an event without trying. That saves a system call.
    ///
    /// It is true of TCP, where a read ends early at urgent data only, of which an event tells. It is not of most others,
    /// which end a read although there is more, of which no event tells:
    ///
    /// - Unix streams, behind bytes that carried descriptors, and between two senders when the receiver asks for credentials;
    /// - pipes, behind a packet (`O_DIRECT`), which the writer alone decides on;
    /// - terminals, behind a line;
    /// - datagrams, messages and records.
    #[cfg(feature = "net")]
    pub(crate) fn with_short_as_drained(mut self, is_drained: bool) -> Self {
        self.drained_below = if is_drained { MOST_PER_CALL } else { 0 };
        self
    }

    /// The poll function of reads and writes of up to `asked` bytes.
    #[inline(always)]
    pub(crate) fn poll_bytes(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        asked: usize,
        operation: impl FnMut(&T) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let result = ready!(self.poll_with(direction, cx, operation));
        self.after_bytes(direction, asked, &result);
        Poll::Ready(result)
    }

    /// Tries once, whatever is known of the source's readiness.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and those of `operation`.
    pub(crate) fn try_bytes(
        &self,
        direction: Direction,
        asked: usize,
        mut operation: impl FnMut(&T) -> io::Result<usize>,
    ) -> io::Result<usize> {
        match self.attempt(direction, &mut operation) {
            Some(result) => {
                self.after_bytes(direction, asked, &result);
                result
            }
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Tries once, whatever is known of the source's readiness to be read.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and those of `operation`.
    #[cfg(feature = "net")]
    pub(crate) fn try_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.attempt(Direction::Read, &mut operation)
            .unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// A short read or write may leave nothing to do until the next event. The end, or an error, stays; the stream is not
    /// active then, also before the callback that tells of it is over (R134, R136).
    #[inline]
    fn after_bytes(&self, direction: Direction, asked: usize, result: &io::Result<usize>) {
        match result {
            Ok(0) | Err(_) => self.count_waits(),
            Ok(count) if *count < asked && *count < self.drained_below => {
                self.state.clear_after_partial(direction);
            }
            Ok(_) => {}
        }
    }
}

/// How many bytes one call moves at most, whatever it is asked for: two gigabytes less a page on Linux.
#[cfg(feature = "net")]
const MOST_PER_CALL: usize = 0x7fff_f000;

/// How many buffers one call takes (R155). Fewer on some systems, where a short call says nothing anyway.
const BUFFERS_PER_CALL: usize = 1024;

/// How many bytes a call with these buffers moves if nothing but the stream cuts it short.
fn bytes_of(lengths: impl Iterator<Item = usize>) -> usize {
    lengths
        .take(BUFFERS_PER_CALL)
        .fold(0, usize::saturating_add)
}

impl<T: AsSource> Source<T>
where
    for<'a> &'a T: Read,
{
    #[inline(always)]
    pub(crate) fn poll_read_bytes(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Read, cx, buffer.len(), |mut io| io.read(buffer))
    }

    pub(crate) fn poll_read_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.poll_bytes(Direction::Read, cx, asked, |mut io| {
            io.read_vectored(buffers)
        })
    }

    pub(crate) fn try_read_bytes(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_bytes(Direction::Read, buffer.len(), |mut io| io.read(buffer))
    }

    pub(crate) fn try_read_buffers(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.try_bytes(Direction::Read, asked, |mut io| io.read_vectored(buffers))
    }
}

impl<T: AsSource> Source<T>
where
    for<'a> &'a T: Write,
{
    #[inline(always)]
    pub(crate) fn poll_write_bytes(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_bytes(Direction::Write, cx, buffer.len(), |mut io| {
            io.write(buffer)
        })
    }

    pub(crate) fn poll_write_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.poll_bytes(Direction::Write, cx, asked, |mut io| {
            io.write_vectored(buffers)
        })
    }

    /// There is no buffer between the caller and the system.
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with channels that have something to wait for"
    )]
    pub(crate) fn poll_flush_bytes(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    pub(crate) fn try_write_bytes(&self, buffer: &[u8]) -> io::Result<usize> {
        self.try_bytes(Direction::Write, buffer.len(), |mut io| io.write(buffer))
    }

    pub(crate) fn try_write_buffers(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let asked = bytes_of(buffers.iter().map(|buffer| buffer.len()));
        self.try_bytes(Direction::Write, asked, |mut io| io.write_vectored(buffers))
    }
}
