//! Blocking descriptors, read and written by a thread of the pool; if possible, once they are
//! ready.
//!
//! ```text
//!   poll ──> wait until ready, if possible ──> job on the pool ──> poll phase ──> result
//! ```
//!
//! A running job cannot be cancelled. Bytes that it reads are kept for the next reader of the
//! process, and a repeated write of the same bytes is matched with the write in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use super::source::Source;
use crate::blocking::Work;
use crate::event_loop::core::Core;
use crate::event_loop::io::sources::Direction;
use crate::event_loop::ledger::handles::{Owner, Stage};
use crate::event_loop::ledger::jobs::Purpose;
use crate::keeper::Keeper;
use crate::label::{Label, Role};
use crate::pool::Class;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, HandleCore, sealed};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::errno::cancelled;
use crate::sys::poller::Interest;
use crate::sys::stdio::{self, Borrowed, Descriptor, Wanted, Watched};

/// The most bytes that one job moves: the buffer size that libuv suggests for a read.
const MOST: usize = 64 * 1024;

/// Shared by all readers of one object through the pool, on any loop.
pub(crate) struct Leftover {
    /// Held by the reading job: one at a time.
    turn: Mutex<()>,
    /// Bytes that were read and not yet returned. The lock is held for a copy at most.
    bytes: Mutex<VecDeque<u8>>,
}

impl Leftover {
    pub(crate) const fn new() -> Self {
        Self {
            turn: Mutex::new(()),
            bytes: Mutex::new(VecDeque::new()),
        }
    }

    /// Reads up to `most` bytes, unless some are left over. It runs on the pool. It returns `false`
    /// at EOF.
    #[inline]
    fn fill(&self, descriptor: &Descriptor, most: usize) -> io::Result<bool> {
        let _turn = lock(&self.turn);
        if !lock(&self.bytes).is_empty() {
            return Ok(true);
        }
        let mut buffer = vec![0; most];
        let read = stdio::read(descriptor, &mut buffer)?;
        lock(&self.bytes).extend(&buffer[..read]);
        Ok(read > 0)
    }

