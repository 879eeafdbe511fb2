//! Sources that are streams of bytes, or sockets: what the sockets of [`net`](crate::net) are made of.

use std::io;
use std::task::{Context, Poll, ready};

use super::source::Source;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::sources::Direction;
use crate::sys::poller::{AsSource, Ready};

impl<T: AsSource> Source<T> {
    /// The same for a stream or a socket, whose writes and connects keep the loop alive whether it is unref'd or not.
    ///
    /// One that `can_write` is tried without waiting for an event that says so (R143).
    #[track_caller]
    pub(crate) fn new_stream(handle: &LoopHandle, source: T, can_write: bool) -> io::Result<Self> {
        let source = Self::new(handle, source)?;
        source.state.writes_are_requests.set(true);
        if can_write {
            source.state.side(Direction::Write).set_ready(Ready {
                now: true,
                for_good: false,
            });
        }
        Ok(source)
    }

    /// The poll function of reads and writes of up to `asked` bytes: less than that means that the system has no more to
    /// give or no more room, so the next attempt waits for an event without trying.
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
    pub(crate) fn try_with<R>(
        &self,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.attempt(Direction::Read, &mut operation)
            .unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    fn after_bytes(&self, direction: Direction, asked: usize, result: &io::Result<usize>) {
        // Nothing at all is the end of a stream, which stays.
        if matches!(result, Ok(count) if (1..asked).contains(count)) {
            self.state.side(direction).clear_after_partial();
        }
    }
}
