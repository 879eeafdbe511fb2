//! What a loop publishes of itself, and the end of a stall.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::reporter::{self, Reporter};
use super::thread;
use super::{Stall, Watchdog};
use crate::clock::nanoseconds;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::observer::{Activity, Body, BusyPeriod, Observer, Wants};
use crate::probe::origin::Origin;
use crate::site::Site;
use crate::sys::clock::Counter;
use crate::sys::stall::{AtomicSite, Thread, stack_of};

/// What a loop publishes of itself, and how its stalls are reported.
pub(crate) struct Marks {
    /// Since when the loop is busy, on the clock of [`now`]; zero while it waits or does not run.
    pub(super) since: AtomicU64,
    /// The line of what runs.
    site: AtomicSite,
    /// What runs, as [`code_of`] writes it.
    what: AtomicU64,
    /// The beginning of the busy period that was reported, or zero.
    reported: AtomicU64,
    /// What ran when it was reported last.
    reported_what: Mutex<String>,
    thread: Thread,
    thread_name: Option<String>,
    index: Option<u32>,
    has_stack: bool,
    reporter: Reporter,
    /// Returns whether a signal asks for a report, and the loop has not answered.
    pub(super) is_asked: OnceLock<Arc<dyn Fn() -> bool + Send + Sync>>,
}

/// Publishes the marks of a loop. The drop takes the loop off the watchdog's list.
pub(crate) struct Marker {
    pub(super) marks: Arc<Marks>,
    /// What ran before each activity in progress.
    before: RefCell<Vec<Before>>,
    /// Returns the report of the current loop.
    report: Option<fn() -> String>,
}

/// What ran before an activity began inside it.
struct Before {
    site: Option<Site>,
    what: u64,
}

/// Returns the time on a clock that all threads share, in nanoseconds. It is never zero.
pub(super) fn now() -> u64 {
    static CLOCK: OnceLock<Counter> = OnceLock::new();
    CLOCK.get_or_init(Counter::new).nanoseconds().max(1)
}

/// The loop's side.
impl Marker {
    /// Begins to watch the loop of this thread.
    pub(crate) fn new(
        watchdog: Watchdog,
        report: Option<fn() -> String>,
        index: Option<u32>,
    ) -> Self {
        let name = std::thread::current().name().map(str::to_owned);
        let marks = Arc::new(Marks {
            since: AtomicU64::new(0),
            site: AtomicSite::new(),
            what: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            reported_what: Mutex::default(),
            thread: Thread::this(),
            thread_name: name.filter(|name| name != "main"),
            index,
            has_stack: watchdog.stack,
            reporter: Reporter::new(watchdog.then),
            is_asked: OnceLock::new(),
        });
        thread::watch(marks.clone(), nanoseconds(watchdog.limit));
        Self {
            marks,
            before: RefCell::default(),
            report,
        }
    }

    fn begin_period(&self) {
        // In the order of all threads: either the watchdog sees the loop busy before it falls
        // asleep, or the loop sees it asleep.
        self.marks.since.store(now(), Ordering::SeqCst);
        thread::wake_if_asleep();
    }
}

impl Observer for Marker {
    fn wants(&self) -> Wants {
        Wants::ACTIVITIES | Wants::BUSY
    }

    fn begin(&self, activity: &Activity<'_>) {
        let marks = &self.marks;
        if marks.since.load(Ordering::Relaxed) == 0 {
            self.begin_period();
        }
        let code = code_of(activity.body, activity.origin);
        let before = Before {
            what: marks.what.swap(code, Ordering::Relaxed),
            site: marks.site.swap(activity.origin.site),
        };
        self.before.borrow_mut().push(before);
    }

    /// Restores what ran before.
    fn end(&self, _activity: &Activity<'_>) {
        if let Some(before) = self.before.borrow_mut().pop() {
            self.marks.site.swap(before.site);
            self.marks.what.store(before.what, Ordering::Relaxed);
        }
    }

    fn begin_busy(&self, _now: u64) {
        self.begin_period();
    }

    /// Reports that a stall is over, if the busy period that ends was reported.
    fn end_busy(&self, _period: &BusyPeriod<'_>) {
        let marks = &self.marks;
        // In the order of all threads: either the watchdog sees that the period is over before it
        // reports it, or this sees that it was reported.
        let since = marks.since.swap(0, Ordering::SeqCst);
        if since == 0 || !marks.take_reported(since) {
            return;
        }
        let what = marks.reported_what.lock();
        let what = what.unwrap_or_else(PoisonError::into_inner).clone();
        let mut stall = marks.stall(since, what);
        stall.is_over = true;
        stall.report = self.report.map(|report| report()).unwrap_or_default();
        let reporter = &marks.reporter;
        reporter.print(reporter.lock(), |then| {
            reporter::report(then, stall, |_| ())
        });
    }

    fn reports_on_signal(&self, is_asked: &Arc<dyn Fn() -> bool + Send + Sync>) {
        let _ = self.marks.is_asked.set(is_asked.clone());
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        thread::forget(&self.marks);
        self.marks.reporter.wait_until_idle();
    }
}

