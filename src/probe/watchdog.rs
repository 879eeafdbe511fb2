//! The watchdog: a thread that sees a loop which does not come back to the kernel.
//!
//! ```text
//!   loop      ── busy ────────────────────────────────────────> waits
//!                 since = now                                    since = 0; was it told? "over"
//!   watchdog  ── every quarter of the limit: since + limit < now? ──> tells, with the stack
//! ```
//!
//! A loop publishes three numbers: since when it is busy, and the line and the number of what runs.
//! One thread serves all loops of the process. It is asleep while all of them wait: a loop that
//! becomes busy wakes it, and it goes back to sleep when it finds them waiting.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::switch::{Activity, Origin};
use crate::clock::nanoseconds;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::sys::clock::Counter;
use crate::sys::stall::{AtomicSite, Thread, stack_of, warm_up};

/// A loop is looked at this often within its limit.
const LOOKS: u64 = 4;

/// A loop that is asked for a report and does not answer for so long is stuck, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// Tells when a loop is stuck: when it has not asked the kernel for events for longer than a limit.
///
/// [`Builder::watchdog`](crate::Builder::watchdog) attaches it to a loop, and so does the
/// environment variable `PHASELOOP_WATCHDOG=50ms` in any program. A stall is told while it lasts:
/// at the limit, then at 2, 4, 8 … times the limit, with the line of the task or callback that runs
/// and, with the feature `stacks`, the stack of the loop's thread. When the stall is over, the loop
/// itself tells so, with its [report](crate::LoopHandle::report) and, if there is a
/// [`Recorder`](crate::observe::Recorder), the blame.
///
/// One thread of the process watches all loops. It is asleep while the loops wait for events.
///
/// # The stack
///
/// The stack is read by a signal, SIGURG, to the loop's thread. A blocking system call of the
/// program may return `EINTR` because of it, and a listener to SIGURG receives it. It is read on
/// Linux with glibc; elsewhere a stall has no stack.
///
/// # Examples
///
/// ```
/// use std::{sync::mpsc, thread, time::Duration};
/// use phaseloop::{Builder, observe::Watchdog};
///
/// # fn main() -> std::io::Result<()> {
/// let (send, stalls) = mpsc::channel();
/// let watchdog = Watchdog::new(Duration::from_millis(20)).then(move |stall| {
///     let _ = send.send(stall.to_string());
/// });
/// let mut event_loop = Builder::new().watchdog(watchdog).build()?;
/// event_loop.block_on(async {
///     // Blocks the loop until the watchdog has seen it.
///     let stall = stalls.recv().unwrap();
///     assert!(stall.starts_with("phaseloop: stall: "), "{stall}");
/// });
/// # Ok(())
/// # }
/// ```
#[must_use = "a watchdog watches once it is attached to a loop"]
pub struct Watchdog {
    limit: Duration,
    stack: bool,
    then: Option<Listener>,
}

type Listener = Box<dyn FnMut(&Stall) + Send>;

impl Watchdog {
    /// Creates a watchdog for loops that are busy for longer than `limit`. A limit below a
    /// microsecond is a microsecond.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit: limit.max(Duration::from_micros(1)),
            stack: true,
            then: None,
        }
    }

    /// Sets whether the stack of the loop's thread is told, where it can be read. The default is
    /// `true`.
    pub fn stack(self, on: bool) -> Self {
        Self { stack: on, ..self }
    }

    /// Calls `f` for each stall in place of the lines on standard error: on the watchdog's thread
    /// while it lasts, on the loop's thread when it is over.
    pub fn then(self, f: impl FnMut(&Stall) + Send + 'static) -> Self {
        Self {
            then: Some(Box::new(f)),
            ..self
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("limit", &self.limit)
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}

/// A loop that is stuck, or was. It prints as a [`Watchdog`] prints it on standard error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// How long the loop has been busy.
    pub took: Duration,
    /// What runs, or ran when the stall was told last: the number of a task or the kind of a
    /// callback, and its line.
    pub what: String,
    /// The functions on the stack of the loop's thread, innermost first, from the one that blocks
    /// to the task or callback. It is empty if the stack cannot be read.
    pub stack: Vec<String>,
    /// Whether the stall is over.
    pub is_over: bool,
    /// The report of the loop, and the blame if there is a recorder, when the stall is over.
    pub report: String,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { took, what, .. } = self;
        if self.is_over {
            return write!(
                f,
                "phaseloop: stall: over after {took:.1?}: {what}\n{}",
                self.report
            );
        }
        writeln!(f, "phaseloop: stall: {took:.1?} so far: {what}")?;
        let mut stack = self.stack.iter();
        stack.try_for_each(|function| writeln!(f, "  in {function}"))
    }
}

