//! Attempts on a source, and the waits that follow those that would block.
// Marks: see the head of `io/bytes.rs`.

use std::io;
use std::task::{Context, Poll};

use super::Source;
use crate::error::kinds::with_kind;
use crate::event_loop::io::sources::Direction;
use crate::executor::budget;
use crate::sys::errno::cancelled;
#[cfg(feature = "net")]
use crate::sys::poller::REPORTS_OWN_SHUTDOWN;
use crate::sys::poller::{AsSource, Interest, NEEDS_REARM};

impl<T: AsSource> Source<T> {
    /// Polls `operation`; the waker goes into the slot of the direction, which holds one.
    #[inline(always)]
    pub(in crate::io) fn poll_with<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            if !self.may_try(direction) {
                return self.wait_in_slot(direction, cx).map(Err);
            }
            match self.call(&mut operation) {
                Err(error) => self.end_attempt(direction, error)?,
                done => return Poll::Ready(done),
            }
        }
    }

    /// Ends an attempt of a poll that has failed. It returns if the operation is to be attempted
    /// again, at once or when the source is ready again.
    ///
    /// # Errors
    ///
    /// The error of the attempt.
    // A function of its own: it is the same for all operations, and seldom called.
    #[cold]
    pub(in crate::io) fn end_attempt(
        &self,
        direction: Direction,
        error: io::Error,
    ) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => self.state.clear_ready(direction),
            _ => return Err(with_kind(error)),
        }
        budget::give_back();
        Ok(())
    }

    /// Attempts `operation` once, whether or not the source is known to be ready.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), and then the direction is marked as not ready;
    /// otherwise the errors of `operation`.
    pub(crate) fn try_with<R>(
        &self,
        direction: Direction,
        operation: &mut impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let error = match self.call(operation) {
                Err(error) => error,
                done => return done,
            };
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => {
                    self.state.clear_ready(direction);
                    return Err(error);
                }
                _ => return Err(with_kind(error)),
            }
        }
    }

    #[inline]
    pub(in crate::io) fn poll_ready(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.may_try(direction) {
            return Poll::Ready(Ok(()));
        }
        self.wait_in_slot(direction, cx).map(Err)
    }

    /// Waits with the waker in the slot of the direction.
    #[inline(always)]
    pub(in crate::io) fn wait_in_slot(
        &self,
        direction: Direction,
        cx: &Context<'_>,
    ) -> Poll<io::Error> {
        self.state.waiters(direction).wait_in_slot(cx.waker());
        self.begin_wait(direction)
    }

    /// Returns whether an event has reported that both directions are closed. It returns `false` on
    /// platforms whose events do not report that.
    #[cfg(feature = "net")]
    pub(crate) fn is_hung_up(&self) -> bool {
        self.state.is_hung_up()
    }

    /// Returns whether the source is ready and the budget of the running poll has an operation
    /// left, which this takes.
    #[inline(always)]
    pub(in crate::io) fn may_try(&self, direction: Direction) -> bool {
        if self.state.is_asked() && self.has_to_wait(direction) {
            return false;
        }
        #[cfg(feature = "stacks")]
        if crate::raw::stack_poll::holds_back(self.state.is_ready(direction)) {
            return false;
        }
        self.state.is_ready(direction)
            && (budget::take() || self.core.handle.core().defer(&self.state, direction))
    }

    /// Asks the way to wait whether an attempt would block.
    #[cold]
    pub(in crate::io) fn has_to_wait(&self, direction: Direction) -> bool {
        // Urgent data and hang-ups are no attempts, and their events come once.
        matches!(direction, Direction::Read | Direction::Write)
            && self.state.is_ready(direction)
            && self
                .loop_core()
                .ask_attempt(&self.state, direction, None)
                .is_none()
    }

    /// Takes one operation from the budget of the running poll, for an operation without a system
    /// call, such as a message that arrived with the previous one. It waits for the next poll phase
    /// if the budget is spent.
    #[cfg(all(unix, feature = "process"))]
    pub(crate) async fn spend(&self) -> io::Result<()> {
        if budget::take() || self.core.handle.core().defer(&self.state, Direction::Read) {
            return Ok(());
        }
        self.readable().await
    }

    /// Starts a wait: the source becomes active, and one-shot interests are registered again.
    #[inline(always)]
    pub(in crate::io) fn begin_wait(&self, direction: Direction) -> Poll<io::Error> {
        if !self.state.is_wait_counted(direction)
            && !self.state.count_first_wait(self.loop_core(), direction)
        {
            return Poll::Ready(cancelled());
        }
        if !NEEDS_REARM {
            let is_new =
                direction == Direction::Write && self.state.interest.get() != Interest::Both;
            return if is_new {
                self.add_write()
            } else {
                Poll::Pending
            };
        }
        // A deferred direction is resumed without an event, which would come at once.
        let [read, write] = [Direction::Read, Direction::Write].map(|direction| {
            self.state.is_awaited(direction)
                && !self.loop_core().io.is_deferred(&self.state, direction)
        });
        match self.registration().rearm(self.state.key, read, write) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// Notes that this end has shut down reading: who waits to read finds EOF.
    #[cfg(feature = "net")]
    pub(crate) fn note_end_of_reading(&self) {
        if !REPORTS_OWN_SHUTDOWN && !self.state.is_ready(Direction::Read) {
            self.loop_core().resume_later(&self.state, Direction::Read);
        }
    }

    /// Notes that the source is being connected to `address`, until
    /// [`end_connect`](Self::end_connect).
    #[cfg(feature = "net")]
    pub(crate) fn note_connect(&self, address: std::net::SocketAddr) {
        self.loop_core().io.note_connect(self.state.key, address);
    }

    /// Notes that the source is connected, or was given up.
    #[cfg(feature = "net")]
    pub(crate) fn end_connect(&self) {
        self.loop_core().io.end_connect(self.state.key);
    }

    /// Registers the source for writing, with the first write that has to wait.
    #[cold]
    fn add_write(&self) -> Poll<io::Error> {
        match self.registration().add_write(self.state.key) {
            Ok(()) => {
                self.state.interest.set(Interest::Both);
                Poll::Pending
            }
            Err(error) => Poll::Ready(error),
        }
    }

    /// Calls the operation once.
    #[inline(always)]
    pub(in crate::io) fn call<R>(
        &self,
        operation: &mut impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        if self.state.is_asked() {
            self.loop_core().waits.note_attempt(&self.state);
        }
        match &self.registration {
            Some(registration) => operation(registration.get()),
            None => Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "this end of the stream was closed",
            )),
        }
    }
}
