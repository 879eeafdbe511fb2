//! The sink for the crate `tracing`: a span for each task, and events for wakes, slow periods and
//! late timers. The names and fields are those that tokio-console reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tracing::span::{EnteredSpan, Id};
use tracing::{Span, trace, trace_span, warn};

use super::switch::{Activity, Origin};
use crate::task_info::Info;

/// A busy period of this length is slow, in nanoseconds.
const SLOW: u64 = 10_000_000;

/// A timer that fires later than this is late, in nanoseconds.
const LATE: u64 = 1_000_000;

/// The spans of the tasks that have not ended, by number.
#[derive(Default)]
pub(crate) struct Traced {
    spans: RefCell<HashMap<u64, Span>>,
}

impl Traced {
    /// Opens the span of a task. Its parent is the span that is current now.
    pub(crate) fn spawned(&self, info: &Info) {
        let (id, site) = (info.id.0, info.site);
        let span = trace_span!(
            target: "phaseloop::task",
            "runtime.spawn",
            kind = "local",
            task.id = id,
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

    /// Enters the span of a task that is polled, and tells of a timer that fires late.
    pub(crate) fn begin(
        &self,
        activity: Activity,
        origin: Origin,
        now: u64,
        info: &dyn Fn() -> Option<Info>,
    ) -> Option<EnteredSpan> {
        match activity {
            Activity::Poll(id) => {
                if !self.spans.borrow().contains_key(&id) {
                    // The task was spawned before its loop was traced.
                    self.spawned(&info()?);
                }
                // Cloned out of the borrow: a subscriber may spawn.
                let span = self.spans.borrow().get(&id).cloned();
                span.map(Span::entered)
            }
            Activity::Callback(_) => {
                let late = origin.due.map_or(0, |due| now.saturating_sub(due));
                if late > LATE {
                    let kind = origin.kind.map_or("timer", crate::keeper::Keeper::text);
                    let site = origin.site.map(ToString::to_string);
                    let late = Duration::from_nanos(late);
                    warn!(target: "phaseloop::late", kind, site, ?late, "a timer fires late");
                }
                None
            }
            _ => None,
        }
    }

    /// Closes the span of a task that has ended.
    pub(crate) fn ended(&self, id: u64) {
        let span = self.spans.borrow_mut().remove(&id);
        drop(span);
    }

    pub(crate) fn woken(&self, id: u64) {
        let span = self.spans.borrow().get(&id).and_then(Span::id);
        if let Some(span) = span {
            notify_waker("waker.wake_by_ref", &span);
        }
    }

    pub(crate) fn end_busy(&self, start: u64, end: u64) {
        let took = end.saturating_sub(start);
        if took >= SLOW {
            let took = Duration::from_nanos(took);
            warn!(target: "phaseloop::slow", ?took, "the loop was busy for long");
        }
    }
}

/// Tells what was done with a waker of the task with this span.
fn notify_waker(op: &'static str, span: &Id) {
    // The number is that of the span, which the console looks up.
    trace!(target: "runtime::waker", op, task.id = span.into_u64());
}
