//! The trait through which a loop reports what it does, and the values it passes.

use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use super::area::Area;
use super::origin::Origin;
use crate::clock::Clock;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::task_info::{Id, Info};

/// Receives the events of one loop, on its owner thread, as they happen.
///
/// Every method has an empty default. [`wants`](Self::wants) names the methods that the loop is to
/// call: what nothing wants costs the loop nothing. [`Builder::observer`](crate::Builder::observer)
/// attaches an observer.
///
/// ```text
/// begin_turn ─┬─> begin_phase ─┬─> begin_dispatch ─┬─> begin ─> end ─┬─> end_dispatch ─┬─> …
///             │                │                   └─ per activity ──┘                 │
///             │                └────────────────────── per callback ───────────────────┘
///             └─> begin_wait ─> end_wait, in the poll phase
/// ```
///
/// The loop calls the observer in the middle of its work, so the observer should be fast and must
/// not run the loop. It must not panic: the loop could lose the work that it was about to do. The
/// observer may use the loop otherwise: queue, spawn, wake, abort.
///
/// The end of something is reported to those observers that its begin was reported to, also after a
/// panic, and in reverse order. Times are nanoseconds on the loop's clock, as in a
/// [`Record`](crate::observe).
///
/// # Examples
///
/// A sink that counts the polls of each task:
///
/// ```
/// use std::{cell::RefCell, collections::BTreeMap, rc::Rc};
/// use phaseloop::observe::{Activity, Body, Observer, Wants};
/// use phaseloop::{Builder, task};
///
/// #[derive(Clone, Default)]
/// struct Polls(Rc<RefCell<BTreeMap<String, u32>>>);
///
/// impl Observer for Polls {
///     fn wants(&self) -> Wants {
///         Wants::ACTIVITIES
///     }
///
///     fn begin(&self, activity: &Activity<'_>) {
///         if let Body::Poll(id) = activity.body() {
///             let name = activity.task().and_then(|task| task.name().map(str::to_owned));
///             let name = name.unwrap_or_else(|| format!("task {id}"));
///             *self.0.borrow_mut().entry(name).or_default() += 1;
///         }
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let polls = Polls::default();
///     let event_loop = Builder::new().observer(polls.clone()).build()?;
///     event_loop.block_on(async {
///         let reader = task::Builder::new().name("reader");
///         reader.spawn(task::yield_now()).await.unwrap();
///     });
///     assert_eq!(polls.0.borrow()["reader"], 2, "the main future is no task");
///     Ok(())
/// }
/// ```
pub trait Observer {
    /// Returns the events that are reported to this observer. It is called once, when the observer
    /// is attached.
    fn wants(&self) -> Wants {
        Wants::ALL
    }

    /// The observer was attached to a loop, at this time.
    fn attached(&self, _now: u64) {}

