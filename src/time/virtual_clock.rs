//! A paused clock for tests, behind the feature `test-util`.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use super::sleep::Sleep;
use crate::clock::nanoseconds;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::ways_to_wait::paused::pause_clock;
use crate::ways_to_wait::shuffled::is_shuffled;

/// Pauses the clock of the running loop.
///
/// From now on time passes in two ways only: by [`advance`], and by itself when the loop has
/// nothing else to do. The clock then jumps to the next deadline in place of a wait. It does not
/// jump while a pool job is in flight, or while a message from another thread is pending.
///
/// # Peers outside of the loop
///
/// A thread or another process takes real time to answer. While a task waits for one, the loop
/// waits in real time before the clock jumps: until the next deadline, and at most for
/// 5 s, which [`Builder::outside_timeout`](crate::Builder::outside_timeout) changes.
/// So a `timeout` of ten seconds around a real socket gets an answer that comes after 300 ms, and
/// the clock stands still meanwhile. Without an answer it ends after 5 s. An answer starts
/// the 5 s again, and so does a read or a write that the program tries. Once they are used up, the
/// clock jumps as if there were no peer.
///
/// - The loop waits for connected sockets, connects, ends of pipes, child processes, and for a
///   [`Source`](crate::io::Source) or a started [`PollHandle`](crate::io::PollHandle) of any kind.
/// - It does not wait if the other end of the socket or pipe is in this loop, too: that end acts
///   only when the loop runs it. With such peers only, every run is the same.
/// - It waits once for a listener or a datagram socket without a peer, unless a socket of this
///   loop is connected to it.
/// - It does not wait for signals and for changes of files, which come unasked, and not for unref'd
///   handles.
/// - It jumps only when nothing else is to do. A task that yields or wakes itself until a timer has
///   fired keeps it where it is, for ever, as in tokio: call [`advance`] in such a loop.
/// - It cannot see what another thread is going to wake, such as a channel: use
///   [`spawn_blocking`](crate::spawn_blocking), whose jobs hold the clock, or [`auto_advance`].
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
/// fn main() {
///     let real = Instant::now();
///     phaseloop::block_on(async {
///         time::pause();
///         let start = time::now();
///         time::sleep(Duration::from_secs(3600)).await;
///         assert_eq!(time::now() - start, Duration::from_secs(3600));
///     });
///     assert!(real.elapsed() < Duration::from_secs(60));
/// }
/// ```
#[track_caller]
pub fn pause() {
    pause_clock(LoopHandle::current().core());
}

/// Sets whether the paused clock of the running loop jumps to the next deadline when the loop has
/// nothing else to do, as it does by default. If not, only [`advance`] and
/// [`LoopHandle::advance_time`] move it.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// After `cargo add futures`:
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::time::{self, timeout};
///
/// #[phaseloop::main]
/// async fn main() {
///     time::pause();
///     time::auto_advance(false);
///     // The loop cannot know that a thread will send, and does not run ahead of it.
///     let (sender, receiver) = futures::channel::oneshot::channel();
///     let peer = thread::spawn(move || sender.send("done"));
///     let received = timeout(Duration::from_secs(1), receiver).await;
///     assert_eq!(received, Ok(Ok("done")));
///     peer.join().unwrap().unwrap();
/// }
/// ```
#[track_caller]
pub fn auto_advance(enabled: bool) {
    LoopHandle::current()
        .core()
        .executor
        .clock
        .set_auto_advance(enabled);
}

/// Resumes the clock of the running loop, from the time it was paused at.
///
/// # Panics
///
/// When no loop runs on this thread, or when the loop is [shuffled](crate::shuffle).
///
/// # Examples
///
/// ```
/// use phaseloop::time;
///
/// #[phaseloop::main(start_paused=true)]
/// async fn main() {
///     assert!(time::is_paused());
///     time::resume();
///     assert!(!time::is_paused());
/// }
/// ```
#[track_caller]
pub fn resume() {
    let handle = LoopHandle::current();
    assert!(
        !is_shuffled(handle.core()),
        "the clock of a shuffled loop stays paused: a run by the real clock cannot be repeated"
    );
    handle.core().executor.clock.resume();
    handle.core().counters.publish(&handle.core().executor);
}

/// Returns whether the clock of the running loop is paused.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::time;
///
/// #[phaseloop::main(start_paused=true)]
/// async fn main() {
///     assert!(time::is_paused());
///     time::resume();
///     assert!(!time::is_paused());
/// }
/// ```
#[must_use]
#[track_caller]
pub fn is_paused() -> bool {
    LoopHandle::current().core().executor.clock.is_paused()
}

/// Moves the paused clock forward, and waits until everything that became due has fired.
///
/// The time moves in one jump: a repeating timer fires once, as on a thread that was busy for that
/// long. In a callback, which cannot await, use [`LoopHandle::advance_time`].
///
/// # Panics
///
/// When no loop runs on this thread, or its clock is not paused.
///
/// # Cancel safety
///
/// The first poll moves the clock. Dropping the future afterwards ends the wait only.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{spawn, time::{self, sleep}};
///
/// #[phaseloop::main]
/// async fn main() {
///     time::pause();
///     let task = spawn(sleep(Duration::from_secs(60)));
///     time::advance(Duration::from_secs(59)).await;
///     assert!(!task.is_finished());
///     time::advance(Duration::from_secs(1)).await;
///     assert!(task.is_finished());
/// }
/// ```
#[track_caller]
pub fn advance(duration: Duration) -> impl Future<Output = ()> {
    let site = Location::caller();
    async move {
        let handle = LoopHandle::current_for("time::advance", Some(site));
        move_clock(&handle, duration, site);
        // This sleep fires after everything else that is due, by the order of deadlines.
        Sleep::after(Duration::ZERO, site).await;
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
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = Builder::new().start_paused(true).build()?;
    ///     let (handle, hour) = (event_loop.handle(), Duration::from_secs(3600));
    ///     let timer = Timer::new(&handle);
    ///     timer.start(hour, Duration::ZERO, |_| println!("an hour has passed"))?;
    ///     let clock = handle.clone();
    ///     handle.set_immediate(move || clock.advance_time(hour));
    ///     event_loop.run(RunMode::NoWait)?;
    ///     assert_eq!(timer.due_in(), Duration::ZERO);
    ///     Ok(())
    /// }
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
    let clock = &handle.core().executor.clock;
    assert!(
        clock.is_paused(),
        "the clock runs by itself: call `phaseloop::time::pause()` before the `advance` of {site}"
    );
    clock.advance_to(clock.read().saturating_add(nanoseconds(duration)));
}