/// What a loop publishes of itself, and how its stalls are told.
pub(crate) struct Marks {
    /// Since when the loop is busy, on the clock of [`now`]; zero while it waits or does not run.
    since: AtomicU64,
    /// The line of what runs.
    site: AtomicSite,
    /// What runs, as [`code_of`] writes it.
    what: AtomicU64,
    /// The beginning of the busy period that was told, or zero.
    told: AtomicU64,
    /// What ran when it was told last.
    told_what: Mutex<String>,
    thread: Thread,
    has_stack: bool,
    then: Mutex<Option<Listener>>,
    /// Returns whether a signal asks for a report, and the loop has not answered.
    is_asked: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// The marks of a loop, in its probe. The drop takes the loop off the watchdog's list.
pub(crate) struct Marker(Arc<Marks>);

/// What ran before an activity began inside it.
pub(crate) struct Before {
    site: Option<Site>,
    what: u64,
}

/// What the watchdog's thread knows of a loop.
struct Watched {
    marks: Arc<Marks>,
    /// The busy period that was told last, and how often.
    period: u64,
    times: u32,
    /// When the loop was first seen not to answer.
    asked_since: Option<u64>,
    limit: u64,
}

#[derive(Default)]
struct House {
    watched: Vec<Watched>,
    has_thread: bool,
}

static HOUSE: Mutex<House> = Mutex::new(House {
    watched: Vec::new(),
    has_thread: false,
});

/// Wakes the watchdog's thread.
static BELL: Condvar = Condvar::new();

/// Whether the thread waits for a loop to become busy.
static IS_ASLEEP: AtomicBool = AtomicBool::new(false);

fn house() -> MutexGuard<'static, House> {
    HOUSE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the time on a clock that all threads share, in nanoseconds. It is never zero.
fn now() -> u64 {
    static CLOCK: OnceLock<Counter> = OnceLock::new();
    CLOCK.get_or_init(Counter::new).nanoseconds().max(1)
}

/// The loop's side.
impl Marker {
    /// Begins to watch the loop of this thread.
    pub(crate) fn new(watchdog: Watchdog) -> Self {
        let marks = Arc::new(Marks {
            since: AtomicU64::new(0),
            site: AtomicSite::new(),
            what: AtomicU64::new(0),
            told: AtomicU64::new(0),
            told_what: Mutex::default(),
            thread: Thread::this(),
            has_stack: watchdog.stack,
            then: Mutex::new(watchdog.then),
            is_asked: OnceLock::new(),
        });
        let mut house = house();
        house.watched.push(Watched {
            marks: marks.clone(),
            period: 0,
            times: 0,
            asked_since: None,
            limit: nanoseconds(watchdog.limit),
        });
        if !house.has_thread {
            let thread = std::thread::Builder::new().name("phaseloop-watchdog".to_owned());
            match thread.spawn(watch) {
                Ok(_) => house.has_thread = true,
                Err(error) => eprintln!("phaseloop: no thread for the watchdog: {error}"),
            }
        }
        drop(house);
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
        if IS_ASLEEP.load(Ordering::SeqCst) {
            wake();
        }
    }

    /// Notes that the loop waits, or that its run has ended.
    pub(crate) fn rest(&self) {
        self.0.since.store(0, Ordering::Relaxed);
    }

