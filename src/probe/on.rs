//! The probe with the feature `probe`: the sinks of a loop, and what they are told.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use super::area::Area;
use super::debug_log::{Areas, DebugLog};
use super::environment::Environment;
use super::recorder::{Begun, Recorder};
use super::switch::{Activity, Mode, Modes, Origin};
use super::trace_file::TraceFile;
#[cfg(feature = "tracing")]
use super::traced::Traced;
use super::watchdog::{Before, Marker, Watchdog};
use crate::clock::Clock;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::task_info::Info;

/// An event in the life of a loop.
///
/// Each start is followed by its end, even if the code between them panics.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// A phase begins, even if it has nothing to do.
    PhaseStart(Phase),
    /// The phase has ended.
    PhaseEnd(Phase),
    /// A callback begins: of a timer, a hook, an event or a close. The drain of the lanes belongs
    /// to the callback.
    CallbackStart(Phase),
    /// The callback has returned, and the lanes are drained.
    CallbackEnd(Phase),
    /// The poll of a task begins.
    PollStart(Info),
    /// The poll has returned.
    PollEnd(Info),
    /// A closure of a lane begins; the line is the one that queued it, if known. This fact and the
    /// following ones are [details](Observer::wants_details).
    CallStart(Lane, Option<Site>),
    /// The closure has returned.
    CallEnd(Lane, Option<Site>),
    /// The loop begins to wait for events. A kernel poll that does not wait is no wait.
    WaitStart,
    /// The wait is over.
    WaitEnd {
        /// The number of events that the kernel has reported.
        events: usize,
    },
    /// A task was woken on the owner thread, and is not woken already.
    Wake {
        /// The task.
        task: Info,
        /// The task that was being polled, if any.
        by: Option<Info>,
    },
}

/// One of the two queues that belong to no phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Closures of [`next_tick`](crate::next_tick).
    Ticks,
    /// Closures of [`queue_microtask`](crate::queue_microtask).
    Microtasks,
}

/// Receives the facts of one loop, on its owner thread, as they happen.
///
/// The loop calls the observer in the middle of its work, so the observer should be fast and must
/// not run the loop. It must not panic: the loop could lose the work that it was about to do.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use phaseloop::{Builder, probe::Fact, task::yield_now};
///
/// # fn main() -> std::io::Result<()> {
/// let polls = Rc::new(Cell::new(0));
/// let counter = polls.clone();
/// let observer = move |fact: &Fact| {
///     if matches!(fact, Fact::PollStart(_)) {
///         counter.set(counter.get() + 1);
///     }
/// };
/// let mut event_loop = Builder::new().observer(observer).build()?;
/// event_loop.block_on(async {
///     phaseloop::spawn(async { yield_now().await }).await.unwrap();
/// });
/// assert_eq!(polls.get(), 2, "the task was polled twice; the main future is not a task");
/// # Ok(())
/// # }
/// ```
pub trait Observer {
    /// Called for each fact.
    fn observe(&self, fact: &Fact);

    /// Returns whether [`observe`](Self::observe) is called also for the closures of the lanes, the
    /// waits and the wakes, of which a loop has many. It is asked once, when the loop is built.
    fn wants_details(&self) -> bool {
        false
    }
}

impl<F: Fn(&Fact)> Observer for F {
    fn observe(&self, fact: &Fact) {
        self(fact);
    }
}

/// The sinks of a loop that is being built.
#[derive(Default)]
pub(crate) struct Sinks {
    pub(crate) observer: Option<Rc<dyn Observer>>,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) watchdog: Option<Watchdog>,
    /// The areas of the debug log.
    pub(crate) areas: Areas,
    #[cfg(feature = "tracing")]
    pub(crate) is_traced: bool,
    /// Whether the variables `PHASELOOP_*` have no effect.
    pub(crate) ignores_environment: bool,
}

impl Sinks {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds what the environment asks for. Returns the file for the timeline, if it asks for one.
    fn obey(&mut self, environment: &Environment) -> Option<TraceFile> {
        let trace = environment.trace.as_deref().and_then(TraceFile::create);
        if trace.is_some() && self.recorder.is_none() {
            // The environment asked for a file, not for lines.
            self.recorder = Some(Recorder::new().on_slow(|_| ()));
        }
        if let Some(slow) = environment.slow {
            let recorder = self.recorder.take().unwrap_or_default();
            self.recorder = Some(recorder.slow(slow).print_each());
        }
        if let (None, Some(limit)) = (&self.watchdog, environment.watchdog) {
            self.watchdog = Some(Watchdog::new(limit));
        }
        self.areas = environment.debug;
        trace
    }