    /// Moves leftover bytes to `buffer`, and returns their number.
    #[inline]
    fn take(&self, buffer: &mut [u8]) -> usize {
        let taken = io::Read::read(&mut *lock(&self.bytes), buffer);
        taken.expect("memory can be read")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor that the pool reads and writes.
pub(crate) struct Pooled {
    handle: PooledHandle,
    descriptor: Arc<Descriptor>,
    leftover: Arc<Leftover>,
    read: RefCell<Option<Work<io::Result<bool>>>>,
    write: RefCell<Option<Writing>>,
}

/// The handle of the descriptor on the loop.
enum PooledHandle {
    /// The descriptor can be polled: a job starts once it is ready, and so rarely blocks a thread.
    Watched(Source<Watched>),
    /// A file or a device, which is always ready.
    Unwatched(Unwatched),
}

struct Unwatched {
    core: HandleCore,
    /// The header refers to it.
    _name: Bound<Rc<Name>>,
}

impl Unwatched {
    #[inline]
    fn new(handle: &LoopHandle, descriptor: &Arc<Descriptor>, role: Role, site: Site) -> Self {
        let core = handle.open(Keeper::Io, site);
        let name = Rc::new(Name {
            descriptor: Arc::downgrade(descriptor),
            role,
        });
        core.header.belongs_to(&name);
        Self {
            core,
            _name: Bound::new(name),
        }
    }
}

/// Names a descriptor that the poller does not watch.
struct Name {
    descriptor: Weak<Descriptor>,
    role: Role,
}

impl Owner for Name {
    fn label(&self, _: &Core) -> Option<Label> {
        let descriptor = self.descriptor.upgrade()?;
        Some(stdio::label(&descriptor, self.role))
    }

    fn stop_for_good(&self, _: &Core) {}
}

/// A write in flight, and its bytes.
struct Writing {
    work: Work<io::Result<usize>>,
    bytes: Arc<[u8]>,
}

impl Writing {
    /// Returns whether these are the first bytes of `buffer`. A caller may have appended to its
    /// buffer while the write was pending.
    fn is_of(&self, buffer: &[u8]) -> bool {
        buffer.starts_with(&self.bytes) && self.bytes.is_empty() == buffer.is_empty()
    }
}

impl Pooled {
    /// Creates a handle on the loop. With `can_wait` the descriptor may not be ready at times, and
    /// is polled for readiness if the kernel can do that.
    #[inline]
    pub(super) fn new(
        handle: &LoopHandle,
        descriptor: Borrowed<'_>,
        can_wait: bool,
        leftover: Arc<Leftover>,
        role: Role,
        site: Site,
    ) -> io::Result<Self> {
        let descriptor = Arc::new(stdio::duplicate(descriptor, role)?);
        let watched = stdio::watched(&descriptor).filter(|_| can_wait);
        let watch = |watched| Source::new_at(handle, watched, Interest::Read, site).ok();
        let handle = match watched.and_then(watch) {
            Some(source) => PooledHandle::Watched(source.with_role(role)),
            None => PooledHandle::Unwatched(Unwatched::new(handle, &descriptor, role, site)),
        };
        Ok(Self {
            handle,
            descriptor,
            leftover,
            read: RefCell::default(),
            write: RefCell::default(),
        })
    }

    #[inline]
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let taken = self.leftover.take(buffer);
            if taken > 0 || buffer.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            // Taken out of the cell for the poll: polling may drop a waker, whose drop is user
            // code.
            let work = self.read.take();
            let mut work = match work {
                Some(work) => work,
                None => {
                    ready!(self.poll_ready(Direction::Read, Wanted::Read, cx))?;
                    let (descriptor, leftover) = (self.descriptor.clone(), self.leftover.clone());
                    let most = buffer.len().min(MOST);
                    self.submit("read", move || leftover.fill(&descriptor, most))?
                }
            };
            match Pin::new(&mut work).poll(cx) {
                Poll::Pending => {
                    self.read.replace(Some(work));
                    return Poll::Pending;
                }
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(0)),
                // Another process has read first, and the descriptor is in non-blocking mode.
                Poll::Ready(Err(error)) if self.should_wait_again(&error) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }

    #[inline]
    pub(super) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let buffer = &buffer[..buffer.len().min(MOST)];
        loop {
            let writing = self.write.take();
            let mut writing = match writing {
                Some(writing) => writing,
                None => {
                    ready!(self.poll_ready(Direction::Write, Wanted::Write, cx))?;
                    let bytes: Arc<[u8]> = buffer.into();
                    let (descriptor, sent) = (self.descriptor.clone(), bytes.clone());
                    let work = self.submit("write", move || stdio::write(&descriptor, &sent))?;
                    Writing { work, bytes }
                }
            };
            match Pin::new(&mut writing.work).poll(cx) {
                Poll::Pending => {
                    self.write.replace(Some(writing));
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) if self.should_wait_again(&error) => {}
                // An earlier write of other bytes, whose future was dropped, has completed.
                Poll::Ready(Ok(_)) if !writing.is_of(buffer) => {}
                Poll::Ready(result) => return Poll::Ready(result),
            }
        }
    }

    /// Waits for a write whose future was dropped. If that write found no room, it has written
    /// nothing, and no future waits for its result.
    #[inline]
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(mut writing) = self.write.take() else {
            return Poll::Ready(Ok(()));
        };
        match Pin::new(&mut writing.work).poll(cx) {
            Poll::Pending => {
                self.write.replace(Some(writing));
                Poll::Pending
            }
            Poll::Ready(Err(error)) if self.should_wait_again(&error) => Poll::Ready(Ok(())),
            Poll::Ready(result) => Poll::Ready(result.map(drop)),
        }
    }

    /// Waits until the next job would not block, if the descriptor can be polled.
    #[inline]
    fn poll_ready(
        &self,
        direction: Direction,
        wanted: Wanted,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let PooledHandle::Watched(source) = &self.handle else {
            return Poll::Ready(Ok(()));
        };
        source.poll_with(direction, cx, |descriptor| {
            if stdio::is_ready(descriptor, wanted)? {
                Ok(())
            } else {
                Err(io::ErrorKind::WouldBlock.into())
            }
        })
    }

    fn should_wait_again(&self, error: &io::Error) -> bool {
        let is_watched = matches!(self.handle, PooledHandle::Watched(_));
        is_watched && error.kind() == io::ErrorKind::WouldBlock
    }

    fn submit<T: Send + 'static>(
        &self,
        operation: &'static str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Work<T>> {
        let core = self.handle_core();
        if core.header.stage.get() != Stage::Open {
            return Err(cancelled());
        }
        let purpose = Purpose::new(Class::Fs, operation).at(core.header.site);
        Work::submit(&core.handle, purpose, job)
    }

    pub(super) fn handle_core(&self) -> &HandleCore {
        match &self.handle {
            PooledHandle::Watched(source) => sealed::Sealed::handle_core(source),
            PooledHandle::Unwatched(unwatched) => &unwatched.core,
        }
    }

    #[inline]
    pub(super) fn close(self) -> Close {
        match self.handle {
            PooledHandle::Watched(source) => source.close(),
            PooledHandle::Unwatched(unwatched) => unwatched.core.close(),
        }
    }
}