/// The watchdog's side.
impl Marks {
    /// Reports that the loop has been busy since `since`, unless it is busy no longer.
    pub(super) fn report_stall(self: &Arc<Self>, since: u64) {
        let what = describe(self.what.load(Ordering::Relaxed), self.site.get());
        let reported = self.reported_what.lock();
        what.clone_into(&mut reported.unwrap_or_else(PoisonError::into_inner));
        // Under the lock, so that the end of the period is reported after this.
        let queue = self.reporter.lock();
        self.reported.store(since, Ordering::SeqCst);
        let is_over = self.since.load(Ordering::SeqCst) != since;
        if is_over && self.take_reported(since) {
            // The loop has not seen it, and reports no end.
            return;
        }
        let (marks, stall) = (self.clone(), self.stall(since, what));
        self.reporter.print(queue, move |then| {
            reporter::report(then, stall, |stall| marks.add_stack(stall, since));
        });
    }

    /// Returns whether the period that began at `since` was reported, and forgets it.
    fn take_reported(&self, since: u64) -> bool {
        let taken = self
            .reported
            .compare_exchange(since, 0, Ordering::SeqCst, Ordering::SeqCst);
        taken.is_ok()
    }

    fn stall(&self, since: u64, what: String) -> Stall {
        Stall {
            took: Duration::from_nanos(now().saturating_sub(since)),
            what,
            thread: self.thread_name.clone(),
            index: self.index,
            stack: Vec::new(),
            no_stack: None,
            is_over: false,
            report: String::new(),
        }
    }

    /// Adds the stack, unless the period has ended before it was read.
    fn add_stack(&self, stall: &mut Stall, since: u64) {
        if !self.has_stack {
            return;
        }
        let stack = stack_of(self.thread);
        if self.since.load(Ordering::SeqCst) == since {
            stall.no_stack = stack.fault();
            stall.stack = stack.functions();
        } else {
            stall.no_stack = Some("it was over before the stack was read".to_owned());
        }
    }
}

// What runs, as one number: the kind in the lowest bits.
const POLL: u64 = 1;
const MAIN: u64 = 2;
const CALLBACK: u64 = 3;
const TICK: u64 = 4;
const MICROTASK: u64 = 5;
const BITS: u32 = 3;
/// The place of a callback's kind, behind its phase.
const KIND: u32 = 8;

fn code_of(body: Body, origin: Origin) -> u64 {
    match body {
        Body::Poll(id) => id.0 << BITS | POLL,
        Body::MainFuture => MAIN,
        Body::Tick => TICK,
        Body::Microtask => MICROTASK,
        Body::Callback(phase) => {
            let kind = origin.kind.map_or(0, |kind| kind as u64 + 1);
            kind << KIND | (phase as u64) << BITS | CALLBACK
        }
    }
}

/// Names what runs.
fn describe(code: u64, site: Option<Site>) -> String {
    let rest = code >> BITS;
    let what = match code & ((1 << BITS) - 1) {
        POLL => format!("task {rest}"),
        MAIN => "the main future".to_owned(),
        TICK => "a tick".to_owned(),
        MICROTASK => "a microtask".to_owned(),
        CALLBACK => {
            let kind = usize::try_from(code >> KIND).unwrap_or(0);
            let kind = kind.checked_sub(1).and_then(|kind| Keeper::ALL.get(kind));
            let phase = Phase::ALL.get((rest & 7) as usize);
            match (kind, phase) {
                (Some(kind), Some(phase)) => format!("{kind} in the {phase} phase"),
                (None, Some(phase)) => format!("a callback in the {phase} phase"),
                _ => "a callback".to_owned(),
            }
        }
        _ => "the loop itself".to_owned(),
    };
    match site {
        Some(site) => format!("{what} ({site})"),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::{code_of, describe};
    use crate::keeper::Keeper;
    use crate::phase_order::Phase;
    use crate::probe::{Body, Origin};
    use crate::task_info::Id;
    use std::panic::Location;

    #[test]
    fn what_runs_is_named_from_its_number() {
        let site = Some(Location::caller());
        let text = |body, origin: Origin| {
            let text = describe(code_of(body, origin), origin.site);
            text.split(" (").next().unwrap_or_default().to_owned()
        };
        let plain = Origin::at(site);
        assert_eq!(text(Body::Poll(Id(4711)), plain), "task 4711");
        assert_eq!(text(Body::MainFuture, plain), "the main future");
        assert_eq!(text(Body::Tick, plain), "a tick");
        assert_eq!(text(Body::Microtask, plain), "a microtask");
        for phase in Phase::ALL {
            let name = format!("a callback in the {phase} phase");
            assert_eq!(text(Body::Callback(phase), plain), name);
            for kind in Keeper::ALL {
                let name = format!("{kind} in the {phase} phase");
                let origin = Origin::new(kind, site);
                assert_eq!(text(Body::Callback(phase), origin), name);
            }
        }
        assert_eq!(describe(0, None), "the loop itself");
        assert!(describe(1 << 3 | 1, site).contains("marks.rs:"));
    }
}
