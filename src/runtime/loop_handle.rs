//! The loop as its owner thread sees it.
// Marks: `cold`: it panics.

mod observed;
mod report;

use std::future::Future;
use std::panic::Location;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::handle::HandleCore;
use super::remote::Remote;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::join::JoinHandle;
use crate::executor::lanes::Lane;
use crate::frame::{MICROTASK, carry};
use crate::keeper::Keeper;
use crate::raw::bound::Bound;
use crate::raw::call::Call;
use crate::site::Site;

/// The kind of a tick, for a tracker.
const TICK: &str = "TickObject";

/// A handle to a loop for its owner thread; cheap to clone.
///
/// The handle may outlive the loop. Then `spawn` returns a cancelled task, closures are dropped
/// without a call, and starting a handle returns an error.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, LoopHandle, RunMode};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let handle = event_loop.handle();
///     let task = handle.spawn(async {
///         // Inside the loop, the current handle needs no argument.
///         LoopHandle::current().turns()
///     });
///     event_loop.run(RunMode::Default)?;
///     assert!(task.is_finished());
///     assert!(!handle.is_alive());
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_loop_t")]
pub struct LoopHandle {
    core: Bound<Rc<Core>>,
}

impl Clone for LoopHandle {
    #[inline]
    fn clone(&self) -> Self {
        Self::from_core(Rc::clone(&self.core))
    }
}

impl LoopHandle {
    pub(crate) fn from_core(core: Rc<Core>) -> Self {
        Self {
            core: Bound::new(core),
        }
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// Returns the current loop of this thread.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread. [`try_current`](Self::try_current) returns `None` instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// fn main() {
    ///     assert!(LoopHandle::try_current().is_none(), "no loop runs on this thread");
    ///     phaseloop::block_on(async {
    ///         println!("{} turns", LoopHandle::current().turns());
    ///     });
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn current() -> Self {
        match current::get() {
            Some(core) => Self {
                core: Bound::new(core),
            },
            None => no_loop(),
        }
    }

    /// Returns the current loop of this thread for a future that is polled now. `function` created
    /// the future, at `site` if that is known.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread. The location of this panic is inside a poll, so its text
    /// names the function and the site.
    pub(crate) fn current_for(function: impl std::fmt::Display, site: Option<Site>) -> Self {
        match (Self::try_current(), site) {
            (Some(handle), _) => handle,
            (None, Some(site)) => {
                panic!("{NO_LOOP} (needed by the future of `{function}` at {site})")
            }
            (None, None) => panic!("{NO_LOOP} (needed by the future of `{function}`)"),
        }
    }

    /// Returns the current loop of this thread, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// fn main() {
    ///     assert!(LoopHandle::try_current().is_none(), "no loop runs on this thread");
    ///     phaseloop::block_on(async {
    ///         println!("{} turns", LoopHandle::current().turns());
    ///     });
    /// }
    /// ```
    #[must_use]
    pub fn try_current() -> Option<Self> {
        current::get().map(Self::from_core)
    }

    // Tasks and lanes.

    /// Spawns a task on the loop; see [`spawn`](crate::spawn).
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let task = event_loop.handle().spawn(async { 42 });
    ///     event_loop.run(RunMode::Default)?;
    ///     assert!(task.is_finished());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let task = self.core.executor.spawn(future, Location::caller(), None);
        self.core.notify_host();
        task
    }

