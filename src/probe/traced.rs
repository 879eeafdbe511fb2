//! The sink for the crate `tracing`: a span for each task, and events for wakes, slow periods and
//! late timers. The names and fields are those that tokio-console reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tracing::span::{EnteredSpan, Id};
use tracing::{Span, trace, trace_span, warn};

use super::observer::{Activity, Body, BusyPeriod, Observer, Wake, Wants};
use crate::keeper::Keeper;
use crate::task_info::{Id as TaskId, Info};

/// A busy period of this length is slow, in nanoseconds.
const SLOW: u64 = 10_000_000;

/// A timer that fires later than this is late, in nanoseconds.
const LATE: u64 = 1_000_000;

/// The spans of the tasks that have not ended, by number.
#[derive(Default)]
pub(crate) struct Traced {
    spans: RefCell<HashMap<TaskId, Span>>,
    /// The spans of the activities in progress; `None` for one that is no poll of a task.
    entered: RefCell<Vec<Option<EnteredSpan>>>,
}

impl Traced {
    /// Returns the span of a task that is polled.
    fn span_of(&self, id: TaskId, activity: &Activity<'_>) -> Option<Span> {
        if !self.spans.borrow().contains_key(&id) {
            // The task was spawned before its loop was traced.
            self.spawned(&activity.task()?);
        }
        // Cloned out of the borrow: a subscriber may spawn.
        self.spans.borrow().get(&id).cloned()
    }

    /// Warns of a timer that fires late.
    fn warn_if_late(activity: &Activity<'_>) {
        let late = |due| activity.now().saturating_sub(due);
        let late = activity.due().map_or(0, late);
        if late > LATE {
            let kind = activity.kind().map_or("timer", Keeper::text);
            let site = activity.site().map(ToString::to_string);
            let late = Duration::from_nanos(late);
            warn!(target: "phaseloop::late", kind, site, ?late, "a timer fires late");
        }
    }
}

impl Observer for Traced {
    fn wants(&self) -> Wants {
        Wants::ACTIVITIES | Wants::TASKS | Wants::WAKES | Wants::BUSY
    }

    /// Opens the span of a task. Its parent is the span that is current now.
    fn spawned(&self, info: &Info) {
        let (id, site) = (info.id, info.site);
        let span = trace_span!(
            target: "phaseloop::task",
            "runtime.spawn",
            kind = "local",
            task.id = id.0,
            task.name = info.name().unwrap_or_default(),
            loc.file = site.file(),
            loc.line = site.line(),
            loc.col = site.column(),
        );
        let number = span.id();
        let before = self.spans.borrow_mut().insert(id, span);
        drop(before);
        if let Some(number) = number {
            // The console warns of a task that has no waker. Wakers are not counted here, so the
            // one that the loop holds stands for all.
            notify_waker("waker.clone", &number);
        }
    }

    /// Enters the span of a task that is polled.
    fn begin(&self, activity: &Activity<'_>) {
        let span = match activity.body {
            Body::Poll(id) => self.span_of(id, activity),
            _ => None,
        };
        Self::warn_if_late(activity);
        let entered = span.map(Span::entered);
        self.entered.borrow_mut().push(entered);
    }

    fn end(&self, _activity: &Activity<'_>) {
        let entered = self.entered.borrow_mut().pop();
        drop(entered);
    }

    /// Closes the span of a task that has ended.
    fn ended(&self, task: TaskId) {
        let span = self.spans.borrow_mut().remove(&task);
        drop(span);
    }

    fn woken(&self, wake: &Wake<'_>) {
        let span = self.spans.borrow().get(&wake.id).and_then(Span::id);
        if let Some(span) = span {
            notify_waker("waker.wake_by_ref", &span);
        }
    }

    fn end_busy(&self, period: &BusyPeriod<'_>) {
        let took = period.end.saturating_sub(period.start);
        if took >= SLOW {
            let took = Duration::from_nanos(took);
            warn!(target: "phaseloop::slow", ?took, "the loop was busy for long");
        }
    }
}

/// Emits what was done with a waker of the task with this span.
fn notify_waker(op: &'static str, span: &Id) {
    // The number is that of the span, which the console looks up.
    trace!(target: "runtime::waker", op, task.id = span.into_u64());
}