    /// Returns the signal on which the environment asks for a report, and the file of the report.
    #[allow(dead_code, reason = "called with the feature `signal`")]
    pub(crate) fn report_on(&self) -> Option<(i32, Option<PathBuf>)> {
        let environment = (!self.ignores_environment).then(Environment::of_process)?;
        environment.report.clone()
    }
}

/// The sinks of a loop; see `switch.rs`.
pub(crate) struct Probe {
    observer: Option<Rc<dyn Observer>>,
    /// Whether the observer wants all facts.
    tells_details: bool,
    recorder: Cell<Option<Recorder>>,
    marker: Option<Marker>,
    log: Option<DebugLog>,
    #[cfg(feature = "tracing")]
    traced: Option<Traced>,
    /// The file for the timeline, with the recorder that it shows.
    trace: Option<(TraceFile, Recorder)>,
}

/// A phase, or a callback with its drain; the drop tells the observer of the end.
pub(crate) struct Span<'a>(Option<(&'a dyn Observer, Fact)>);

/// An activity that runs; the drop tells the sinks of its end, also after a panic.
pub(crate) struct Running<'a> {
    probe: &'a Probe,
    clock: &'a Clock,
    /// `None` if there was no recorder at the beginning.
    begun: Option<Begun>,
    /// What ran before, if a watchdog reads what runs.
    before: Option<Before>,
    #[cfg(feature = "tracing")]
    _entered: Option<tracing::span::EnteredSpan>,
    /// The fact of the end, if an observer heard of the start.
    _span: Option<Span<'a>>,
}

/// Sinks come and go.
impl Probe {
    pub(crate) fn new(mut sinks: Sinks, modes: &Modes, clock: &Clock) -> Self {
        let trace = if sinks.ignores_environment {
            None
        } else {
            sinks.obey(Environment::of_process())
        };
        modes.set(Mode::OBSERVED, sinks.observer.is_some());
        modes.set(Mode::MARKED, sinks.watchdog.is_some());
        let observer = sinks.observer;
        let probe = Self {
            tells_details: observer.as_ref().is_some_and(|it| it.wants_details()),
            observer,
            recorder: Cell::default(),
            marker: sinks.watchdog.map(Marker::new),
            log: (!sinks.areas.is_empty()).then(|| DebugLog::new(sinks.areas)),
            #[cfg(feature = "tracing")]
            traced: sinks.is_traced.then(Traced::default),
            trace: trace.zip(sinks.recorder.clone()),
        };
        modes.set(Mode::LOGGED, probe.log.is_some());
        #[cfg(feature = "tracing")]
        modes.set(Mode::TRACED, probe.traced.is_some());
        probe.record(sinks.recorder, modes, clock);
        probe
    }

    /// Replaces the recorder.
    pub(crate) fn record(&self, recorder: Option<Recorder>, modes: &Modes, clock: &Clock) {
        modes.set(Mode::RECORDED, recorder.is_some());
        if let Some(recorder) = &recorder {
            recorder.start(clock.read());
        }
        let before = self.recorder.replace(recorder);
        drop(before);
    }

    pub(crate) fn recorder(&self) -> Option<Recorder> {
        self.with_recorder(Recorder::clone)
    }

    /// Calls `f`, which runs no user code, with the recorder.
    // In place of a `RefCell`, whose flag would be a third of the cost of a record.
    #[inline(always)]
    pub(super) fn with_recorder<R>(&self, f: impl FnOnce(&Recorder) -> R) -> Option<R> {
        let recorder = self.recorder.take()?;
        let value = f(&recorder);
        // There is nothing to drop: no other code has set it meanwhile.
        std::mem::forget(self.recorder.replace(Some(recorder)));
        Some(value)
    }

    /// Writes the timeline that the environment asked for: the loop ends, or a panic leaves it.
    pub(crate) fn write_trace(&self) {
        if let Some((file, recorder)) = &self.trace {
            file.write(recorder);
        }
    }