    /// Spawns a task on the current loop. It borrows the loop, which saves a clone of its `Rc`.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread.
    #[track_caller]
    pub(crate) fn spawn_current<F>(future: F, site: Site) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let mut future = Some(future);
        let task = current::with(|core| {
            let core = core?;
            Some(core.executor.spawn_current(future.take()?, site))
        });
        match task {
            Some(task) => task,
            None => no_loop(),
        }
    }

    /// Queues a closure in the tick lane; see [`next_tick`](crate::next_tick).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc};
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let (handle, log) = (event_loop.handle(), Rc::new(RefCell::new(Vec::new())));
    ///     let (one, other) = (log.clone(), log.clone());
    ///     handle.queue_microtask(move || one.borrow_mut().push("microtask"));
    ///     handle.next_tick(move || other.borrow_mut().push("tick"));
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(*log.borrow(), ["tick", "microtask"]);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn next_tick(&self, tick: impl FnOnce() + 'static) {
        let site = Location::caller();
        if !self.core.executor.is_closed() {
            let tick = carry(TICK, Call::new(tick));
            self.core.push_call(Lane::Ticks, tick, Some(site));
            self.core.notify_host();
        }
    }

    /// Queues the closure on the current loop. It borrows the loop, which saves a clone of its
    /// `Rc`.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread.
    #[inline]
    #[track_caller]
    pub(crate) fn next_tick_current(tick: impl FnOnce() + 'static) {
        let (tick, site) = (Call::new(tick), Some(Location::caller()));
        let is_queued = current::with(|core| {
            let core = core?;
            core.push_carried(Lane::Ticks, TICK, tick, site);
            Some(())
        });
        if is_queued.is_none() {
            no_loop();
        }
    }

    /// Queues a closure in the microtask lane; see [`queue_microtask`](crate::queue_microtask).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{cell::RefCell, rc::Rc};
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let (handle, log) = (event_loop.handle(), Rc::new(RefCell::new(Vec::new())));
    ///     let (one, other) = (log.clone(), log.clone());
    ///     handle.queue_microtask(move || one.borrow_mut().push("microtask"));
    ///     handle.next_tick(move || other.borrow_mut().push("tick"));
    ///     event_loop.run(RunMode::Default)?;
    ///     assert_eq!(*log.borrow(), ["tick", "microtask"]);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn queue_microtask(&self, microtask: impl FnOnce() + 'static) {
        let site = Location::caller();
        if !self.core.executor.is_closed() {
            let call = carry(MICROTASK, Call::new(microtask));
            self.core.push_call(Lane::Microtasks, call, Some(site));
            self.core.notify_host();
        }
    }

    /// Queues the closure on the current loop. It borrows the loop, which saves a clone of its
    /// `Rc`.
    ///
    /// # Panics
    ///
    /// If no loop runs on this thread.
    #[inline]
    #[track_caller]
    pub(crate) fn queue_microtask_current(microtask: impl FnOnce() + 'static) {
        let (call, site) = (Call::new(microtask), Some(Location::caller()));
        let is_queued = current::with(|core| {
            let core = core?;
            core.push_carried(Lane::Microtasks, MICROTASK, call, site);
            Some(())
        });
        if is_queued.is_none() {
            no_loop();
        }
    }

    // The loop.

    /// Ends the running [`run`](crate::EventLoop::run) after the current turn, which does not wait.
    /// If no run is in progress, the next run returns at once. [`Remote::stop`] stops the loop from
    /// another thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, RunMode, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     let timer = Timer::new(&handle);
    ///     let second = Duration::from_secs(1);
    ///     timer.start(Duration::ZERO, second, move |_| handle.stop())?;
    ///     assert!(event_loop.run(RunMode::Default)?, "the timer is still started");
    ///     Ok(())
    /// }
    /// ```
    #[doc(alias = "uv_stop")]
    pub fn stop(&self) {
        self.core.stop.set(true);
        self.core.notify_host();
    }

    /// Returns whether the loop is alive: a handle or operation is active and referenced, something
    /// is queued, or another thread has woken a task or sent a closure. A send to an
    /// [`AsyncHandle`](crate::AsyncHandle) does not count; the handle itself does.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, Keeper};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     assert!(!handle.is_alive());
    ///     handle.set_immediate(|| ());
    ///     assert!(handle.is_alive());
    ///     assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    ///     drop(event_loop);
    ///     assert!(handle.is_closed());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "uv_loop_alive")]
    pub fn is_alive(&self) -> bool {
        self.core.is_alive()
    }

    /// Returns whether the loop has been dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, Keeper};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     assert!(!handle.is_alive());
    ///     handle.set_immediate(|| ());
    ///     assert!(handle.is_alive());
    ///     assert_eq!(handle.keepers(), [(Keeper::Queued, 1)]);
    ///     drop(event_loop);
    ///     assert!(handle.is_closed());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.core.executor.is_closed()
    }

    /// Returns the loop's cached time, which is equal for all callbacks of a phase.
    /// [`Timer`](crate::time::Timer)s start from it.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let start = handle.now();
    ///     thread::sleep(Duration::from_millis(2));
    ///     assert_eq!(handle.now(), start); // cached for the phase
    ///     handle.update_time();
    ///     assert!(handle.now() > start);
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "uv_now")]
    pub fn now(&self) -> Instant {
        self.core
            .executor
            .clock
            .instant(self.core.executor.clock.now())
    }

    /// Refreshes [`now`](Self::now), for a callback that ran for long and starts a timer.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let start = handle.now();
    ///     thread::sleep(Duration::from_millis(2));
    ///     assert_eq!(handle.now(), start); // cached for the phase
    ///     handle.update_time();
    ///     assert!(handle.now() > start);
    /// }
    /// ```
    #[doc(alias = "uv_update_time")]
    pub fn update_time(&self) {
        self.core.executor.clock.update();
    }

    /// Returns how long the poll phase would wait if it began now; `None` means without a limit.
    ///
    /// The result is zero if the loop is stopped, has work to run at once, or is not alive;
    /// [`next_wait`](Self::next_wait) separates these. With nothing but jobs of the thread pool
    /// to wait for it is `None`: their ends are events.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, time::Timer};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let event_loop = EventLoop::new()?;
    ///     let handle = event_loop.handle();
    ///     let timer = Timer::new(&handle);
    ///     timer.start(Duration::from_secs(60), Duration::ZERO, |_| ())?;
    ///     assert!(handle.next_timeout().unwrap() <= Duration::from_secs(60));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "uv_backend_timeout")]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.core.next_timeout().map(Duration::from_nanos)
    }

    /// Returns a handle to the loop for other threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::LoopHandle;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let remote = LoopHandle::current().remote();
    ///     let thread = std::thread::spawn(move || remote.spawn(|| async { 6 * 7 }).unwrap());
    ///     assert_eq!(thread.join().unwrap().await.unwrap(), 42);
    /// }
    /// ```
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote::new(self.core.executor.shared.clone())
    }

    // Why is it alive?

    pub(crate) fn open(&self, kind: Keeper, site: Site) -> HandleCore {
        HandleCore::owner(self.clone(), self.core.ledger.open(kind, site))
    }
}

#[cold]
#[track_caller]
fn no_loop() -> ! {
    panic!("{NO_LOOP}")
}

const NO_LOOP: &str = "no event loop runs on this thread: call this inside `phaseloop::block_on` or \
                       `phaseloop::run`, inside `EventLoop::enter`, or use the methods of a \
                       `LoopHandle`; from another thread, use a `Remote`";

impl std::fmt::Debug for LoopHandle {
    #[inline]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopHandle")
            .field("alive", &self.is_alive())
            .field("keepers", &self.keepers())
            .finish_non_exhaustive()
    }
}
