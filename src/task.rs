//! Tasks: spawning, naming, yielding, joining many.
//!
//! ```
//! use phaseloop::spawn;
//! use std::{cell::RefCell, rc::Rc};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let lines = Rc::new(RefCell::new(Vec::new())); // no `Arc`, no `Mutex`
//!     let tasks = [1, 2, 3].map(|number| {
//!         let lines = lines.clone();
//!         spawn(async move { lines.borrow_mut().push(number) })
//!     });
//!     for task in tasks {
//!         task.await.expect("the task does not panic");
//!     }
//!     assert_eq!(*lines.borrow(), [1, 2, 3]);
//! }
//! ```
//!
//! A task is polled in the microtask lane: first after it is spawned, then once for each wake. All
//! tasks of a loop run on its thread, so they may share `Rc` and `RefCell`.
//!
//! A drain of the lanes ends when they are empty, and I/O and timers wait for its end. A task with
//! much to do gives way by [`yield_now`], which lets a turn of the loop pass. Tasks that wake
//! themselves while they are polled, as futures of other crates do to give way, may do so 61 times
//! in one drain, all together; then they wait for the next poll phase, too. Tasks that wake each
//! other have no such limit; [`lane_budget`](crate::Builder::lane_budget) sets one.
//!
//! | to give way to | call | goes on in |
//! |---|---|---|
//! | everything: tasks, timers, I/O | [`yield_now`] | the poll phase, after its I/O |
//! | immediates that are queued | [`yield_now_immediate`] | the check phase |
//! | microtasks that are queued | [`yield_microtask`] | the current drain |

mod cancellation;
mod join_set;
mod scope;
mod yields;

use std::future::Future;
use std::panic::Location;
use std::rc::Rc;

pub use self::cancellation::{CancellationToken, Cancelled, DropGuard};
pub use self::join_set::JoinSet;
pub use self::scope::{Scope, ScopedJoinHandle, scope, try_scope};
pub use self::yields::{YieldMicrotask, YieldNow, consume_budget, yield_microtask, yield_now};
pub use crate::blocking::spawn_blocking;
pub use crate::executor::join::{AbortHandle, JoinError, JoinHandle};
pub use crate::phase::yield_now_immediate;
use crate::phase_order::Phase;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::phase_call::Immediate;
pub use crate::task_info::{Id, Info};

/// Spawns a task on the running loop.
///
/// The first poll happens in the microtask lane, after its current entries, not inside this call.
/// The future need not be `Send`. Dropping the returned handle detaches the task.
///
/// # Panics
///
/// When no loop runs on this thread. [`LoopHandle::spawn`] works outside a running loop, and
/// [`Remote::spawn`](crate::Remote::spawn) from other threads.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let name = std::rc::Rc::new("Rc");
///     let task = phaseloop::spawn(async move { format!("hello, {name}") });
///     assert_eq!(task.await.unwrap(), "hello, Rc");
/// }
/// ```
#[track_caller]
#[doc(alias = "spawn_local")]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    LoopHandle::spawn_current(future, Location::caller())
}

/// Queues a closure in the next-tick lane, which a drain empties before the microtask lane. It is
/// Node's `process.nextTick`.
///
/// Queued by a callback, the closure runs in the drain after it, before all microtasks. Queued by a
/// tick, it runs in the same round of ticks. Queued by a task or another microtask, it runs in the
/// current drain, once all microtasks have run.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the closure ends the drain; the rest of both lanes
/// runs with the next run of the loop.
///
/// # Examples
///
/// ```
/// use phaseloop::{next_tick, queue_microtask, set_immediate};
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     let say = |what| {
///         let log = log.clone();
///         move || log.borrow_mut().push(what)
///     };
///     let (microtask, tick) = (say("microtask"), say("tick"));
///     phaseloop::run(async move {
///         // In a callback, which an immediate is.
///         set_immediate(move || {
///             queue_microtask(microtask);
///             next_tick(tick);
///         });
///     })?;
///     assert_eq!(*log.borrow(), ["tick", "microtask"]);
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "nextTick")]
pub fn next_tick(tick: impl FnOnce() + 'static) {
    LoopHandle::next_tick_current(tick);
}

