//! The options of a loop.

use std::io;
use std::num::NonZeroU64;

#[cfg(feature = "test-util")]
use crate::choices::{Chooser, Limits};
use crate::event_loop::EventLoop;
use crate::event_loop::core::{Core, Options};
#[cfg(feature = "test-util")]
use crate::event_loop::wait::MadeWait;
use crate::event_loop::wait::MakeWait;
use crate::executor::shared::UnhandledPanic;
use crate::pool::Pool;
use crate::probe::Attachments;
#[cfg(feature = "signal")]
use crate::report::on_signal::ReportOn;
#[cfg(any(test, feature = "test-util"))]
use crate::ways_to_wait::paused::PausedClock;
#[cfg(feature = "test-util")]
use crate::wire::Settings;

/// Creates an [`EventLoop`] with options.
///
/// # Examples
///
/// ```
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = phaseloop::Builder::new()
///         .lane_budget(10_000.try_into().unwrap())
///         .build()?;
///     assert_eq!(event_loop.block_on(async { 1 }), 1);
///     Ok(())
/// }
/// ```
#[must_use = "a builder does nothing until `build`"]
#[doc(alias = "Runtime")]
#[doc(alias = "uv_loop_configure")]
pub struct Builder {
    pub(crate) options: Options,
    /// How the loop waits; `None` for the kernel.
    wait: Option<MakeWait>,
    #[cfg(feature = "signal")]
    report_on: Option<ReportOn>,
    #[cfg(feature = "test-util")]
    pub(crate) simulation: Simulation,
}

