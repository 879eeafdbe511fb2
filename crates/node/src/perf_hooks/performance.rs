//! Node's object `performance`: its methods are functions here.
//!
//! ```
//! use phaseloop_node::{Exit, perf_hooks::performance, run, timers::promises::sleep};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         performance::mark("start");
//!         sleep(5).await.unwrap();
//!         performance::mark("end");
//!         let query = performance::measure("query", ("start", "end")).unwrap();
//!         println!("{} took {:.1} ms", query.name, query.duration);
//!     })
//! }
//! ```

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::milliseconds;
pub use super::timerify::{timerify, timerify_async, timerify_into};
use crate::context::Node;
use crate::error::Error;
use phaseloop::LoopHandle;
use phaseloop::extension::Loop;
use phaseloop::observe::Utilization;

/// The type of a [`PerformanceEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryType {
    /// A point in time; see [`mark`].
    Mark,
    /// A span of time; see [`measure`].
    Measure,
    /// A call of a function of [`timerify`].
    Function,
}

/// An entry of the performance timeline. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PerformanceEntry {
    /// Its name.
    pub name: String,
    /// Its type.
    pub entry_type: EntryType,
    /// When it began, as [`now`] returns it.
    pub start_time: f64,
    /// How long it took; zero for a mark.
    pub duration: f64,
    detail: Option<Detail>,
}

impl PerformanceEntry {
    /// Returns what the program has added to the mark or measure, if it is of this type.
    /// JavaScript: `entry.detail`.
    #[must_use]
    pub fn detail<T: 'static>(&self) -> Option<&T> {
        self.detail.as_ref()?.0.downcast_ref()
    }
}

/// What a program adds to a mark or a measure; see [`PerformanceEntry::detail`].
#[derive(Clone)]
pub struct Detail(Rc<dyn Any>);

impl Detail {
    /// Makes a detail of any value.
    pub fn new(value: impl Any) -> Self {
        Self(Rc::new(value))
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detail").finish_non_exhaustive()
    }
}

/// Two details are equal if they are clones of one.
impl PartialEq for Detail {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

/// The marks and measures of one loop, and when its program's loop began.
#[derive(Default)]
pub(crate) struct Timeline {
    entries: RefCell<Vec<PerformanceEntry>>,
    /// What the loop had done when it began to turn; `None` before.
    loop_start: Cell<Option<Utilization>>,
}

impl Timeline {
    /// Notes that the main program has not returned.
    pub(crate) fn begin_program(&self) {
        self.loop_start.set(None);
    }

    /// Notes that the loop begins to turn.
    pub(crate) fn begin_loop(&self, core: &Loop) {
        self.loop_start.set(Some(core.utilization()));
    }
}

/// Returns the time since [`time_origin`] in milliseconds. JavaScript: `performance.now()`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn now() -> f64 {
    milliseconds(&Loop::of(&LoopHandle::current()))
}

/// Returns the wall-clock time at which [`now`] was zero, in milliseconds since 1970. JavaScript:
/// `performance.timeOrigin`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn time_origin() -> f64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    wall.unwrap_or_default().as_secs_f64() * 1e3 - now()
}

/// Adds a mark with the time of now. JavaScript: `performance.mark(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[allow(clippy::must_use_candidate, reason = "the mark is on the timeline")]
pub fn mark(name: &str) -> PerformanceEntry {
    add(name, EntryType::Mark, (now(), 0.0), None)
}

/// What a mark may have besides its name; see [`mark_with`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkOptions {
    /// Its time; by default now.
    pub start_time: Option<f64>,
    /// What the entry has besides.
    pub detail: Option<Detail>,
}

/// Adds a mark with a time or a detail. JavaScript: `performance.mark(name, { startTime, detail
/// })`.
///
/// # Errors
///
/// `ERR_PERFORMANCE_INVALID_TIMESTAMP` if the time is negative.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::performance::{self, Detail, MarkOptions};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = MarkOptions {
///             detail: Some(Detail::new(7_u32)),
///             ..MarkOptions::default()
///         };
///         let mark = performance::mark_with("query", options).unwrap();
///         assert_eq!(mark.detail::<u32>(), Some(&7));
///     })
/// }
/// ```
pub fn mark_with(name: &str, options: MarkOptions) -> Result<PerformanceEntry, Error> {
    let start_time = options.start_time.unwrap_or_else(now);
    if start_time < 0.0 {
        return Err(invalid_timestamp(start_time));
    }
    Ok(add(
        name,
        EntryType::Mark,
        (start_time, 0.0),
        options.detail,
    ))
}