/// Queues a closure in the microtask lane, among the woken tasks. It is JavaScript's
/// `queueMicrotask`.
///
/// # Panics
///
/// As [`next_tick`].
///
/// # Examples
///
/// ```
/// use phaseloop::{queue_microtask, set_immediate};
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     let say = |what| {
///         let log = log.clone();
///         move || log.borrow_mut().push(what)
///     };
///     phaseloop::run(async {
///         set_immediate(say("immediate"));
///         queue_microtask(say("microtask"));
///     })?;
///     assert_eq!(*log.borrow(), ["microtask", "immediate"]);
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "queueMicrotask")]
pub fn queue_microtask(microtask: impl FnOnce() + 'static) {
    LoopHandle::queue_microtask_current(microtask);
}

/// Queues a closure for the check phase of this turn or, when called in that phase, of the next
/// turn. It is Node's `setImmediate`.
///
/// A queued closure keeps the loop alive and awake until it has run.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the closure leaves through the call that runs the
/// loop.
///
/// # Examples
///
/// ```
/// use phaseloop::set_immediate;
///
/// fn main() -> Result<(), phaseloop::Error> {
///     phaseloop::run(async {
///         set_immediate(|| println!("in the check phase of this turn"));
///         let cleared = set_immediate(|| unreachable!("it was cleared"));
///         cleared.clear();
///     })?;
///     Ok(())
/// }
/// ```
#[track_caller]
#[doc(alias = "setImmediate")]
pub fn set_immediate(immediate: impl FnOnce() + 'static) -> Immediate {
    LoopHandle::call_in_current(Phase::Check, immediate)
}

/// Returns the task that is being polled on this thread; `None` in callbacks, in the main future of
/// `block_on`, and outside a loop.
///
/// # Examples
///
/// ```
/// use phaseloop::task;
///
/// #[phaseloop::main]
/// async fn main() {
///     assert!(task::current().is_none(), "the main future is not a task");
///     let worker = task::Builder::new().name("worker").spawn(async {
///         task::current().unwrap().to_string()
///     });
///     assert!(worker.await.unwrap().contains("worker"));
/// }
/// ```
#[must_use]
#[doc(alias = "id")]
#[doc(alias = "try_id")]
pub fn current() -> Option<Info> {
    LoopHandle::try_current().and_then(|handle| handle.core().executor.polled_task())
}

/// Spawns a task with a name, which appears in reports and traces.
///
/// # Examples
///
/// ```
/// use phaseloop::task;
///
/// #[phaseloop::main]
/// async fn main() {
///     let task = task::Builder::new().name("reader").spawn(async { task::current() });
///     let info = task.await.unwrap().unwrap();
///     assert_eq!(info.name(), Some("reader"));
///     assert!(info.spawned_at().file().ends_with(".rs"));
/// }
/// ```
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `spawn`"]
pub struct Builder<'a> {
    name: Option<&'a str>,
}

impl<'a> Builder<'a> {
    /// Creates a builder without a name.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = task::Builder::new().name("reader").spawn(async { 42 });
    ///     assert_eq!(task.await.unwrap(), 42); // reports and timelines call it "reader"
    /// }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the task.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::task;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = task::Builder::new().name("reader").spawn(async { 42 });
    ///     assert_eq!(task.await.unwrap(), 42); // reports and timelines call it "reader"
    /// }
    /// ```
    pub fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Spawns the task on the running loop; see [`spawn`].
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_on(future, &LoopHandle::current())
    }

    /// Spawns the task on a given loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode, task};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let builder = task::Builder::new().name("reader");
    ///     let task = builder.spawn_on(async { 42 }, &event_loop.handle());
    ///     event_loop.run(RunMode::Default)?;
    ///     assert!(task.is_finished());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &LoopHandle) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let name = self.name.map(Rc::from);
        handle
            .core()
            .executor
            .spawn(future, Location::caller(), name)
    }
}
