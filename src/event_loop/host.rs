//! The loop inside a host: another loop of the thread, which waits for the descriptor of the poller
//! and calls `turn`.
//!
//! A host waits for one descriptor only. So whenever the loop is left to it, the timer of the
//! poller is set to the next deadline, and work that is due makes the descriptor readable at once.
//! A loop that waits by itself does not touch the timer.

use std::cell::Cell;
use std::io;

use super::core::Core;
use super::wait::in_context;
use crate::clock::NEVER;
use crate::sys::poller::HAS_TIMER;

#[derive(Default)]
pub(crate) struct Host {
    /// The number of runs and `enter`s of the loop that are in progress.
    depth: Cell<u32>,
    is_embedded: Cell<bool>,
    /// Whether a host waits for the descriptor, as far as the loop knows: it is embedded, and does
    /// not run.
    is_left: Cell<bool>,
    /// When the timer of the poller fires; zero if it is not set.
    timer: Cell<u64>,
}

/// The loop is running or entered; the drop ends that.
struct Inside<'a>(&'a Core);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let host = &self.0.host;
        host.depth.set(host.depth.get() - 1);
        if host.depth.get() == 0 && host.is_embedded.get() {
            host.is_left.set(true);
            self.0.arm_for_host();
        }
    }
}

/// Embedding.
#[allow(dead_code, reason = "only a feature above sets a hook")]
impl Host {
    /// Returns whether a host drives the loop.
    pub(crate) fn is_embedded(&self) -> bool {
        self.is_embedded.get()
    }

    /// Returns whether the timer of the poller is set to a time after `start`, and `end` at the
    /// latest. If it is past by now, it has fired after `start`.
    pub(crate) fn has_timer_between(&self, start: u64, end: u64) -> bool {
        let timer = self.timer.get();
        timer > start && timer <= end
    }

    /// Returns whether the timer of the poller is not set, or has fired.
    pub(crate) fn has_timer_fired(&self, now: u64) -> bool {
        self.timer.get() <= now
    }
}

impl Core {
    /// Calls `body` as code of this loop, a run of it or not: in the context of the hook, and with
    /// a host that waits for what `body` leaves behind.
    #[inline]
    pub(crate) fn inside<R>(&self, is_run: bool, body: impl FnOnce() -> R) -> R {
        let host = &self.host;
        host.depth.set(host.depth.get() + 1);
        host.is_left.set(false);
        let _inside = Inside(self);
        match self.waits.hook() {
            None => body(),
            Some(hook) => in_context(hook, is_run, body),
        }
    }

    /// Lets a host drive the loop. From now on the descriptor of the poller is readable when a turn
    /// is due.
    pub(crate) fn embed(&self) -> io::Result<()> {
        let host = &self.host;
        if self.waits.hook().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a loop that runs another runtime in its wait cannot be embedded: its descriptor does not report the events of that runtime",
            ));
        }
        if HAS_TIMER && !host.is_embedded.get() {
            // Creates the timer, which can fail only now.
            self.io.poller().set_timer(Some(NEVER))?;
            self.io.poller().set_timer(None)?;
        }
        host.is_embedded.set(true);
        if host.depth.get() == 0 {
            host.is_left.set(true);
            self.arm_for_host();
        }
        Ok(())
    }

    /// Lets a host that waits for the descriptor know what was queued or started outside of a turn.
    #[inline]
    pub(crate) fn notify_host(&self) {
        if self.host.is_left.get() {
            self.arm_for_host();
        }
    }

    /// Makes the descriptor readable when the next turn is due.
    fn arm_for_host(&self) {
        if self.executor.is_closed() || self.io.poller().is_inherited() {
            return;
        }
        let set = match self.next_timeout() {
            // There is work, or a stop to end; a loop that is not alive has no turn to make.
            Some(0) if self.stop.get() || self.is_alive() => {
                self.executor.shared.inbox.signal();
                return;
            }
            Some(1..) if HAS_TIMER && !self.executor.clock.is_paused() => {
                let next = self.phases.next_timer();
                let due = next.map_or(NEVER, |next| next.deadline);
                self.set_timer(due, self.executor.clock.read())
            }
            _ => self.clear_timer(),
        };
        if set.is_err() {
            // Too many turns are better than none.
            self.executor.shared.inbox.signal();
        }
    }

    /// Sets the timer of the poller to `due`, unless it is set so.
    fn set_timer(&self, due: u64, now: u64) -> io::Result<()> {
        let timer = &self.host.timer;
        if timer.get() != due || timer.get() <= now {
            let delay = due.saturating_sub(now);
            self.io.poller().set_timer(Some(delay))?;
            timer.set(due);
        }
        Ok(())
    }

    /// Makes the descriptor of the poller readable at `due`, or earlier. A timer that is set to an
    /// earlier time is left as it is: one early end of a wait costs less than a system call each
    /// time.
    #[allow(dead_code, reason = "only a feature above sets a hook")]
    pub(crate) fn wake_by(&self, due: u64, now: u64) {
        if !self.host.has_timer_between(now, due) && self.set_timer(due, now).is_err() {
            self.executor.shared.inbox.signal();
        }
    }

    /// Notes that the poller has a new timer, in a child after `fork`, and sets it for a host.
    pub(crate) fn forget_timer(&self) {
        self.host.timer.set(0);
        self.notify_host();
    }

    fn clear_timer(&self) -> io::Result<()> {
        if self.host.timer.replace(0) > self.executor.clock.read() {
            self.io.poller().set_timer(None)?;
        }
        Ok(())
    }
}
