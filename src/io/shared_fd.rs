//! The bytes of a descriptor that is shared with other processes, which may be anything: without blocking the loop, and
//! without a change of mode that the others would see.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::pooled::{Leftover, Pooled};
use super::source::Source;
use crate::event_loop::api::handle::{Close, HandleCore, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::sys::poller::Ready;
use crate::sys::stdio::{StdioKind, Unblocked};

/// How the descriptor is read and written.
pub(crate) enum SharedFd {
    /// At once, or when an event says so.
    Direct(Source<Unblocked>),
    /// By the pool.
    Pooled(Pooled),
}

impl SharedFd {
    /// Makes a channel of what `descriptor` refers to, on the running loop. The descriptor itself is not used any more.
    #[track_caller]
    pub(crate) fn new(
        descriptor: BorrowedFd<'_>,
        kind: StdioKind,
        leftover: Arc<Leftover>,
    ) -> io::Result<Self> {
        let (handle, site) = (LoopHandle::current(), Location::caller());
        let direct = Unblocked::new(descriptor, kind)
            .and_then(|unblocked| Source::new_stream(&handle, unblocked, true, site));
        if let Ok(source) = direct {
            // A named pipe that was opened again after its last writer had gone does not report the end: only an attempt tells.
            source.state.add_ready(Ready::READ);
            return Ok(Self::Direct(source));
        }
        let can_wait = !matches!(kind, StdioKind::File | StdioKind::Unknown);
        let pooled = Pooled::new(&handle, descriptor, can_wait, leftover, site)?;
        Ok(Self::Pooled(pooled))
    }

    /// The same for a descriptor that no other channel reads from.
    #[track_caller]
    pub(crate) fn unshared(descriptor: BorrowedFd<'_>, kind: StdioKind) -> io::Result<Self> {
        Self::new(descriptor, kind, Arc::new(Leftover::new()))
    }

    pub(crate) fn poll_read_bytes(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_read_bytes(cx, buffer),
            Self::Pooled(pooled) => pooled.poll_read(cx, buffer),
        }
    }

    pub(crate) fn poll_read_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_read_buffers(cx, buffers),
            Self::Pooled(pooled) => {
                let first = buffers.iter_mut().find(|buffer| !buffer.is_empty());
                pooled.poll_read(cx, first.map_or(&mut [], |buffer| &mut **buffer))
            }
        }
    }

    pub(crate) fn poll_write_bytes(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_write_bytes(cx, buffer),
            Self::Pooled(pooled) => pooled.poll_write(cx, buffer),
        }
    }

    pub(crate) fn poll_write_buffers(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_write_buffers(cx, buffers),
            Self::Pooled(pooled) => {
                let first = buffers.iter().find(|buffer| !buffer.is_empty());
                pooled.poll_write(cx, first.map_or(&[], |buffer| &**buffer))
            }
        }
    }

    pub(crate) fn poll_flush_bytes(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Direct(source) => source.poll_flush_bytes(cx),
            Self::Pooled(pooled) => pooled.poll_flush(cx),
        }
    }

    pub(crate) fn close(self) -> Close {
        match self {
            Self::Direct(source) => source.close(),
            Self::Pooled(pooled) => pooled.close(),
        }
    }

    pub(crate) fn handle_core(&self) -> &HandleCore {
        match self {
            Self::Direct(source) => sealed::Sealed::handle_core(source),
            Self::Pooled(pooled) => pooled.handle_core(),
        }
    }

    /// The channel's own descriptor.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Direct(source) => source.get_ref().as_fd(),
            Self::Pooled(pooled) => pooled.as_fd(),
        }
    }
}