    /// Tells that a stall is over, if the busy period that ends was told.
    pub(crate) fn end_period(&self, report: &dyn Fn() -> String) {
        let marks = &self.0;
        let since = marks.since.load(Ordering::Relaxed);
        let told = marks.told.load(Ordering::Acquire);
        if told == 0 || told != since {
            return;
        }
        let took = Duration::from_nanos(now() - since);
        // The watchdog must not tell this period once more.
        self.rest();
        marks.told.store(0, Ordering::Relaxed);
        let what = marks.told_what.lock();
        let what = what.unwrap_or_else(PoisonError::into_inner).clone();
        marks.tell(&Stall {
            took,
            what,
            stack: Vec::new(),
            is_over: true,
            report: report(),
        });
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        let mut house = house();
        house
            .watched
            .retain(|watched| !Arc::ptr_eq(&watched.marks, &self.0));
        drop(house);
        BELL.notify_one();
    }
}

#[cold]
fn wake() {
    // The lock is taken so that the thread is either before its check or inside the wait.
    drop(house());
    BELL.notify_one();
}

/// The watchdog's side.
impl Marks {
    /// Tells that the loop has been busy since `since`.
    fn tell_stall(&self, since: u64) {
        let what = describe(self.what.load(Ordering::Relaxed), self.site.get());
        let mut told_what = self
            .told_what
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        what.clone_into(&mut told_what);
        drop(told_what);
        // From here on the loop tells the end.
        self.told.store(since, Ordering::Release);
        let stack = self.has_stack.then(|| stack_of(self.thread));
        let took = Duration::from_nanos(now() - since);
        if self.since.load(Ordering::Relaxed) != since {
            // It is over, and the stack is not that of the stall.
            return;
        }
        let stack = stack.map(|stack| stack.functions());
        self.tell(&Stall {
            took,
            what,
            stack: stack.unwrap_or_default(),
            is_over: false,
            report: String::new(),
        });
    }

    fn tell(&self, stall: &Stall) {
        let mut then = self.then.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *then {
            // A panic of user code must not end the watchdog, nor the loop.
            Some(then) => drop(catch_unwind(AssertUnwindSafe(|| then(stall)))),
            None => eprint!("{stall}"),
        }
    }
}

impl Watched {
    /// Returns the busy period that is to be told now, if any.
    fn look(&mut self, now: u64) -> Option<u64> {
        let since = self.marks.since.load(Ordering::Relaxed);
        if since == 0 {
            self.asked_since = None;
            return None;
        }
        if self.period != since {
            (self.period, self.times) = (since, 0);
        }
        let took = now.saturating_sub(since);
        let limit = |times: u32| self.limit.saturating_mul(1 << times.min(40));
        let is_due = took >= limit(self.times);
        while took >= limit(self.times) && self.times < 40 {
            self.times += 1;
        }
        let is_unanswered = self.is_unanswered(now);
        (is_due || is_unanswered).then_some(since)
    }

    /// Returns how long the watchdog may wait until it looks again, in nanoseconds.
    fn pause(&self) -> u64 {
        let limit = match self.marks.is_asked.get() {
            Some(_) => self.limit.min(PATIENCE),
            None => self.limit,
        };
        limit / LOOKS
    }

