//! A paused clock for tests, behind the feature `test-util`.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use super::sleep::sleep_at;
use crate::clock::nanoseconds;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::site::Site;

/// Pauses the clock of the running loop.
///
/// From now on time passes in two ways only: by [`advance`], and by itself when the loop has
/// nothing else to do. The clock then jumps to the next deadline in place of a wait. It does not
/// jump while a pool job is in flight, or while a message from another thread is pending.
///
/// # Panics
///
/// When no loop runs on this thread, and on a loop with tokio (`Builder::tokio`), whose timers run
/// in real time.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use phaseloop::time;
///
/// let real = Instant::now();
/// phaseloop::block_on(async {
///     time::pause();
///     let start = time::now();
///     time::sleep(Duration::from_secs(3600)).await;
///     assert_eq!(time::now() - start, Duration::from_secs(3600));
/// });
/// assert!(real.elapsed() < Duration::from_secs(60));
/// ```
#[track_caller]
pub fn pause() {
    let handle = LoopHandle::current();
    handle.core().check_pause();
    handle.core().clock().pause();
}

/// Resumes the clock of the running loop, from the time it was paused at.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn resume() {
    LoopHandle::current().core().clock().resume();
}

/// Returns whether the clock of the running loop is paused.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
#[track_caller]
pub fn is_paused() -> bool {
    LoopHandle::current().core().clock().is_paused()
}

/// Moves the paused clock forward, and waits until everything that became due has fired.
///
/// The time moves in one jump: a repeating timer fires once, as on a thread that was busy for that
/// long. In a callback, which cannot await, use [`LoopHandle::advance_time`].
///
/// # Panics
///
/// When no loop runs on this thread, or its clock is not paused.
#[track_caller]
pub fn advance(duration: Duration) -> impl Future<Output = ()> {
    let site = Location::caller();
    async move {
        let handle = LoopHandle::current_for("time::advance", Some(site));
        move_clock(&handle, duration, site);
        // This sleep fires after everything else that is due, by the order of deadlines.
        sleep_at(Duration::ZERO, site).await;
    }
}

impl LoopHandle {
    /// Moves the paused clock of the loop forward and refreshes [`now`](Self::now). It is
    /// [`advance`] for callbacks, and for a loop that does not run.
    ///
    /// No timer fires inside the call. Timers that became due fire in the next timers phase; a call
    /// from a timer does not extend the current pass. Later callbacks of the same phase see the new
    /// time.
    ///
    /// # Panics
    ///
    /// When the clock is not paused.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, RunMode, time::Timer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut event_loop = Builder::new().start_paused(true).build()?;
    /// let (handle, hour) = (event_loop.handle(), Duration::from_secs(3600));
    /// let timer = Timer::new(&handle);
    /// timer.start(hour, Duration::ZERO, |_| println!("an hour has passed"))?;
    /// let clock = handle.clone();
    /// handle.set_immediate(move || clock.advance_time(hour));
    /// event_loop.run(RunMode::NoWait)?;
    /// assert_eq!(timer.due_in(), Duration::ZERO);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn advance_time(&self, duration: Duration) {
        move_clock(self, duration, Location::caller());
        self.update_time();
    }
}

/// # Panics
///
/// When the clock is not paused. The panic points at the caller's line.
#[track_caller]
fn move_clock(handle: &LoopHandle, duration: Duration, site: Site) {
    let clock = &handle.core().clock();
    assert!(
        clock.is_paused(),
        "the clock runs by itself: call `phaseloop::time::pause()` before the `advance` of {site}"
    );
    clock.advance_to(clock.read().saturating_add(nanoseconds(duration)));
}
