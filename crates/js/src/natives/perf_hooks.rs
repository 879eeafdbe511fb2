//! The performance timeline, histograms, and the use of the loop.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use phaseloop_node::perf_hooks::performance::{
    self, MarkOptions, Point, Span, timerify, timerify_into,
};
use phaseloop_node::perf_hooks::{
    Detail, EntryType, EventLoopUtilization, HistogramOptions, IntervalHistogram, PerformanceEntry,
    PerformanceObserver, RecordableHistogram, monitor_event_loop_delay,
};
use phaseloop_node::{Error, Reason};

use super::{arg, number, operations, text};
use crate::engine::{Closure, Fault, Held, Native, Res, Scope, Val};

pub(super) const TABLE: &[(&str, Native)] = &[
    ("performanceNow", now),
    ("timeOrigin", time_origin),
    ("performanceMark", mark),
    ("performanceMeasure", measure),
    ("performanceEntries", entries),
    ("performanceClear", clear),
    ("loopUtilization", utilization),
    ("loopMetrics", metrics),
    ("performanceObserver", observer),
    ("histogram", histogram),
    ("loopDelay", delay),
    ("timerify", timed),
];

/// A histogram that JavaScript records in.
pub(crate) type Recordable = Rc<RefCell<RecordableHistogram>>;

fn now<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(performance::now()))
}

fn time_origin<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    Ok(scope.number(performance::time_origin()))
}

fn type_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Mark => "mark",
        EntryType::Measure => "measure",
        _ => "function",
    }
}

fn type_of(name: &str) -> Option<EntryType> {
    let all = [EntryType::Mark, EntryType::Measure, EntryType::Function];
    all.into_iter().find(|it| type_name(*it) == name)
}

/// Returns the object of an entry.
fn shown<'js>(scope: &Scope<'js>, entry: &PerformanceEntry) -> Res<'js> {
    let detail = match entry.detail::<Held>() {
        Some(held) if held.is_of(&scope.inner) => held.get(scope)?,
        _ => scope.null(),
    };
    let args = [
        scope.string(&entry.name)?,
        scope.string(type_name(entry.entry_type))?,
        scope.number(entry.start_time),
        scope.number(entry.duration),
        detail,
    ];
    scope.internal("performanceEntry", &args)
}

fn list<'js>(scope: &Scope<'js>, entries: &[PerformanceEntry]) -> Res<'js> {
    let values = entries.iter().map(|it| shown(scope, it));
    scope.array(&values.collect::<Res<'js, Vec<_>>>()?)
}

fn thrown(scope: &Scope<'_>, error: Error) -> Fault {
    scope.throw_reason(&Reason::new(error))
}

fn detail<'js>(scope: &Scope<'js>, value: &Val<'js>) -> Option<Detail> {
    (!value.is_nullish()).then(|| Detail::new(scope.hold(value)))
}

/// Adds a mark: the name, the time and the detail.
fn mark<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = MarkOptions {
        start_time: arg(scope, args, 1).as_number(),
        detail: detail(scope, &arg(scope, args, 2)),
    };
    match performance::mark_with(&text(scope, args, 0)?, options) {
        Ok(entry) => shown(scope, &entry),
        Err(error) => Err(thrown(scope, error)),
    }
}

/// Adds a measure: the name, the start, the end, the duration and the detail.
fn measure<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let point = |index: usize| -> Res<'js, Option<Point>> {
        let value = arg(scope, args, index);
        Ok(match value.as_number() {
            Some(time) => Some(Point::Time(time)),
            None if value.is_undefined() => None,
            None => Some(Point::Mark(value.to_text()?)),
        })
    };
    let span = Span {
        start: point(1)?,
        end: point(2)?,
        duration: arg(scope, args, 3).as_number(),
        detail: detail(scope, &arg(scope, args, 4)),
    };
    match performance::measure(&text(scope, args, 0)?, span) {
        Ok(entry) => shown(scope, &entry),
        Err(error) => Err(thrown(scope, error)),
    }
}

fn entries<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    list(scope, &performance::get_entries())
}

/// Removes entries: whether the marks, and the name.
fn clear<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let name = arg(scope, args, 1);
    let name = match name.is_undefined() {
        true => None,
        false => Some(name.to_text()?),
    };
    match arg(scope, args, 0).is_truthy() {
        true => performance::clear_marks(name.as_deref()),
        false => performance::clear_measures(name.as_deref()),
    }
    Ok(scope.undefined())
}

/// Returns the use of the loop, since or between others: idle and active time of each.
fn utilization<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let given = |index: usize| {
        let mut it = EventLoopUtilization::default();
        it.idle = arg(scope, args, index).as_number()?;
        it.active = number(scope, args, index + 1);
        Some(it)
    };
    let found = match (given(0), given(2)) {
        (Some(later), Some(earlier)) => later.since(&earlier),
        (Some(earlier), None) => performance::event_loop_utilization().since(&earlier),
        _ => performance::event_loop_utilization(),
    };
    let object = scope.object()?;
    for (name, value) in [
        ("idle", found.idle),
        ("active", found.active),
        ("utilization", found.utilization),
    ] {
        object.set(name, &scope.number(value))?;
    }
    Ok(object)
}