impl Builder {
    /// Creates a builder with the options of [`EventLoop::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::Builder;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     // A test whose result no `PHASELOOP_*` variable may change.
    ///     let event_loop = Builder::new().ignore_environment().build()?;
    ///     assert_eq!(event_loop.block_on(async { 42 }), 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn new() -> Self {
        Self {
            options: Options {
                unhandled_panic: UnhandledPanic::default(),
                lane_budget: u64::MAX,
                pool: None,
                attachments: Attachments::default(),
                is_paused: false,
                clock_start: None,
                index: None,
            },
            wait: None,
            #[cfg(feature = "signal")]
            report_on: None,
            #[cfg(feature = "test-util")]
            simulation: Simulation::default(),
        }
    }

    /// Ends each drain of the lanes after this many ticks and microtasks. The rest runs after the
    /// next callback, or at the start of the next turn.
    ///
    /// Without a budget, tasks that always wake each other starve timers and I/O, as in Node. A
    /// task that wakes itself does not: see [`task`](crate::task). With a budget the order is
    /// Node's only while drains stay within it.
    /// [`LoopHandle::budget_hits`](crate::LoopHandle::budget_hits) counts the drains that did not.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, queue_microtask};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let budget = 100.try_into().unwrap();
    ///     let mut event_loop = Builder::new().lane_budget(budget).build()?;
    ///     event_loop.block_on(async {
    ///         for _ in 0..1000 {
    ///             queue_microtask(|| ());
    ///         }
    ///         phaseloop::task::yield_now().await; // timers and I/O ran in between
    ///     });
    ///     assert!(event_loop.handle().budget_hits() > 0);
    ///     Ok(())
    /// }
    /// ```
    pub fn lane_budget(mut self, entries: NonZeroU64) -> Self {
        self.options.lane_budget = entries.get();
        self
    }

    /// Runs the loop's blocking work on `pool` instead of the global pool.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, pool::PoolBuilder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(1).build();
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     assert_eq!(event_loop.block_on(async { spawn_blocking(|| 42).await }).unwrap(), 42);
    ///     Ok(())
    /// }
    /// ```
    pub fn pool(mut self, pool: Pool) -> Self {
        self.options.pool = Some(pool);
        self
    }

    /// Sets what the loop does with a panic of a task that is not awaited.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, UnhandledPanic, spawn};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let policy = UnhandledPanic::Ignore;
    ///     let event_loop = Builder::new().unhandled_panic(policy).build()?;
    ///     event_loop.block_on(async {
    ///         let task = spawn(async { panic!("in a task") });
    ///         assert!(task.await.unwrap_err().is_panic());
    ///     });
    ///     Ok(())
    /// }
    /// ```
    pub fn unhandled_panic(mut self, policy: UnhandledPanic) -> Self {
        self.options.unhandled_panic = policy;
        self
    }

    /// Reports to `observer` what the loop does. A loop may have several observers: the ends of
    /// phases, callbacks and activities reach them in reverse order.
    pub fn observer(mut self, observer: impl crate::probe::Observer + 'static) -> Self {
        self.options
            .attachments
            .observers
            .push(std::rc::Rc::new(observer));
        self
    }

    /// Records what the loop does, from its first turn on; see
    /// [`Recorder`](crate::observe::Recorder). [`LoopHandle::record`](crate::LoopHandle::record)
    /// begins later.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new();
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "probe")]
    pub fn record(mut self, recorder: crate::probe::Recorder) -> Self {
        self.options.attachments.built_in.recorder = Some(recorder);
        self
    }

    /// Reports the loop's tasks to the crate `tracing`, for subscribers such as that of
    /// tokio-console.
    ///
    /// Each task has a span, `runtime.spawn`, from its spawn to its end. The span is entered while
    /// the task is polled, and its parent is the span that was current at the spawn. Each wake is
    /// an event with the target `runtime::waker`. Timers that fire more than a millisecond late and
    /// busy periods of more than 10 ms are warnings with the targets `phaseloop::late` and
    /// `phaseloop::slow`.
    ///
    /// The names and fields are those that the subscriber of tokio-console reads for its list of
    /// tasks. Wakers are not counted: each task has one from its spawn on, so that the console does
    /// not take a task that waits for one that has lost its waker. Resources are not reported; the
    /// [report](crate::LoopHandle::report) names what a task waits for. What the console shows is
    /// in [the guide](crate::guide::from_tokio#tokio-console).
    ///
    /// # Examples
    ///
    /// ```
    /// fn main() -> std::io::Result<()> {
    ///     // A program sets a subscriber first, such as that of the crate `console-subscriber`.
    ///     let mut event_loop = phaseloop::Builder::new().tracing().build()?;
    ///     event_loop.block_on(async {
    ///         phaseloop::spawn(async { 1 }).await.unwrap();
    ///     });
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "tracing")]
    pub fn tracing(mut self) -> Self {
        self.options.attachments.built_in.is_traced = true;
        self
    }

    /// Reports when the loop is stuck; see [`Watchdog`](crate::observe::Watchdog).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Watchdog};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     // A line on standard error if a poll or a callback blocks for so long.
    ///     let watchdog = Watchdog::new(Duration::from_secs(1));
    ///     let event_loop = Builder::new().watchdog(watchdog).build()?;
    ///     event_loop.block_on(async {});
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "probe")]
    pub fn watchdog(mut self, watchdog: crate::probe::Watchdog) -> Self {
        self.options.attachments.built_in.watchdog = Some(watchdog);
        self
    }

    #[cfg(feature = "signal")]
    pub(crate) fn set_report_on(mut self, how: ReportOn) -> Self {
        self.report_on = Some(how);
        self
    }

    /// Builds the loop as if the variables `PHASELOOP_*` were not set.
    ///
    /// Otherwise `PHASELOOP_TRACE=out.html` (or `.json`) records each loop of the process and
    /// writes its timeline when the loop ends, or inside `std::process::exit`; `%p` in the name
    /// stands for the process, and a second loop writes to `out-2.html`; the loops of a cluster
    /// have one file. `PHASELOOP_SLOW=10ms` prints a line for each busy period that is so long.
    /// `PHASELOOP_WATCHDOG=50ms` adds a
    /// [watchdog](Self::watchdog). `PHASELOOP_REPORT=USR1` (or `USR1:file`) prints a report on the
    /// signal. `PHASELOOP_DEBUG=timers,poll` prints lines about these areas; the areas are `loop`,
    /// `timers`, `poll`, `io`, `tasks`, `lanes`, `pool`, `signal`, `process`, `fs`, `node`,
    /// `context`, and `*` stands for all. The variables are read once, when the first loop is
    /// built. Set-user-id programs ignore them.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::Builder;
    ///
    /// fn main() -> std::io::Result<()> {
    ///     // A test whose result no `PHASELOOP_*` variable may change.
    ///     let event_loop = Builder::new().ignore_environment().build()?;
    ///     assert_eq!(event_loop.block_on(async { 42 }), 42);
    ///     Ok(())
    /// }
    /// ```
    #[cfg(feature = "probe")]
    pub fn ignore_environment(mut self) -> Self {
        self.options.attachments.built_in.ignores_environment = true;
        self
    }

    /// Makes the loop one of several, with this index. `trace` is the timeline of all.
    #[cfg(feature = "cluster")]
    pub(crate) fn one_of(mut self, index: usize, trace: &crate::probe::JointTrace) -> Self {
        self.options.index = u32::try_from(index).ok();
        self.options.attachments.join(index, trace);
        self
    }

    /// Sets how the loop waits in place of the kernel.
    #[cfg(all(unix, feature = "tokio-rt"))]
    pub(crate) fn set_wait(mut self, make: MakeWait) -> Self {
        self.wait = Some(make);
        self
    }

    /// Creates the loop.
    ///
    /// # Errors
    ///
    /// Any OS error of creating the event queue (`epoll_create1`, `eventfd`), such as no
    /// descriptors left. [`InvalidInput`](io::ErrorKind::InvalidInput) if a report is requested on
    /// a signal that cannot be caught.
    #[cfg_attr(
        not(feature = "probe"),
        allow(unused_mut, reason = "no watchdog asks for reports")
    )]
    pub fn build(mut self) -> io::Result<EventLoop> {
        #[cfg(feature = "probe")]
        self.options
            .attachments
            .built_in
            .give_report(crate::report::report_of_current);
        #[cfg(feature = "signal")]
        let report_on = self.report_on;
        #[cfg(feature = "signal")]
        let by_environment = || self.options.attachments.report_on();
        #[cfg(feature = "signal")]
        let report_on = report_on.or_else(|| by_environment().map(ReportOn::by_environment));
        let core = Core::new(self.options)?;
        core.flush_at_exit();
        #[cfg(feature = "test-util")]
        core.set_paused_wait(Box::new(PausedClock::new(self.simulation.outside_timeout)));
        #[cfg(all(test, not(feature = "test-util")))]
        core.set_paused_wait(Box::new(PausedClock::new(None)));
        #[cfg(feature = "test-util")]
        if let Some(make) = self.simulation.make_wait {
            core.set_wait(Box::new(move |core| make(self.simulation, core)))?;
        }
        if let Some(make) = self.wait {
            core.set_wait(make)?;
        }
        #[cfg(feature = "signal")]
        if let Some(report_on) = report_on {
            report_on.start(&core)?;
        }
        Ok(EventLoop::from_core(core))
    }
}

/// What a test chooses: the orders, the network and the clock of the loop.
#[cfg(feature = "test-util")]
pub(crate) struct Simulation {
    pub(crate) shuffle: Option<(Box<dyn Chooser>, Limits)>,
    /// What the loop shares with others of its thread, and its index.
    pub(crate) group: Option<(crate::ways_to_wait::shuffled::group::Group, u32)>,
    pub(crate) network: Option<Settings>,
    pub(crate) auto_advance: bool,
    /// How long the paused clock waits for peers outside, in nanoseconds.
    pub(crate) outside_timeout: Option<u64>,
    /// Makes the way to wait of the loop; `None` if the test has chosen nothing.
    pub(crate) make_wait: Option<fn(Self, &std::rc::Rc<Core>) -> MadeWait>,
}

#[cfg(feature = "test-util")]
impl Default for Simulation {
    fn default() -> Self {
        Self {
            shuffle: None,
            group: None,
            network: None,
            auto_advance: true,
            outside_timeout: None,
            make_wait: None,
        }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("lane_budget", &self.options.lane_budget)
            .field("unhandled_panic", &self.options.unhandled_panic)
            .finish_non_exhaustive()
    }
}
