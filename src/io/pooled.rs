//! Descriptors that block: read and written by a thread of the pool, at best when they are ready.
//!
//! ```text
//!   poll ──> (watched: ready?) ──> job on the pool: read or write ──> poll phase ──> what was read is handed out
//! ```
//!
//! A job cannot be taken back once it runs. So what it reads goes where every reader of the process finds it, and what it
//! has written counts for the next who writes the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use super::source::Source;
use crate::blocking::Work;
use crate::event_loop::api::handle::{Close, HandleCore, Stage, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::phases::jobs::Purpose;
use crate::event_loop::phases::sources::Direction;
use crate::keeper::Keeper;
use crate::pool::Class;
use crate::site::Site;
use crate::sys::errno::cancelled;
use crate::sys::stdio::{self, Wanted};

/// The most that one job moves; as much as libuv suggests for a read.
const MOST: usize = 64 * 1024;

/// What is shared by all who read the same thing through the pool, in whichever loop.
pub(crate) struct Leftover {
    /// Held by the job that reads: one at a time.
    turn: Mutex<()>,
    /// What was read and not yet handed out. Never held for long.
    bytes: Mutex<VecDeque<u8>>,
}

impl Leftover {
    pub(crate) const fn new() -> Self {
        Self {
            turn: Mutex::new(()),
            bytes: Mutex::new(VecDeque::new()),
        }
    }

    /// On the pool: reads up to `most` bytes, unless some are left. `false`: the end.
    fn fill(&self, descriptor: &OwnedFd, most: usize) -> io::Result<bool> {
        let _turn = lock(&self.turn);
        if !lock(&self.bytes).is_empty() {
            return Ok(true);
        }
        let mut buffer = vec![0; most];
        let read = stdio::read(descriptor, &mut buffer)?;
        lock(&self.bytes).extend(&buffer[..read]);
        Ok(read > 0)
    }

    /// Hands out what is left.
    fn take(&self, buffer: &mut [u8]) -> usize {
        let taken = io::Read::read(&mut *lock(&self.bytes), buffer);
        taken.expect("memory can be read")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor that is read and written by the pool.
pub(crate) struct Pooled {
    handle: PooledHandle,
    descriptor: Arc<OwnedFd>,
    leftover: Arc<Leftover>,
    read: RefCell<Option<Work<io::Result<bool>>>>,
    write: RefCell<Option<Writing>>,
}

/// What the loop knows of it.
enum PooledHandle {
    /// It can be watched: a job begins when it will hardly block.
    Watched(Source<Arc<OwnedFd>>),
    /// A file or a device that is ready at any time.
    Unwatched(Unwatched),
}

struct Unwatched {
    core: HandleCore,
}

impl Drop for Unwatched {
    fn drop(&mut self) {
        self.core.release();
    }
}

/// A write under way, and what it writes.
struct Writing {
    work: Work<io::Result<usize>>,
    bytes: Arc<[u8]>,
}

impl Pooled {
    /// `can_wait`: it may be something that is not ready at any time, to be watched if that is possible.
    pub(super) fn new(
        handle: &LoopHandle,
        descriptor: BorrowedFd<'_>,
        can_wait: bool,
        leftover: Arc<Leftover>,
        site: Site,
    ) -> io::Result<Self> {
        let descriptor = Arc::new(descriptor.try_clone_to_owned()?);
        let watched = can_wait.then(|| Source::new_at(handle, descriptor.clone(), site).ok());
        let handle = match watched.flatten() {
            Some(source) => PooledHandle::Watched(source),
            None => PooledHandle::Unwatched(Unwatched {
                core: handle.open(Keeper::Io, site),
            }),
        };
        Ok(Self {
            handle,
            descriptor,
            leftover,
            read: RefCell::default(),
            write: RefCell::default(),
        })
    }

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
            // Out of the cell while it is polled: that may drop a waker, which is anybody's code.
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
                // Somebody who shares it was faster, and its mode is not to block.
                Poll::Ready(Err(error)) if self.should_wait_again(&error) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }

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
                // A former write, of something else, that was given up has come to its end.
                Poll::Ready(Ok(_)) if *writing.bytes != *buffer => {}
                Poll::Ready(result) => return Poll::Ready(result),
            }
        }
    }

    /// Waits for a write that was given up. One that found no room has written nothing, which nobody wants any more.
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

    /// Waits, where it can be watched, until the next job would not block.
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
        let purpose = Purpose::new(Class::Fs, operation).at(core.header.site());
        Work::submit(&core.handle, purpose, job)
    }

    pub(super) fn handle_core(&self) -> &HandleCore {
        match &self.handle {
            PooledHandle::Watched(source) => sealed::Sealed::handle_core(source),
            PooledHandle::Unwatched(unwatched) => &unwatched.core,
        }
    }

    pub(super) fn close(self) -> Close {
        match self.handle {
            PooledHandle::Watched(source) => source.close(),
            PooledHandle::Unwatched(unwatched) => unwatched.core.close(),
        }
    }
}

impl AsFd for Pooled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Leftover, Pooled};
    use crate::event_loop::EventLoop;
    use crate::event_loop::api::block_on::block_on;
    use crate::event_loop::api::loop_handle::LoopHandle;
    use crate::sys::descriptor;
    use futures::FutureExt;
    use std::future::poll_fn;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::panic::Location;
    use std::sync::Arc;

    /// A pipe that blocks, as standard input is where it cannot be opened again.
    fn blocking_pipe() -> (OwnedFd, OwnedFd) {
        let (reader, writer) = descriptor::pipe().unwrap();
        descriptor::set_nonblocking(&reader, false).unwrap();
        descriptor::set_nonblocking(&writer, false).unwrap();
        (reader, writer)
    }

    fn pooled_at(handle: &LoopHandle, end: BorrowedFd<'_>, can_wait: bool) -> Pooled {
        let leftover = Arc::new(Leftover::new());
        Pooled::new(handle, end, can_wait, leftover, Location::caller()).unwrap()
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

    /// What was given up on the pool counts for the same bytes written again, and stays for others.
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
            give_up(b"four");
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
        let mut event_loop = EventLoop::new().unwrap();
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