/// Adds a mark with another time. JavaScript: `performance.mark(name, { startTime })`.
///
/// # Errors
///
/// `ERR_PERFORMANCE_INVALID_TIMESTAMP` if the time is negative.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn mark_at(name: &str, start_time: f64) -> Result<PerformanceEntry, Error> {
    let options = MarkOptions {
        start_time: Some(start_time),
        detail: None,
    };
    mark_with(name, options)
}

/// One end of a measure.
#[derive(Clone, Debug, PartialEq)]
pub enum Point {
    /// The latest mark of a name.
    Mark(String),
    /// A time, as [`now`] returns it.
    Time(f64),
}

impl From<&str> for Point {
    fn from(name: &str) -> Self {
        Self::Mark(name.to_owned())
    }
}

impl From<f64> for Point {
    fn from(time: f64) -> Self {
        Self::Time(time)
    }
}

/// What a measure spans. `()` is everything until now, one point is the time from it until now, and
/// a pair is the time between two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Span {
    /// Where it begins; by default with the program.
    pub start: Option<Point>,
    /// Where it ends; by default now.
    pub end: Option<Point>,
    /// Its length, in place of one of the ends.
    pub duration: Option<f64>,
    /// What the entry has besides.
    pub detail: Option<Detail>,
}

impl From<()> for Span {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<&str> for Span {
    fn from(start: &str) -> Self {
        Self {
            start: Some(start.into()),
            ..Self::default()
        }
    }
}

impl<S: Into<Point>, E: Into<Point>> From<(S, E)> for Span {
    fn from((start, end): (S, E)) -> Self {
        Self {
            start: Some(start.into()),
            end: Some(end.into()),
            ..Self::default()
        }
    }
}

/// Adds a measure. JavaScript: `performance.measure(name, start, end)`, or with `{ start, end,
/// duration }`.
///
/// # Errors
///
/// A `SyntaxError` if a mark is not set. `ERR_PERFORMANCE_MEASURE_INVALID_OPTIONS` if both ends and
/// a duration are given, and `ERR_PERFORMANCE_INVALID_TIMESTAMP` if a time is negative.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::performance;
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         performance::mark_at("a", 5.0).unwrap();
///         performance::mark_at("b", 12.0).unwrap();
///         assert_eq!(performance::measure("a-b", ("a", "b")).unwrap().duration, 7.0);
///         assert!(performance::measure("x", "missing").is_err());
///     })
/// }
/// ```
pub fn measure(name: &str, span: impl Into<Span>) -> Result<PerformanceEntry, Error> {
    let Span {
        start,
        end,
        duration,
        detail,
    } = span.into();
    if start.is_some() && end.is_some() && duration.is_some() {
        let text = "Must not have options.start, options.end, and options.duration specified";
        return Err(Error::type_error(text).coded("ERR_PERFORMANCE_MEASURE_INVALID_OPTIONS"));
    }
    let start_time = start.as_ref().map(time_of).transpose()?;
    let end_time = end.as_ref().map(time_of).transpose()?;
    let start_time = match (start_time, end_time, duration) {
        (Some(start), ..) => start,
        (None, Some(end), Some(duration)) => end - duration,
        _ => 0.0,
    };
    let end_time = match (end_time, duration) {
        (Some(end), _) => end,
        (None, Some(duration)) => start_time + duration,
        (None, None) => now(),
    };
    let time = (start_time, end_time - start_time);
    Ok(add(name, EntryType::Measure, time, detail))
}

fn time_of(point: &Point) -> Result<f64, Error> {
    match point {
        Point::Time(time) if *time < 0.0 => Err(invalid_timestamp(*time)),
        Point::Time(time) => Ok(*time),
        Point::Mark(name) => {
            let node = Node::current();
            let entries = node.timeline.entries.borrow();
            let is_it = |entry: &&PerformanceEntry| {
                entry.entry_type == EntryType::Mark && entry.name == *name
            };
            let found = entries.iter().rev().find(is_it);
            found.map(|entry| entry.start_time).ok_or_else(|| {
                let text = format!("The \"{name}\" performance mark has not been set");
                Error::named("SyntaxError", text)
            })
        }
    }
}

fn invalid_timestamp(time: f64) -> Error {
    let text = format!("{time} is not a valid timestamp");
    Error::type_error(text).coded("ERR_PERFORMANCE_INVALID_TIMESTAMP")
}

/// Adds an entry to the timeline and notifies the observers.
pub(super) fn add(
    name: &str,
    entry_type: EntryType,
    (start_time, duration): (f64, f64),
    detail: Option<Detail>,
) -> PerformanceEntry {
    let node = Node::current();
    let entry = PerformanceEntry {
        name: name.to_owned(),
        entry_type,
        start_time,
        duration,
        detail,
    };
    if entry_type != EntryType::Function {
        node.timeline.entries.borrow_mut().push(entry.clone());
    }
    node.observers.enter(&node, &entry);
    entry
}

/// Returns the marks and measures, by the time of their starts. JavaScript:
/// `performance.getEntries()`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn get_entries() -> Vec<PerformanceEntry> {
    entries_of(|_| true)
}