    /// A piece of user code is about to run.
    fn begin(&self, _activity: &Activity<'_>) {}

    /// The piece of user code has returned or panicked.
    fn end(&self, _activity: &Activity<'_>) {}

    /// A callback of a phase is about to run, with the drain of the lanes after it.
    fn begin_dispatch(&self, _phase: Phase) {}

    /// The callback has run, and the lanes are drained.
    fn end_dispatch(&self, _phase: Phase) {}

    /// A phase begins, even if it has nothing to do.
    fn begin_phase(&self, _phase: Phase) {}

    /// The phase has ended.
    fn end_phase(&self, _phase: Phase) {}

    /// A turn begins. `now` is the loop's cached time.
    fn begin_turn(&self, _now: u64) {}

    /// The turn has ended. The loop has so many tasks.
    fn end_turn(&self, _now: u64, _tasks: usize) {}

    /// The loop is about to wait for events. A kernel poll that does not wait is no wait.
    fn begin_wait(&self, _now: u64) {}

    /// The wait is over.
    fn end_wait(&self, _waited: &Waited) {}

    /// A busy period begins: a run has begun, or the loop is back from the kernel.
    fn begin_busy(&self, _now: u64) {}

    /// The busy period has ended: the loop asks the kernel for events, or its run has ended.
    fn end_busy(&self, _period: &BusyPeriod<'_>) {}

    /// A task was spawned.
    fn spawned(&self, _task: &Info) {}

    /// A task has ended, or was aborted and dropped.
    fn ended(&self, _task: Id) {}

    /// A task was woken on the owner thread, and was not woken already.
    fn woken(&self, _wake: &Wake<'_>) {}

    /// A part of the loop logs a line. `text` formats it.
    fn log(&self, _area: Area, _text: &dyn Fn() -> String) {}

    /// A signal asks for [reports](crate::Builder::report_on) from now on. `is_asked`, which any
    /// thread may call, returns whether a signal waits for its report.
    fn reports_on_signal(&self, _is_asked: &Arc<dyn Fn() -> bool + Send + Sync>) {}

    /// Adds lines to a report that a signal or a watchdog has asked for.
    fn add_to_report(&self, _report: &mut String) {}

    /// The observer should write out what it holds back: the loop was dropped, a panic leaves a
    /// run, a report was asked for, or the process exits in the middle of a run.
    fn flush(&self, _why: Flush) {}
}

/// A set of events, for [`Observer::wants`]. Sets are joined by `|`.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::Wants;
///
/// fn main() {
///     let wants = Wants::TURNS | Wants::WAITS;
///     assert!(wants.intersects(Wants::WAITS) && !wants.intersects(Wants::WAKES));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wants(pub(super) u32);

impl Wants {
    /// No event. The methods that no set names are called nevertheless.
    pub const NONE: Self = Self(0);
    /// [`begin`](Observer::begin) and [`end`](Observer::end).
    pub const ACTIVITIES: Self = Self(1);
    /// [`begin_dispatch`](Observer::begin_dispatch) and [`end_dispatch`](Observer::end_dispatch).
    pub const DISPATCHES: Self = Self(1 << 1);
    /// [`begin_phase`](Observer::begin_phase) and [`end_phase`](Observer::end_phase).
    pub const PHASES: Self = Self(1 << 2);
    /// [`begin_turn`](Observer::begin_turn) and [`end_turn`](Observer::end_turn).
    pub const TURNS: Self = Self(1 << 3);
    /// [`begin_wait`](Observer::begin_wait) and [`end_wait`](Observer::end_wait).
    pub const WAITS: Self = Self(1 << 4);
    /// [`begin_busy`](Observer::begin_busy) and [`end_busy`](Observer::end_busy).
    pub const BUSY: Self = Self(1 << 5);
    /// [`woken`](Observer::woken).
    pub const WAKES: Self = Self(1 << 6);
    /// [`spawned`](Observer::spawned) and [`ended`](Observer::ended).
    pub const TASKS: Self = Self(1 << 7);
    /// [`log`](Observer::log).
    pub const LOGS: Self = Self(1 << 8);
    /// [`flush`](Observer::flush).
    pub const FLUSHES: Self = Self(1 << 9);
    /// Every event.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// Returns whether the sets have an event in common.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::observe::Wants;
    ///
    /// fn main() {
    ///     let wants = Wants::TURNS | Wants::WAITS;
    ///     assert!(wants.intersects(Wants::WAITS) && !wants.intersects(Wants::WAKES));
    /// }
    /// ```
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Wants {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The kinds of user code that a loop runs.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Activity, Body, Observer, Wants};
/// use phaseloop::{Builder, set_immediate, task::yield_now};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::ACTIVITIES
///     }
///
///     fn begin(&self, activity: &Activity<'_>) {
///         if let Body::Callback(phase) = activity.body() {
///             println!("{phase}: {:?} at {:?}", activity.kind(), activity.site());
///         }
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(async {
///         set_immediate(|| ());
///         yield_now().await;
///     });
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// The body of a callback, without the drain after it.
    Callback(Phase),
    /// One poll of a task.
    Poll(Id),
    /// One poll of the main future of `block_on` or `run`.
    MainFuture,
    /// A closure of [`next_tick`](crate::next_tick).
    Tick,
    /// A closure of [`queue_microtask`](crate::queue_microtask).
    Microtask,
}

/// One piece of user code that the loop runs: what [`Observer::begin`] and [`Observer::end`]
/// receive. Activities nest: a task that is polled inside its spawner is one inside another.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Activity, Body, Observer, Wants};
/// use phaseloop::{Builder, set_immediate, task::yield_now};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::ACTIVITIES
///     }
///
///     fn begin(&self, activity: &Activity<'_>) {
///         if let Body::Callback(phase) = activity.body() {
///             println!("{phase}: {:?} at {:?}", activity.kind(), activity.site());
///         }
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(async {
///         set_immediate(|| ());
///         yield_now().await;
///     });
///     Ok(())
/// }
/// ```
pub struct Activity<'a> {
    pub(super) body: Body,
    pub(super) origin: Origin,
    pub(super) clock: &'a Clock,
    /// Describes the task of a poll.
    pub(super) info: &'a dyn Fn() -> Option<Info>,
    /// Whether several observers want activities.
    pub(super) is_shared: bool,
}

impl Activity<'_> {
    /// Returns what kind of code it is.
    #[must_use]
    pub fn body(&self) -> Body {
        self.body
    }

    /// Returns the line of the program that created the handle, request, task or closure, if known.
    #[must_use]
    pub fn site(&self) -> Option<Site> {
        self.origin.site
    }

    /// Returns the kind of handle or request that a callback belongs to, if known.
    #[must_use]
    pub fn kind(&self) -> Option<Keeper> {
        self.origin.kind
    }

    /// Returns when a timer was due.
    #[must_use]
    pub fn due(&self) -> Option<u64> {
        self.origin.due
    }

    /// Describes the task of a [poll](Body::Poll). At the end of its last poll the task is gone,
    /// and the result is `None`: an observer that needs it then keeps it from the begin.
    #[must_use]
    pub fn task(&self) -> Option<Info> {
        (self.info)()
    }

    /// Returns whether several observers want activities: the time since the last activity may be
    /// theirs.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Reads the loop's clock.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.read()
    }
}

impl fmt::Debug for Activity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity")
            .field("body", &self.body)
            .field("site", &self.origin.site)
            .finish_non_exhaustive()
    }
}

/// A wait for events that is over.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Observer, Waited, Wants};
/// use phaseloop::{Builder, time::sleep};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::WAITS
///     }
///
///     fn end_wait(&self, waited: &Waited) {
///         println!("{} ns, {} events", waited.end - waited.start, waited.events);
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(sleep_a_little());
///
///     async fn sleep_a_little() {
///         sleep(std::time::Duration::from_millis(1)).await;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The number of events that the kernel has reported.
    pub events: usize,
}

/// The wake of a task.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Observer, Wake, Wants};
/// use phaseloop::{Builder, spawn, task::yield_now};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::WAKES
///     }
///
///     fn woken(&self, wake: &Wake<'_>) {
///         println!("task {} was woken by {:?}", wake.id(), wake.by());
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(async { spawn(yield_now()).await.unwrap() });
///     Ok(())
/// }
/// ```
pub struct Wake<'a> {
    pub(super) id: Id,
    pub(super) task: &'a dyn Fn() -> Option<Info>,
    pub(super) by: &'a dyn Fn() -> Option<Info>,
}

impl Wake<'_> {
    /// Returns the number of the woken task.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// Describes the woken task. It is `None` if the task has ended since.
    #[must_use]
    pub fn task(&self) -> Option<Info> {
        (self.task)()
    }