    /// Returns whether the environment asked for a timeline.
    pub(crate) fn has_trace(&self) -> bool {
        self.trace.is_some()
    }

    /// Writes the timeline: user code ends the process.
    pub(crate) fn write_trace_at_exit(&self) {
        if let Some((file, recorder)) = &self.trace {
            file.write_at_exit(recorder);
        }
    }
}

/// What the cold twins call.
impl Probe {
    #[inline]
    pub(crate) fn phase(&self, phase: Phase) -> Span<'_> {
        self.span(Fact::PhaseStart(phase), Fact::PhaseEnd(phase))
    }

    #[inline]
    pub(crate) fn callback(&self, phase: Phase) -> Span<'_> {
        self.span(Fact::CallbackStart(phase), Fact::CallbackEnd(phase))
    }

    /// Begins an activity. `info` describes the task of a poll.
    pub(crate) fn begin<'a>(
        &'a self,
        modes: &Modes,
        clock: &'a Clock,
        activity: Activity,
        origin: Origin,
        info: &dyn Fn() -> Option<Info>,
    ) -> Running<'a> {
        if let Some(log) = &self.log {
            log.begin(activity, origin, clock.read(), info);
        }
        // The observer first: its own time belongs to the loop.
        let span = modes
            .has(Mode::OBSERVED)
            .then(|| self.activity_span(activity, origin, info));
        let begun = self.with_recorder(|recorder| {
            if span.is_some() {
                recorder.skip_to(clock.read());
            }
            recorder.begin(activity, origin, clock, info)
        });
        let marker = self.marker.as_ref();
        Running {
            probe: self,
            clock,
            begun,
            before: marker.map(|marker| marker.enter(activity, origin)),
            #[cfg(feature = "tracing")]
            _entered: self
                .traced
                .as_ref()
                .and_then(|traced| traced.begin(activity, origin, clock.read(), info)),
            _span: span,
        }
    }

    /// Notes that a task was spawned.
    pub(crate) fn spawned(&self, info: &dyn Fn() -> Option<Info>) {
        if let Some((log, info)) = self.log.as_ref().zip(info()) {
            log.line(Area::Tasks, format_args!("{info} is spawned"));
        }
        #[cfg(feature = "tracing")]
        if let Some((traced, info)) = self.traced.as_ref().zip(info()) {
            traced.spawned(&info);
        }
    }

    /// Notes that the task with this number has ended, or was dropped.
    pub(crate) fn ended(&self, id: u64) {
        if let Some(log) = &self.log {
            log.line(Area::Tasks, format_args!("task {id} has ended"));
        }
        #[cfg(feature = "tracing")]
        if let Some(traced) = &self.traced {
            traced.ended(id);
        }
    }

    /// Notes that a timer or sleep is armed.
    pub(crate) fn armed(&self, origin: Origin, clock: &Clock) {
        if let Some(log) = &self.log {
            log.armed(origin, clock.read());
        }
    }

    /// Writes a line of the debug log, if its area is chosen.
    #[cold]
    pub(crate) fn note(&self, area: Area, text: &dyn Fn() -> String) {
        if let Some(log) = &self.log {
            log.note(area, text);
        }
    }

    /// Notes that the task with this number was woken on the owner thread. `infos` describes it and
    /// the task that is being polled.
    pub(crate) fn wake(&self, id: u64, infos: &dyn Fn() -> Option<(Info, Option<Info>)>) {
        self.record_wake(id);
        if let Some(log) = &self.log {
            log.line(Area::Tasks, format_args!("task {id} is woken"));
        }
        #[cfg(feature = "tracing")]
        if let Some(traced) = &self.traced {
            traced.woken(id);
        }
        if self.tells_details {
            if let Some((task, by)) = infos() {
                self.tell(&Fact::Wake { task, by });
            }
        }
    }

    pub(crate) fn begin_turn(&self, clock: &Clock) {
        if let Some(log) = &self.log {
            log.line(Area::Loop, format_args!("a turn begins"));
        }
        self.with_recorder(|recorder| recorder.begin_turn(clock.now()));
    }

    pub(crate) fn end_turn(&self, clock: &Clock, tasks: usize) {
        if let Some(log) = &self.log {
            log.line(Area::Loop, format_args!("the turn ends, {tasks} tasks"));
        }
        self.with_recorder(|recorder| recorder.end_turn(clock.now(), tasks));
    }

    /// Notes a busy period, at its end.
    /// `overdue` returns the deadlines up to a time of the timers that were not called yet.
    pub(crate) fn end_busy(
        &self,
        span: (u64, u64),
        clock: &Clock,
        overdue: &dyn Fn(u64) -> Vec<u64>,
    ) {
        #[cfg(feature = "tracing")]
        if let Some(traced) = &self.traced {
            traced.end_busy(span.0, span.1);
        }
        let is_long = self.with_recorder(|recorder| recorder.end_busy(span));
        if is_long == Some(true) {
            // Cloned: the listener of slow periods is user code, which may stop the recorder.
            if let Some(recorder) = self.recorder() {
                recorder.end_long(span, clock, overdue);
            }
        }
    }

    /// Notes that a run begins: what was before it is not the loop's.
    pub(crate) fn begin_run(&self, clock: &Clock) {
        self.with_recorder(|recorder| recorder.skip_to(clock.read()));
    }

    pub(crate) fn begin_wait(&self) {
        if let Some(log) = &self.log {
            log.line(Area::Poll, format_args!("the loop waits"));
        }
        if self.tells_details {
            self.tell(&Fact::WaitStart);
        }
    }

    /// Notes that the busy period ends, and tells the end of a stall with the report of the loop.
    pub(crate) fn end_period(&self, report: &dyn Fn() -> String) {
        if let Some(marker) = &self.marker {
            marker.end_period(report);
        }
    }

    /// Notes that another busy period begins.
    pub(crate) fn begin_period(&self) {
        if let Some(marker) = &self.marker {
            marker.begin_period();
        }
    }

    /// Notes that the loop waits, or that its run has ended.
    pub(crate) fn rest(&self) {
        if let Some(marker) = &self.marker {
            marker.rest();
        }
    }

    /// Lets the watchdog know whether a signal waits for an answer of the loop.
    #[allow(dead_code, reason = "called with the feature `signal`")]
    pub(crate) fn answers(&self, is_asked: Box<dyn Fn() -> bool + Send + Sync>) {
        if let Some(marker) = &self.marker {
            marker.answers(is_asked);
        }
    }

    pub(crate) fn end_wait(&self, start: u64, end: u64, events: usize) {
        if let Some(log) = &self.log {
            let waited = std::time::Duration::from_nanos(end.saturating_sub(start));
            log.line(
                Area::Poll,
                format_args!("{events} events after a wait of {waited:.1?}"),
            );
        }
        self.with_recorder(|recorder| recorder.wait(start, end, events));
        if self.tells_details {
            self.tell(&Fact::WaitEnd { events });
        }
    }

    fn activity_span(
        &self,
        activity: Activity,
        origin: Origin,
        info: &dyn Fn() -> Option<Info>,
    ) -> Span<'_> {
        let call = |lane| {
            let facts = (
                Fact::CallStart(lane, origin.site),
                Fact::CallEnd(lane, origin.site),
            );
            self.tells_details.then_some(facts)
        };
        let facts = match activity {
            Activity::Poll(_) => {
                info().map(|info| (Fact::PollStart(info.clone()), Fact::PollEnd(info)))
            }
            Activity::Tick => call(Lane::Ticks),
            Activity::Microtask => call(Lane::Microtasks),
            // `callback` has told of it, and the main future is no task.
            Activity::Callback(_) | Activity::Main => None,
        };
        match facts {
            Some((start, end)) => self.span(start, end),
            None => Span(None),
        }
    }

    #[inline(always)]
    #[expect(clippy::needless_pass_by_value, reason = "facts are made to be told")]
    fn span(&self, start: Fact, end: Fact) -> Span<'_> {
        Span(self.observer.as_deref().map(|observer| {
            observer.observe(&start);
            (observer, end)
        }))
    }

    fn tell(&self, fact: &Fact) {
        if let Some(observer) = &self.observer {
            observer.observe(fact);
        }
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        if let Some((observer, end)) = &self.0 {
            observer.observe(end);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.probe.end(begun, self.clock);
        }
        if let (Some(marker), Some(before)) = (&self.probe.marker, &self.before) {
            marker.leave(before);
        }
    }
}