    /// Returns whether a signal has waited for an answer for too long, once for each signal.
    fn is_unanswered(&mut self, now: u64) -> bool {
        let is_asked = self.marks.is_asked.get().is_some_and(|is_asked| is_asked());
        if !is_asked {
            self.asked_since = None;
            return false;
        }
        let since = *self.asked_since.get_or_insert(now);
        let is_late = since != u64::MAX && now.saturating_sub(since) >= PATIENCE;
        if is_late {
            self.asked_since = Some(u64::MAX);
        }
        is_late
    }
}

/// Watches the loops until none is left.
fn watch() {
    warm_up();
    let mut house = house();
    while !house.watched.is_empty() {
        let is_busy = |one: &&Watched| one.marks.since.load(Ordering::SeqCst) != 0;
        let pauses = house.watched.iter().filter(is_busy);
        let pauses = pauses.map(Watched::pause);
        let Some(pause) = pauses.min() else {
            IS_ASLEEP.store(true, Ordering::SeqCst);
            if !house.watched.iter().any(|one| is_busy(&one)) {
                house = BELL.wait(house).unwrap_or_else(PoisonError::into_inner);
            }
            IS_ASLEEP.store(false, Ordering::SeqCst);
            continue;
        };
        let pause = Duration::from_nanos(pause.max(1_000));
        let waited = BELL.wait_timeout(house, pause);
        house = waited.unwrap_or_else(PoisonError::into_inner).0;
        let now = now();
        let due: Vec<_> = house
            .watched
            .iter_mut()
            .filter_map(|one| Some((one.look(now)?, one.marks.clone())))
            .collect();
        if !due.is_empty() {
            // User code and the reading of a stack take time; loops come and go meanwhile.
            drop(house);
            for (since, marks) in due {
                marks.tell_stall(since);
            }
            house = self::house();
        }
    }
    house.has_thread = false;
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
    use super::{Marker, PATIENCE, Watchdog, Watched, code_of, describe};
    use crate::keeper::Keeper;
    use crate::phase_order::Phase;
    use crate::probe::{Activity, Origin};
    use std::panic::Location;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    const LIMIT: u64 = 1_000_000;

    /// The marks of a loop, which the test changes by hand, and what the watchdog knows of them.
    /// The limit in the list of the process is never reached.
    fn watched() -> (Marker, Watched) {
        let marker = Marker::new(Watchdog::new(Duration::from_secs(86_400)));
        let watched = Watched {
            marks: marker.0.clone(),
            period: 0,
            times: 0,
            asked_since: None,
            limit: LIMIT,
        };
        (marker, watched)
    }

    #[test]
    fn a_stall_is_told_at_the_limit_and_at_two_four_eight_times_of_it() {
        let (marker, mut watched) = watched();
        marker.0.since.store(10, Ordering::Relaxed);
        let told: Vec<u64> = (0..20)
            .filter(|look| watched.look(10 + look * LIMIT / 2).is_some())
            .collect();
        assert_eq!(told, [2, 4, 8, 16]);
        // Another busy period begins from the limit.
        let later = 100 * LIMIT;
        marker.0.since.store(later, Ordering::Relaxed);
        assert_eq!(watched.look(later + LIMIT - 1), None);
        assert_eq!(watched.look(later + LIMIT), Some(later));
        // A look that comes late tells once.
        assert_eq!(watched.look(later + 50 * LIMIT), Some(later));
        assert_eq!(watched.look(later + 51 * LIMIT), None);
    }

    #[test]
    fn a_loop_that_waits_is_not_stuck() {
        let (marker, mut watched) = watched();
        assert_eq!(watched.look(u64::MAX), None);
        marker.begin_period();
        assert!(watched.look(u64::MAX).is_some());
        marker.rest();
        assert_eq!(watched.look(u64::MAX), None);
    }

    #[test]
    fn a_signal_without_an_answer_is_told_after_a_second_once() {
        let (marker, mut watched) = watched();
        watched.limit = u64::MAX;
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = is_asked.clone();
        marker.answers(Box::new(move || asked.load(Ordering::Relaxed)));
        marker.0.since.store(1, Ordering::Relaxed);
        assert_eq!(watched.look(5), None);
        is_asked.store(true, Ordering::Relaxed);
        assert_eq!(watched.look(10), None);
        assert_eq!(watched.look(10 + PATIENCE), Some(1));
        assert_eq!(watched.look(10 + 9 * PATIENCE), None);
        is_asked.store(false, Ordering::Relaxed);
        assert_eq!(watched.look(10 + 10 * PATIENCE), None);
        is_asked.store(true, Ordering::Relaxed);
        assert_eq!(watched.look(20 * PATIENCE), None);
        assert_eq!(watched.look(21 * PATIENCE), Some(1));
    }

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
        assert!(describe(1 << 3 | 1, site).contains("watchdog.rs:"));
    }
}
