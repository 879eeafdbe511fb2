//! The timer handle: libuv's.
//!
//! ```text
//!            start            due                      repeat: armed again before the call
//!   new ──> stopped ──> armed ──> ready ──> called ──┬──> armed
//!              ^          │         │                └──> stopped
//!              └── stop ──┴─────────┘
//! ```

use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::error::Error;
use crate::event_loop::clock::nanoseconds;
use crate::event_loop::core::Core;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::handles::{Close, Handle, HandleCore, sealed};
use crate::event_loop::timers::TimerState;
use crate::kinds::Kind;

/// Calls back in the timers phase, once or again and again, by the loop's cached time.
///
/// Timers that are due together are called in the order of their due times, and where these are equal in the order
/// in which they were started. A timer stopped, or started anew, by another one of the same pass is not called in it.
///
/// For waiting in async code, [`sleep`](super::sleep) and [`interval`](super::interval) are simpler; see
/// [`time`](super) for how their clock differs.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{EventLoop, RunMode, time::Timer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut event_loop = EventLoop::new()?;
/// let timer = Timer::new(&event_loop.handle());
/// let mut left = 3;
/// timer.start(Duration::from_millis(1), Duration::from_millis(1), move |timer| {
///     left -= 1;
///     if left == 0 {
///         timer.stop();
///     }
/// })?;
/// event_loop.run(RunMode::Default)?;
/// # Ok(())
/// # }
/// ```
pub struct Timer {
    core: HandleCore,
    state: Rc<TimerState>,
}

impl Timer {
    /// Makes a timer that is not started.
    #[must_use]
    #[track_caller]
    pub fn new(handle: &LoopHandle) -> Self {
        let core = handle.open(Kind::Timer, Location::caller());
        Self {
            state: TimerState::new(core.header.clone()),
            core,
        }
    }

    /// Calls `callback` when `timeout` has passed since the loop's [`now`](LoopHandle::now), and, unless `repeat` is
    /// zero, every `repeat` after that. A started timer is stopped first. The callback gets the timer itself.
    ///
    /// A time beyond the range of the clock is never reached. After a callback that took long, `now` lies in the past
    /// and the timer is due earlier than expected; [`LoopHandle::update_time`] avoids it.
    ///
    /// # Errors
    ///
    /// When the timer was closed or the loop is gone.
    pub fn start(
        &self,
        timeout: Duration,
        repeat: Duration,
        mut callback: impl FnMut(&Self) + 'static,
    ) -> Result<(), Error> {
        self.core.check_open()?;
        self.stop();
        // Weak: the callback lives in what it points to.
        let state = Rc::downgrade(&self.state);
        let before = self.state.callback.set(Box::new(move || {
            if let Some(state) = state.upgrade() {
                callback(&Self {
                    core: HandleCore::view(state.header.clone()),
                    state,
                });
            }
        }));
        self.state.started.set(true);
        self.arm(timeout, repeat);
        // What the old callback has captured may do anything, also to this timer.
        drop(before);
        Ok(())
    }

    /// Stops the timer; its callback is not called any more. Does nothing when it is not started.
    pub fn stop(&self) {
        self.loop_core().disarm_timer(&self.state);
    }

    /// Stops a repeating timer and starts it with its repeat time as timeout. One that does not repeat is left as it is.
    ///
    /// # Errors
    ///
    /// When the timer was never started, was closed, or the loop is gone.
    pub fn again(&self) -> Result<(), Error> {
        self.check_started()?;
        let repeat = self.state.repeat.get();
        if repeat != 0 {
            self.stop();
            self.loop_core().arm_timer(&self.state, repeat);
        }
        Ok(())
    }

    /// Starts the timer with the callback of the last [`start`](Self::start) and other times, as libuv's `uv_timer_start`
    /// does with the same callback. A started timer is stopped first; it goes behind the others of its due time.
    ///
    /// # Errors
    ///
    /// When the timer was never started, was closed, or the loop is gone.
    ///
    /// # Examples
    ///
    /// A timer that is put off whenever something happens:
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut event_loop = EventLoop::new()?;
    /// let idle = Timer::new(&event_loop.handle());
    /// idle.start(Duration::from_millis(1), Duration::ZERO, |_| println!("nothing has happened"))?;
    /// idle.restart(Duration::from_millis(2), Duration::ZERO)?;
    /// event_loop.run(RunMode::Default)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn restart(&self, timeout: Duration, repeat: Duration) -> Result<(), Error> {
        self.check_started()?;
        self.stop();
        self.arm(timeout, repeat);
        Ok(())
    }

    /// Sets the time between two calls; zero for a single one. It counts from the next time the timer fires: a
    /// repeating timer that sets it in its callback is armed with the old time already.
    pub fn set_repeat(&self, repeat: Duration) {
        self.state.repeat.set(nanoseconds(repeat));
    }

    /// The time between two calls; zero for a single one.
    #[must_use]
    pub fn repeat(&self) -> Duration {
        Duration::from_nanos(self.state.repeat.get())
    }

    /// How long from the loop's [`now`](LoopHandle::now) until the timer is due; zero if that has passed. For a timer
    /// that is not started, this is about its last start.
    #[must_use]
    pub fn due_in(&self) -> Duration {
        let now = self.loop_core().clock.now();
        Duration::from_nanos(self.state.due.get().saturating_sub(now))
    }

    /// Stops the timer for good, at once, and has it reported in the closing phase; see [`Close`].
    pub fn close(&self) -> Close {
        self.core.close()
    }

    /// Why there is no callback to start the timer with, if there is none.
    fn check_started(&self) -> Result<(), Error> {
        self.core.check_open()?;
        if self.state.started.get() {
            Ok(())
        } else {
            Err(Error::NEVER_STARTED)
        }
    }

    fn arm(&self, timeout: Duration, repeat: Duration) {
        self.state.repeat.set(nanoseconds(repeat));
        self.loop_core()
            .arm_timer(&self.state, nanoseconds(timeout));
    }

    fn loop_core(&self) -> &Core {
        self.core.handle.core()
    }
}

impl Handle for Timer {}

impl sealed::Sealed for Timer {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("active", &self.is_active())
            .field("due_in", &self.due_in())
            .field("repeat", &self.repeat())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