    /// Describes the task that was being polled, if any.
    #[must_use]
    pub fn by(&self) -> Option<Info> {
        (self.by)()
    }
}

impl fmt::Debug for Wake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The time from one kernel poll to the next, or to the end of the run.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{BusyPeriod, Observer, Wants};
/// use phaseloop::{Builder, task::yield_now};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::BUSY
///     }
///
///     fn end_busy(&self, period: &BusyPeriod<'_>) {
///         println!("busy for {} ns", period.end() - period.start());
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(async { yield_now().await });
///     Ok(())
/// }
/// ```
pub struct BusyPeriod<'a> {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) clock: &'a Clock,
    pub(super) overdue: &'a dyn Fn(u64) -> Vec<u64>,
}

impl BusyPeriod<'_> {
    /// Returns when it began.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns when it ended.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the deadlines, up to a time, of the timers that were not called yet.
    #[must_use]
    pub fn overdue(&self, latest: u64) -> Vec<u64> {
        (self.overdue)(latest)
    }

    /// Returns whether a test has paused the clock: then the processor's time means nothing.
    #[must_use]
    pub fn is_clock_paused(&self) -> bool {
        self.clock.is_paused()
    }
}

impl fmt::Debug for BusyPeriod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusyPeriod")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Why an observer is asked to [flush](Observer::flush).
///
/// # Examples
///
/// ```
/// use phaseloop::Builder;
/// use phaseloop::observe::{Flush, Observer, Wants};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn wants(&self) -> Wants {
///         Wants::FLUSHES
///     }
///
///     fn flush(&self, why: Flush) {
///         println!("write what is buffered: {why:?}");
///     }
/// }
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = Builder::new().observer(Log).build()?;
///     event_loop.block_on(async {});
///     drop(event_loop);
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flush {
    /// The loop was dropped.
    Dropped,
    /// A panic leaves a run.
    Panic,
    /// A signal has asked for a report.
    Report,
    /// The process exits in the middle of a run. It may be a forked child.
    Exit,
}
