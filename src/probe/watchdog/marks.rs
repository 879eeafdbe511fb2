//! What a loop publishes of itself, and the end of a stall.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::reporter::{self, Reporter};
use super::thread;
use super::{Stall, Watchdog};
use crate::clock::nanoseconds;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::switch::{Activity, Origin};
use crate::site::Site;
use crate::sys::clock::Counter;
use crate::sys::stall::{AtomicSite, Thread, stack_of};

/// What a loop publishes of itself, and how its stalls are told.
pub(crate) struct Marks {
    /// Since when the loop is busy, on the clock of [`now`]; zero while it waits or does not run.
    pub(super) since: AtomicU64,
    /// The line of what runs.
    site: AtomicSite,
    /// What runs, as [`code_of`] writes it.
    what: AtomicU64,
    /// The beginning of the busy period that was told, or zero.
    told: AtomicU64,
    /// What ran when it was told last.
    told_what: Mutex<String>,
    thread: Thread,
    thread_name: Option<String>,
    has_stack: bool,
    reporter: Reporter,
    /// Returns whether a signal asks for a report, and the loop has not answered.
    pub(super) is_asked: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// The marks of a loop, in its probe. The drop takes the loop off the watchdog's list.
pub(crate) struct Marker(pub(super) Arc<Marks>);

/// What ran before an activity began inside it.
pub(crate) struct Before {
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
    pub(crate) fn new(watchdog: Watchdog) -> Self {
        let name = std::thread::current().name().map(str::to_owned);
        let marks = Arc::new(Marks {
            since: AtomicU64::new(0),
            site: AtomicSite::new(),
            what: AtomicU64::new(0),
            told: AtomicU64::new(0),
            told_what: Mutex::default(),
            thread: Thread::this(),
            thread_name: name.filter(|name| name != "main"),
            has_stack: watchdog.stack,
            reporter: Reporter::new(watchdog.then),
            is_asked: OnceLock::new(),
        });
        thread::watch(marks.clone(), nanoseconds(watchdog.limit));
        Self(marks)
    }

    /// Lets the watchdog know whether a signal waits for an answer of the loop.
    pub(crate) fn answers(&self, is_asked: Box<dyn Fn() -> bool + Send + Sync>) {
        let _ = self.0.is_asked.set(is_asked);
    }

    /// Notes that an activity begins. [`leave`](Self::leave) restores what ran before.
    pub(crate) fn enter(&self, activity: Activity, origin: Origin) -> Before {
        let marks = &self.0;
        if marks.since.load(Ordering::Relaxed) == 0 {
            self.begin_period();
        }
        let what = marks.what.load(Ordering::Relaxed);
        marks
            .what
            .store(code_of(activity, origin), Ordering::Relaxed);
        Before {
            site: marks.site.swap(origin.site),
            what,
        }
    }

    pub(crate) fn leave(&self, before: &Before) {
        self.0.site.swap(before.site);
        self.0.what.store(before.what, Ordering::Relaxed);
    }

    /// Notes that the loop is back from the kernel.
    pub(crate) fn begin_period(&self) {
        // In the order of all threads: either the watchdog sees the loop busy before it falls
        // asleep, or the loop sees it asleep.
        self.0.since.store(now(), Ordering::SeqCst);
        thread::wake_if_asleep();
    }

    /// Notes that the loop waits, or that its run has ended.
    pub(crate) fn rest(&self) {
        self.0.since.store(0, Ordering::Relaxed);
    }

    /// Tells that a stall is over, if the busy period that ends was told.
    pub(crate) fn end_period(&self, report: &dyn Fn() -> String) {
        let marks = &self.0;
        // In the order of all threads: either the watchdog sees that the period is over before it
        // tells it, or this sees that it was told.
        let since = marks.since.swap(0, Ordering::SeqCst);
        if since == 0 || !marks.take_told(since) {
            return;
        }
        let what = marks.told_what.lock();
        let what = what.unwrap_or_else(PoisonError::into_inner).clone();
        let mut stall = marks.stall(since, what);
        stall.is_over = true;
        stall.report = report();
        let reporter = &marks.reporter;
        reporter.speak(reporter.lock(), |then| reporter::tell(then, stall, |_| ()));
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        thread::forget(&self.0);
        self.0.reporter.wait_for_silence();
    }
}

/// The watchdog's side.
impl Marks {
    /// Tells that the loop has been busy since `since`, unless it is busy no longer.
    pub(super) fn report_stall(self: &Arc<Self>, since: u64) {
        let what = describe(self.what.load(Ordering::Relaxed), self.site.get());
        let told = self.told_what.lock();
        what.clone_into(&mut told.unwrap_or_else(PoisonError::into_inner));
        // Under the lock, so that the end of the period is told after this.
        let words = self.reporter.lock();
        self.told.store(since, Ordering::SeqCst);
        let is_over = self.since.load(Ordering::SeqCst) != since;
        if is_over && self.take_told(since) {
            // The loop has not seen it, and tells no end.
            return;
        }
        let (marks, stall) = (self.clone(), self.stall(since, what));
        self.reporter.speak(words, move |then| {
            reporter::tell(then, stall, |stall| marks.add_stack(stall, since));
        });
    }

    /// Returns whether the period that began at `since` was told, and forgets it.
    fn take_told(&self, since: u64) -> bool {
        let taken = self
            .told
            .compare_exchange(since, 0, Ordering::SeqCst, Ordering::SeqCst);
        taken.is_ok()
    }

    fn stall(&self, since: u64, what: String) -> Stall {
        Stall {
            took: Duration::from_nanos(now().saturating_sub(since)),
            what,
            thread: self.thread_name.clone(),
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

fn code_of(activity: Activity, origin: Origin) -> u64 {
    match activity {
        Activity::Poll(id) => id << BITS | POLL,
        Activity::Main => MAIN,
        Activity::Tick => TICK,
        Activity::Microtask => MICROTASK,
        Activity::Callback(phase) => {
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
    use crate::probe::{Activity, Origin};
    use std::panic::Location;

    #[test]
    fn what_runs_is_named_from_its_number() {
        let site = Some(Location::caller());
        let text = |activity, origin: Origin| {
            let text = describe(code_of(activity, origin), origin.site);
            text.split(" (").next().unwrap_or_default().to_owned()
        };
        let plain = Origin::at(site);
        assert_eq!(text(Activity::Poll(4711), plain), "task 4711");
        assert_eq!(text(Activity::Main, plain), "the main future");
        assert_eq!(text(Activity::Tick, plain), "a tick");
        assert_eq!(text(Activity::Microtask, plain), "a microtask");
        for phase in Phase::ALL {
            let name = format!("a callback in the {phase} phase");
            assert_eq!(text(Activity::Callback(phase), plain), name);
            for kind in Keeper::ALL {
                let name = format!("{kind} in the {phase} phase");
                let origin = Origin::new(kind, site);
                assert_eq!(text(Activity::Callback(phase), origin), name);
            }
        }
        assert_eq!(describe(0, None), "the loop itself");
        assert!(describe(1 << 3 | 1, site).contains("marks.rs:"));
    }
}