impl Pooled {
    /// Returns the duplicate of the descriptor.
    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Leftover, Pooled};
    use crate::event_loop::EventLoop;
    use crate::label::Role;
    use crate::runtime::block_on::block_on;
    use crate::runtime::loop_handle::LoopHandle;
    use crate::sys::descriptor;
    use futures::FutureExt;
    use std::future::poll_fn;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::panic::Location;
    use std::sync::Arc;

    /// Creates a pipe in blocking mode, as standard input is if it cannot be opened again.
    fn blocking_pipe() -> (OwnedFd, OwnedFd) {
        let (reader, writer) = descriptor::pipe().unwrap();
        descriptor::set_nonblocking(&reader, false).unwrap();
        descriptor::set_nonblocking(&writer, false).unwrap();
        (reader, writer)
    }

    fn pooled_at(handle: &LoopHandle, end: BorrowedFd<'_>, can_wait: bool) -> Pooled {
        let leftover = Arc::new(Leftover::new());
        Pooled::new(
            handle,
            end,
            can_wait,
            leftover,
            Role::Unknown,
            Location::caller(),
        )
        .unwrap()
    }

    fn pooled(end: &OwnedFd) -> Pooled {
        pooled_at(&LoopHandle::current(), end.as_fd(), true)
    }

    #[test]
    fn no_thread_is_held_until_there_is_something_to_read() {
        let (reader, writer) = blocking_pipe();
        block_on(async {
            let pooled = pooled(&reader);
            let mut buffer = [0; 8];
            let mut read = poll_fn(|cx| pooled.poll_read(cx, &mut buffer));
            assert!((&mut read).now_or_never().is_none());
            assert!(pooled.read.borrow().is_none(), "nothing to read, no job");
            crate::sys::stdio::write(&writer, b"hello").unwrap();
            assert_eq!(read.await.unwrap(), 5);
            drop(writer);
            let read = poll_fn(|cx| pooled.poll_read(cx, &mut buffer)).await;
            assert_eq!(read.unwrap(), 0);
            assert!(!descriptor::access(&reader).unwrap().is_nonblocking);
        });
    }

    /// A dropped write in flight counts for the same bytes written again; other bytes wait for it.
    #[test]
    fn a_write_that_is_given_up_happens_once() {
        let (reader, writer) = blocking_pipe();
        block_on(async {
            let pooled = pooled(&writer);
            poll_fn(|cx| pooled.poll_ready(super::Direction::Write, super::Wanted::Write, cx))
                .await
                .unwrap();
            let give_up = |bytes: &'static [u8]| {
                let write = poll_fn(|cx| pooled.poll_write(cx, bytes));
                assert!(write.now_or_never().is_none());
            };
            give_up(b"one ");
            let again = poll_fn(|cx| pooled.poll_write(cx, b"one ")).await;
            assert_eq!(again.unwrap(), 4);
            give_up(b"two ");
            let other = poll_fn(|cx| pooled.poll_write(cx, b"three ")).await;
            assert_eq!(other.unwrap(), 6);
            give_up(b"fo");
            let longer = poll_fn(|cx| pooled.poll_write(cx, b"four")).await;
            assert_eq!(longer.unwrap(), 2, "the caller has appended to its buffer");
            give_up(b"ur");
            poll_fn(|cx| pooled.poll_flush(cx)).await.unwrap();
            let reader = self::pooled(&reader);
            let mut buffer = [0; 32];
            let read = poll_fn(|cx| reader.poll_read(cx, &mut buffer)).await;
            assert_eq!(&buffer[..read.unwrap()], b"one two three four");
        });
    }

    #[test]
    fn what_cannot_be_watched_is_a_handle_like_others() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let event_loop = EventLoop::new().unwrap();
        let handle = event_loop.handle();
        let pooled = pooled_at(&handle, file.as_fd(), true);
        assert_eq!(handle.handles().len(), 1);
        drop(pooled);
        assert_eq!(handle.handles().len(), 0);
        let pooled = pooled_at(&handle, file.as_fd(), false);
        let close = pooled.close();
        event_loop.block_on(close);
        assert_eq!(handle.handles().len(), 0);
    }
}
