//! libuv's timer handle.
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

use crate::clock::nanoseconds;
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::phases::timers::TimerState;
use crate::keeper::Keeper;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;

/// Runs a callback in the timers phase, once or repeatedly, by the loop's cached time.
///
/// Due timers run in the order of their deadlines; equal deadlines run in the order of their start.
/// A timer that another timer of the same pass stops or restarts does not run in that pass.
///
/// In async code, [`sleep`](super::sleep) and [`interval`](super::interval) are simpler;
/// [`time`](super) compares their clocks.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{EventLoop, RunMode, time::Timer};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let timer = Timer::new(&event_loop.handle());
///     let mut left = 3;
///     timer.start(Duration::from_millis(1), Duration::from_millis(1), move |timer| {
///         left -= 1;
///         if left == 0 {
///             timer.stop();
///         }
///     })?;
///     event_loop.run(RunMode::Default)?;
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_timer_t")]
#[doc(alias = "setTimeout")]
#[doc(alias = "setInterval")]
pub struct Timer {
    core: HandleCore,
    state: Bound<Rc<TimerState>>,
}

impl Timer {
    /// Creates a stopped timer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let timer = Timer::new(&event_loop.handle());
    ///     let (count, millisecond) = (Rc::new(Cell::new(0)), Duration::from_millis(1));
    ///     let fired = count.clone();
    ///     timer.start(millisecond, millisecond, move |timer| {
    ///         fired.set(fired.get() + 1);
    ///         if fired.get() == 3 {
    ///             timer.stop();
    ///         }
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(count.get(), 3);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(handle: &LoopHandle) -> Self {
        let core = handle.open(Keeper::Timer, Location::caller());
        Self {
            state: Bound::new(TimerState::new(core.header.clone())),
            core,
        }
    }

    /// Starts the timer: `callback` runs once `timeout` has passed since the loop's
    /// [`now`](LoopHandle::now) and, unless `repeat` is zero, every `repeat` after that. A started
    /// timer is stopped first. The callback receives the timer.
    ///
    /// A deadline beyond the range of the clock is never reached. After a long-running callback,
    /// `now` is stale and the timer fires earlier than expected; [`LoopHandle::update_time`] avoids
    /// that.
    ///
    /// # Errors
    ///
    /// If the timer was closed or the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let timer = Timer::new(&event_loop.handle());
    ///     let (count, millisecond) = (Rc::new(Cell::new(0)), Duration::from_millis(1));
    ///     let fired = count.clone();
    ///     timer.start(millisecond, millisecond, move |timer| {
    ///         fired.set(fired.get() + 1);
    ///         if fired.get() == 3 {
    ///             timer.stop();
    ///         }
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(count.get(), 3);
    ///     Ok(())
    /// }
    /// ```
    pub fn start(
        &self,
        timeout: Duration,
        repeat: Duration,
        mut callback: impl FnMut(&Self) + 'static,
    ) -> Result<(), Error> {
        self.core.check_open()?;
        self.stop();
        // The reference is weak, since the timer owns the callback.
        let state = Rc::downgrade(&self.state);
        let before = self.state.callback.set(Box::new(move || {
            if let Some(state) = state.upgrade() {
                callback(&Self {
                    core: HandleCore::view(state.header.clone()),
                    state: Bound::new(state),
                });
            }
        }));
        self.state.started.set(true);
        self.arm(timeout, repeat);
        // Dropping the old callback may run user code, which may use this timer.
        drop(before);
        Ok(())
    }

    /// Stops the timer: its callback does not run any more. Stopping a stopped timer does nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let timer = Timer::new(&event_loop.handle());
    ///     let (count, millisecond) = (Rc::new(Cell::new(0)), Duration::from_millis(1));
    ///     let fired = count.clone();
    ///     timer.start(millisecond, millisecond, move |timer| {
    ///         fired.set(fired.get() + 1);
    ///         if fired.get() == 3 {
    ///             timer.stop();
    ///         }
    ///     })?;
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(count.get(), 3);
    ///     Ok(())
    /// }
    /// ```
    pub fn stop(&self) {
        self.loop_core().disarm_timer(&self.state);
    }