/// Returns the entries of a name. JavaScript: `performance.getEntriesByName(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn get_entries_by_name(name: &str) -> Vec<PerformanceEntry> {
    entries_of(|entry| entry.name == name)
}

/// Returns the entries of a type. JavaScript: `performance.getEntriesByType(type)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn get_entries_by_type(entry_type: EntryType) -> Vec<PerformanceEntry> {
    entries_of(|entry| entry.entry_type == entry_type)
}

fn entries_of(is_wanted: impl Fn(&PerformanceEntry) -> bool) -> Vec<PerformanceEntry> {
    let node = Node::current();
    let entries = node.timeline.entries.borrow();
    let mut found: Vec<_> = entries
        .iter()
        .filter(|entry| is_wanted(entry))
        .cloned()
        .collect();
    found.sort_by(|a, b| a.start_time.total_cmp(&b.start_time));
    found
}

/// Removes the marks of a name, or all. JavaScript: `performance.clearMarks(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn clear_marks(name: Option<&str>) {
    clear(EntryType::Mark, name);
}

/// Removes the measures of a name, or all. JavaScript: `performance.clearMeasures(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn clear_measures(name: Option<&str>) {
    clear(EntryType::Measure, name);
}

fn clear(entry_type: EntryType, name: Option<&str>) {
    let node = Node::current();
    let goes = |entry: &PerformanceEntry| {
        entry.entry_type == entry_type && name.is_none_or(|name| entry.name == name)
    };
    node.timeline
        .entries
        .borrow_mut()
        .retain(|entry| !goes(entry));
}

/// How much of a time the loop was busy; times are in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EventLoopUtilization {
    /// How long the loop waited for events.
    pub idle: f64,
    /// How long it did anything else.
    pub active: f64,
    /// The share of `active` in both; zero if both are.
    pub utilization: f64,
}

impl EventLoopUtilization {
    fn new(idle: f64, active: f64) -> Self {
        let whole = idle + active;
        Self {
            idle,
            active,
            utilization: if whole > 0.0 { active / whole } else { 0.0 },
        }
    }

    /// Returns the part that follows an earlier one. Its utilization is not a number if no time
    /// has passed between the two. JavaScript: `performance.eventLoopUtilization(later, earlier)`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let passed = Self::new(self.idle - earlier.idle, self.active - earlier.active);
        // In the main program all are zero.
        let has_begun = self.idle + self.active > 0.0;
        if has_begun && passed.idle + passed.active == 0.0 {
            return Self {
                utilization: f64::NAN,
                ..passed
            };
        }
        passed
    }
}

/// Returns how busy the loop was since it began to turn: all zero in the main program. Waiting for
/// events is idle, blocking is active, whatever the processor does. JavaScript:
/// `performance.eventLoopUtilization()`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::performance::event_loop_utilization;
/// use phaseloop_node::{Exit, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let start = event_loop_utilization();
///         assert_eq!(start.utilization, 0.0);
///         set_timeout(20, move || {
///             assert!(event_loop_utilization().since(&start).idle > 10.0);
///         });
///     })
/// }
/// ```
#[must_use]
pub fn event_loop_utilization() -> EventLoopUtilization {
    let handle = LoopHandle::current();
    let node = Node::of(&Loop::of(&handle));
    let start = match node.timeline.loop_start.get() {
        Some(start) => start,
        None if node.process.is_program() => return EventLoopUtilization::default(),
        None => Utilization::default(),
    };
    let ran = Loop::of(&handle).utilization().since(&start);
    EventLoopUtilization::new(ran.idle.as_secs_f64() * 1e3, ran.active.as_secs_f64() * 1e3)
}

/// The counters of the loop; see [`uv_metrics_info`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UvMetricsInfo {
    /// The number of turns.
    pub loop_count: u64,
    /// The number of events of the kernel.
    pub events: u64,
    /// The number of events that were there when the loop asked.
    pub events_waiting: u64,
}

/// Returns the counters of the loop. JavaScript: `performance.nodeTiming.uvMetricsInfo`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn uv_metrics_info() -> UvMetricsInfo {
    let metrics = LoopHandle::current().metrics();
    UvMetricsInfo {
        loop_count: metrics.turns,
        events: metrics.events,
        events_waiting: metrics.events_waiting,
    }
}
