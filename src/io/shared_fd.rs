//! Reads and writes a descriptor of any kind that is shared with other processes. The loop never
//! blocks, and the mode of the descriptor, which the other processes would see, is not changed.

use std::io::{self, IoSlice, IoSliceMut};
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::pooled::{Leftover, Pooled};
use super::source::Source;
use crate::label::Role;
use crate::runtime::handle::{Close, HandleCore, sealed};
use crate::runtime::loop_handle::LoopHandle;
use crate::sys::poller::Ready;
use crate::sys::stdio::{Borrowed, StdioKind, Unblocked, borrow};

/// How the descriptor is read and written.
pub(crate) enum SharedFd {
    /// Without blocking, on the loop's thread.
    Direct(Source<Unblocked>),
    /// By a thread of the pool.
    Pooled(Pooled),
}

impl SharedFd {
    /// Creates a channel for the object behind `descriptor`, on the running loop. The descriptor
    /// itself is not used afterwards.
    #[track_caller]
    #[inline]
    pub(crate) fn new(
        descriptor: Borrowed<'_>,
        kind: StdioKind,
        leftover: Arc<Leftover>,
        role: Role,
    ) -> io::Result<Self> {
        let (handle, site) = (LoopHandle::current(), Location::caller());
        let direct = Unblocked::new(descriptor, kind)
            .and_then(|unblocked| Source::new_stream(&handle, unblocked, true, site));
        if let Ok(source) = direct {
            let source = source.with_role(role);
            // A FIFO that is opened again after its last writer has closed it reports no EOF event.
            // Only a read finds it.
            source.state.add_ready(Ready::READ);
            return Ok(Self::Direct(source));
        }
        let can_wait = !matches!(kind, StdioKind::File | StdioKind::Unknown);
        let pooled = Pooled::new(&handle, descriptor, can_wait, leftover, role, site)?;
        Ok(Self::Pooled(pooled))
    }

    /// Creates a channel for a descriptor that no other channel reads.
    #[track_caller]
    #[inline]
    pub(crate) fn unshared(
        descriptor: Borrowed<'_>,
        kind: StdioKind,
        role: Role,
    ) -> io::Result<Self> {
        Self::new(descriptor, kind, Arc::new(Leftover::new()), role)
    }

    #[inline]
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_read(cx, buffer),
            Self::Pooled(pooled) => pooled.poll_read(cx, buffer),
        }
    }

    #[inline]
    pub(crate) fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_read_vectored(cx, buffers),
            Self::Pooled(pooled) => {
                let first = buffers.iter_mut().find(|buffer| !buffer.is_empty());
                pooled.poll_read(cx, first.map_or(&mut [], |buffer| &mut **buffer))
            }
        }
    }

    #[inline]
    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_write(cx, buffer),
            Self::Pooled(pooled) => pooled.poll_write(cx, buffer),
        }
    }

    #[inline]
    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Direct(source) => source.poll_write_vectored(cx, buffers),
            Self::Pooled(pooled) => {
                let first = buffers.iter().find(|buffer| !buffer.is_empty());
                pooled.poll_write(cx, first.map_or(&[], |buffer| &**buffer))
            }
        }
    }

    #[inline]
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Direct(source) => source.poll_flush(cx),
            Self::Pooled(pooled) => pooled.poll_flush(cx),
        }
    }

    #[inline]
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

    /// Returns the channel's own descriptor.
    pub(crate) fn borrow(&self) -> Borrowed<'_> {
        match self {
            Self::Direct(source) => borrow(source.get_ref()),
            Self::Pooled(pooled) => borrow(pooled.descriptor()),
        }
    }
}