    /// Restarts a repeating timer with its repeat time as the timeout. A timer without a repeat
    /// time is left unchanged.
    ///
    /// # Errors
    ///
    /// If the timer was never started or was closed, or the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let idle = Timer::new(&LoopHandle::current());
    ///     idle.start(Duration::from_secs(60), Duration::ZERO, |_| println!("idle"))?;
    ///     idle.set_repeat(Duration::from_secs(60));
    ///     idle.again()?; // with each message: a minute from now
    ///     assert_eq!(idle.repeat(), Duration::from_secs(60));
    ///     idle.stop();
    ///     Ok(())
    /// }
    /// ```
    pub fn again(&self) -> Result<(), Error> {
        self.check_started()?;
        let repeat = self.state.repeat.get();
        if repeat != 0 {
            self.stop();
            self.loop_core().arm_timer(&self.state, repeat);
        }
        Ok(())
    }

    /// Starts the timer with the callback of the last [`start`](Self::start) and new times, as
    /// libuv's `uv_timer_start` does with the same callback. A started timer is stopped first; it
    /// fires after other timers with the same deadline.
    ///
    /// # Errors
    ///
    /// If the timer was never started or was closed, or the loop was dropped.
    ///
    /// # Examples
    ///
    /// A timer that every activity postpones:
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let idle = Timer::new(&event_loop.handle());
    ///     idle.start(Duration::from_millis(1), Duration::ZERO, |_| println!("nothing came"))?;
    ///     idle.restart(Duration::from_millis(2), Duration::ZERO)?;
    ///     event_loop.run(RunMode::Default)?;
    ///     Ok(())
    /// }
    /// ```
    pub fn restart(&self, timeout: Duration, repeat: Duration) -> Result<(), Error> {
        self.check_started()?;
        self.stop();
        self.arm(timeout, repeat);
        Ok(())
    }

    /// Sets the repeat time; zero for none. It takes effect when the timer next fires: in the
    /// callback of a repeating timer, the next call is already scheduled with the old time.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let idle = Timer::new(&LoopHandle::current());
    ///     idle.start(Duration::from_secs(60), Duration::ZERO, |_| println!("idle"))?;
    ///     idle.set_repeat(Duration::from_secs(60));
    ///     idle.again()?; // with each message: a minute from now
    ///     assert_eq!(idle.repeat(), Duration::from_secs(60));
    ///     idle.stop();
    ///     Ok(())
    /// }
    /// ```
    pub fn set_repeat(&self, repeat: Duration) {
        self.state.repeat.set(nanoseconds(repeat));
    }

    /// The repeat time; zero for none.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let idle = Timer::new(&LoopHandle::current());
    ///     idle.start(Duration::from_secs(60), Duration::ZERO, |_| println!("idle"))?;
    ///     idle.set_repeat(Duration::from_secs(60));
    ///     idle.again()?; // with each message: a minute from now
    ///     assert_eq!(idle.repeat(), Duration::from_secs(60));
    ///     idle.stop();
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn repeat(&self) -> Duration {
        Duration::from_nanos(self.state.repeat.get())
    }

    /// The time from the loop's [`now`](LoopHandle::now) to the deadline; zero if it has passed.
    /// For a stopped timer, the deadline of its last start.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let timer = Timer::new(&LoopHandle::current());
    ///     timer.start(Duration::from_secs(60), Duration::ZERO, |_| ())?;
    ///     assert!(timer.due_in() <= Duration::from_secs(60));
    ///     timer.stop();
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn due_in(&self) -> Duration {
        let now = self.loop_core().executor.clock.now();
        Duration::from_nanos(self.state.due.get().saturating_sub(now))
    }

    /// Stops the timer for good, at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Handle, LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let timer = Timer::new(&LoopHandle::current());
    ///     timer.start(Duration::from_secs(60), Duration::ZERO, |_| unreachable!())?;
    ///     timer.close().await;
    ///     assert!(timer.is_closing() && !timer.is_active());
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }

    /// Returns the reason why the timer has no callback to start with, if it has none.
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

impl_handle!(Timer, |this| &this.core);

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
