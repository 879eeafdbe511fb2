//! Functions whose calls are entries of the performance timeline.

use std::cell::RefCell;
use std::rc::Rc;

use super::NANOSECONDS_PER_MILLISECOND;
use super::histogram::RecordableHistogram;
use super::performance::{EntryType, add, now};
use crate::context::Node;
use crate::promise::Promise;

/// Returns a function that calls `f` and reports how long it took to the observers of
/// [`EntryType::Function`]. JavaScript: `performance.timerify(f)`.
///
/// # Panics
///
/// The returned function panics when no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::{EntryType, PerformanceObserver, performance};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let observer = PerformanceObserver::new(|list| {
///             assert_eq!(list.get_entries()[0].name, "sum");
///         });
///         observer.observe(&[EntryType::Function]);
///         let sum = performance::timerify("sum", |(a, b)| a + b);
///         assert_eq!(sum((1, 2)), 3);
///     })
/// }
/// ```
pub fn timerify<A, R>(name: &'static str, f: impl Fn(A) -> R) -> impl Fn(A) -> R {
    move |argument| {
        if !Node::current().observers.observes(EntryType::Function) {
            return f(argument);
        }
        let start = now();
        let value = f(argument);
        end_call(name, start);
        value
    }
}

/// Returns a function that calls `f` and records how long it took, in nanoseconds; otherwise like
/// [`timerify`]. JavaScript: `performance.timerify(f, { histogram })`.
///
/// # Panics
///
/// The returned function panics when no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::{RecordableHistogram, performance};
/// use phaseloop_node::{Exit, run};
/// use std::{cell::RefCell, rc::Rc};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let times = Rc::new(RefCell::new(RecordableHistogram::new()));
///         let sum = performance::timerify_into("sum", times.clone(), |(a, b)| a + b);
///         assert_eq!(sum((1, 2)), 3);
///         assert_eq!(times.borrow().count(), 1);
///     })
/// }
/// ```
pub fn timerify_into<A, R>(
    name: &'static str,
    histogram: Rc<RefCell<RecordableHistogram>>,
    f: impl Fn(A) -> R,
) -> impl Fn(A) -> R {
    move |argument| {
        let start = now();
        let value = f(argument);
        let took = end_call(name, start);
        // A call on the paused clock takes no time; the smallest value is one.
        histogram
            .borrow_mut()
            .count_one(whole_nanoseconds(took).max(1));
        value
    }
}

/// Returns a function that calls `f` and reports to the observers how long it took until its
/// promise was settled; otherwise like [`timerify`], which JavaScript uses for these functions,
/// too.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::{EntryType, PerformanceObserver, performance};
/// use phaseloop_node::timers::promises::sleep;
/// use phaseloop_node::{Exit, call, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let observer = PerformanceObserver::new(|list| {
///             assert!(list.get_entries()[0].duration >= 4.0);
///         });
///         observer.observe(&[EntryType::Function]);
///         let query = performance::timerify_async("query", |time| call(async move {
///             sleep(time).await.unwrap();
///         }));
///         query(5).await.unwrap();
///     })
/// }
/// ```
pub fn timerify_async<A, R: Clone + 'static>(
    name: &'static str,
    f: impl Fn(A) -> Promise<R>,
) -> impl Fn(A) -> Promise<R> {
    move |argument| {
        let start = now();
        f(argument).finally(move || _ = end_call(name, start))
    }
}

/// Adds the entry of a call that began at `start`. Returns how long it took.
fn end_call(name: &str, start: f64) -> f64 {
    let took = now() - start;
    add(name, EntryType::Function, (start, took), None);
    took
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the time of a call is not negative, and fits"
)]
fn whole_nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * NANOSECONDS_PER_MILLISECOND).ceil() as u64
}