fn metrics<'js>(scope: &Scope<'js>, _: &[Val<'js>]) -> Res<'js> {
    let (object, found) = (scope.object()?, performance::uv_metrics_info());
    for (name, value) in [
        ("loopCount", found.loop_count),
        ("events", found.events),
        ("eventsWaiting", found.events_waiting),
    ] {
        object.set(name, &scope.number(value as f64))?;
    }
    Ok(object)
}

/// Creates the observer of an object, which Rust holds weakly, and returns its function.
fn observer<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let weak = scope.internal("weak", &[arg(scope, args, 0)])?;
    let weak = scope.hold(&weak);
    let observer = PerformanceObserver::new(move |found| {
        let Some(inner) = weak.engine() else {
            return;
        };
        inner.run(|scope| {
            let args = [weak.get(scope)?, list(scope, found.get_entries())?];
            scope.internal("performanceObserved", &args).map(drop)
        });
    });
    let closure: Closure = Rc::new(move |scope, args| {
        let types = || -> Res<'_, Vec<EntryType>> {
            let names = args[1..].iter().map(Val::to_text);
            let names = names.collect::<Res<'_, Vec<_>>>()?;
            Ok(names.iter().filter_map(|name| type_of(name)).collect())
        };
        match text(scope, args, 0)?.as_str() {
            "observe" => observer.observe(&types()?),
            "buffered" => types()?
                .iter()
                .for_each(|it| observer.observe_buffered(*it)),
            "take" => return list(scope, &observer.take_records()),
            _ => observer.disconnect(),
        }
        Ok(scope.undefined())
    });
    scope.closure("observer", closure)
}

/// What every histogram has; `None` for an operation that it does not.
fn figures<'js>(
    scope: &Scope<'js>,
    it: &RecordableHistogram,
    operation: &str,
    args: &[Val<'js>],
) -> Res<'js, Option<Val<'js>>> {
    Ok(Some(match operation {
        "count" => scope.number(it.count() as f64),
        "exceeds" => scope.number(it.exceeds() as f64),
        "min" => scope.number(it.min() as f64),
        "max" => scope.number(it.max() as f64),
        "mean" => scope.number(it.mean()),
        "stddev" => scope.number(it.stddev()),
        "percentile" => scope.number(it.percentile(number(scope, args, 0)) as f64),
        "percentiles" => {
            let pair = |(percent, value): (f64, u64)| {
                scope.array(&[scope.number(percent), scope.number(value as f64)])
            };
            let pairs = it.percentiles().into_iter().map(pair);
            scope.array(&pairs.collect::<Res<'js, Vec<_>>>()?)?
        }
        _ => return Ok(None),
    }))
}

/// Creates a histogram: the lowest value, the highest and the figures. Returns its function.
fn histogram<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let options = HistogramOptions {
        lowest: number(scope, args, 0) as u64,
        highest: number(scope, args, 1) as u64,
        figures: number(scope, args, 2) as u32,
    };
    let made = RecordableHistogram::with_options(options).map_err(|error| thrown(scope, error))?;
    let it: Recordable = Rc::new(RefCell::new(made));
    operations(scope, "histogram", move |scope, operation, args| {
        match operation {
            "lend" => drop(scope.inner.data.lent_histogram.replace(Some(it.clone()))),
            "record" => {
                let done = it.borrow_mut().record(number(scope, args, 0) as u64);
                done.map_err(|error| thrown(scope, error))?;
            }
            "recordDelta" => it.borrow_mut().record_delta(),
            "reset" => it.borrow_mut().reset(),
            "add" => {
                if let Some(other) = lent(scope, &arg(scope, args, 0))? {
                    let other = other.borrow().clone();
                    it.borrow_mut().add(&other);
                }
            }
            _ => {
                let found = figures(scope, &it.borrow(), operation, args)?;
                return Ok(found.unwrap_or_else(|| scope.undefined()));
            }
        }
        Ok(scope.undefined())
    })
}

/// Returns the histogram of its function.
fn lent<'js>(scope: &Scope<'js>, function: &Val<'js>) -> Res<'js, Option<Recordable>> {
    if function.is_function() {
        function.call(&scope.undefined(), &[scope.string("lend")?])?;
    }
    Ok(scope.inner.data.lent_histogram.take())
}

/// Creates a monitor of the loop's delay: the resolution. Returns its function.
fn delay<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let it: IntervalHistogram = monitor_event_loop_delay(number(scope, args, 0) as u64);
    operations(scope, "delay", move |scope, operation, args| {
        Ok(match operation {
            "enable" => scope.boolean(it.enable()),
            "disable" => scope.boolean(it.disable()),
            "reset" => {
                it.reset();
                scope.undefined()
            }
            _ => figures(scope, &it.histogram(), operation, args)?
                .unwrap_or_else(|| scope.undefined()),
        })
    })
}

/// How many names of functions the timelines of a process may have: it keeps them for ever.
const MOST_NAMES: usize = 1000;

/// Returns a name for the timeline; `None` if there are too many.
fn kept_name(name: String) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return Some(*known);
    }
    if names.len() == MOST_NAMES {
        return None;
    }
    let kept: &'static str = Box::leak(name.into_boxed_str());
    names.insert(kept);
    Some(kept)
}

/// A call that has thrown: it is no entry of the timeline.
struct Thrown;

/// Calls a function as an entry of the timeline: its name, the call and a histogram.
fn timed<'js>(scope: &Scope<'js>, args: &[Val<'js>]) -> Res<'js> {
    let Some(name) = kept_name(text(scope, args, 0)?) else {
        let text = "More than 1000 names of functions that are timed are not implemented";
        let error = Error::with_code("ERR_METHOD_NOT_IMPLEMENTED", text);
        return Err(thrown(scope, error));
    };
    let function = arg(scope, args, 1);
    let histogram = lent(scope, &arg(scope, args, 2))?;
    let call = |()| match function.call(&scope.undefined(), &[]) {
        Ok(value) => value,
        Err(Fault) => resume_unwind(Box::new(Thrown)),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| match histogram {
        Some(histogram) => timerify_into(name, histogram, call)(()),
        None => timerify(name, call)(()),
    }));
    outcome.map_err(|payload| match payload.is::<Thrown>() {
        true => Fault,
        false => resume_unwind(payload),
    })
}
