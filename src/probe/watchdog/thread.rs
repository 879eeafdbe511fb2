//! The watchdog's thread: one for all loops of the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::marks::{Marks, now};
use crate::stderr;

/// A loop is looked at this often within its limit.
const LOOKS: u64 = 4;

/// A loop that is asked for a report and does not answer for so long is stuck, in nanoseconds.
const STUCK_AFTER: u64 = 1_000_000_000;

/// What the watchdog's thread knows of a loop.
struct Watched {
    marks: Arc<Marks>,
    /// The busy period that was reported last, and how often.
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

/// Begins to watch a loop, which may be busy for `limit` nanoseconds.
pub(super) fn watch(marks: Arc<Marks>, limit: u64) {
    let mut house = house();
    house.watched.push(Watched::new(marks, limit));
    if house.has_thread {
        return;
    }
    let thread = std::thread::Builder::new().name("phaseloop-watchdog".to_owned());
    match thread.spawn(watch_all) {
        Ok(_) => house.has_thread = true,
        Err(error) => {
            drop(house);
            stderr::print(format_args!(
                "phaseloop: no thread for the watchdog: {error}"
            ));
        }
    }
}

/// Ends watching a loop.
pub(super) fn forget(marks: &Arc<Marks>) {
    let is_other = |watched: &Watched| !Arc::ptr_eq(&watched.marks, marks);
    house().watched.retain(is_other);
    BELL.notify_one();
}

/// Wakes the thread if it waits for a loop to become busy.
pub(super) fn wake_if_asleep() {
    if IS_ASLEEP.load(Ordering::SeqCst) {
        wake();
    }
}

fn wake() {
    // The lock is taken so that the thread is either before its check or inside the wait.
    drop(house());
    BELL.notify_one();
}

impl Watched {
    fn new(marks: Arc<Marks>, limit: u64) -> Self {
        Self {
            marks,
            period: 0,
            times: 0,
            asked_since: None,
            limit,
        }
    }

    /// Returns the busy period that is to be reported now, if any.
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
        let is_due = took >= self.limit_after(self.times);
        while took >= self.limit_after(self.times) && self.times < 40 {
            self.times += 1;
        }
        let is_unanswered = self.is_unanswered(now);
        (is_due || is_unanswered).then_some(since)
    }

    /// Returns how long the watchdog may wait until it looks again, in nanoseconds: at most until
    /// the busy period is to be reported, so that it is reported then and not up to a pause later.
    fn pause(&self, now: u64) -> u64 {
        let limit = match self.marks.is_asked.get() {
            Some(_) => self.limit.min(STUCK_AFTER),
            None => self.limit,
        };
        let since = self.marks.since.load(Ordering::Relaxed);
        let times = if self.period == since { self.times } else { 0 };
        let report_at = since.saturating_add(self.limit_after(times));
        (limit / LOOKS).min(report_at.saturating_sub(now))
    }

    /// Returns after how long a busy period is reported that was reported so many times.
    fn limit_after(&self, times: u32) -> u64 {
        self.limit.saturating_mul(1 << times.min(40))
    }

    /// Returns whether a signal has waited for an answer for too long, once for each signal.
    fn is_unanswered(&mut self, now: u64) -> bool {
        let is_asked = self.marks.is_asked.get().is_some_and(|is_asked| is_asked());
        if !is_asked {
            self.asked_since = None;
            return false;
        }
        let since = *self.asked_since.get_or_insert(now);
        let is_late = since != u64::MAX && now.saturating_sub(since) >= STUCK_AFTER;
        if is_late {
            self.asked_since = Some(u64::MAX);
        }
        is_late
    }
}

/// Watches the loops until none is left.
fn watch_all() {
    let mut house = house();
    while !house.watched.is_empty() {
        let is_busy = |one: &&Watched| one.marks.since.load(Ordering::SeqCst) != 0;
        let pauses = house.watched.iter().filter(is_busy);
        let looked_at = now();
        let pauses = pauses.map(|one| one.pause(looked_at));
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
                marks.report_stall(since);
            }
            house = self::house();
        }
    }
    house.has_thread = false;
}

#[cfg(test)]
mod tests {
    use super::{STUCK_AFTER, Watched};
    use crate::probe::observer::Observer as _;
    use crate::probe::watchdog::{Marker, Watchdog};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    const LIMIT: u64 = 1_000_000;

    /// The marks of a loop, which the test sets, and what the watchdog knows of them.
    /// The limit in the list of the process is never reached.
    fn watched() -> (Marker, Watched) {
        let marker = Marker::new(Watchdog::new(Duration::from_secs(86_400)), None, None);
        let watched = Watched::new(marker.marks.clone(), LIMIT);
        (marker, watched)
    }

    #[test]
    fn a_stall_is_reported_at_the_limit_and_at_two_four_eight_times_of_it() {
        let (marker, mut watched) = watched();
        marker.marks.since.store(10, Ordering::Relaxed);
        let reported: Vec<u64> = (0..20)
            .filter(|look| watched.look(10 + look * LIMIT / 2).is_some())
            .collect();
        assert_eq!(reported, [2, 4, 8, 16]);
        // Another busy period begins from the limit.
        let later = 100 * LIMIT;
        marker.marks.since.store(later, Ordering::Relaxed);
        assert_eq!(watched.look(later + LIMIT - 1), None);
        assert_eq!(watched.look(later + LIMIT), Some(later));
        // A look that comes late reports once.
        assert_eq!(watched.look(later + 50 * LIMIT), Some(later));
        assert_eq!(watched.look(later + 51 * LIMIT), None);
    }

    #[test]
    fn the_next_look_is_not_later_than_the_limit() {
        let (marker, mut watched) = watched();
        let since = 10;
        marker.marks.since.store(since, Ordering::Relaxed);
        assert_eq!(watched.pause(since), LIMIT / 4);
        assert_eq!(watched.pause(since + LIMIT - 7), 7);
        assert_eq!(watched.pause(since + LIMIT + 7), 0);
        assert!(watched.look(since + LIMIT).is_some());
        assert_eq!(watched.pause(since + LIMIT), LIMIT / 4);
        assert_eq!(watched.pause(since + 2 * LIMIT - 7), 7);
    }

    #[test]
    fn a_loop_that_waits_is_not_stuck() {
        let (marker, mut watched) = watched();
        assert_eq!(watched.look(u64::MAX), None);
        marker.begin_busy(0);
        assert!(watched.look(u64::MAX).is_some());
        marker.marks.since.store(0, Ordering::Relaxed);
        assert_eq!(watched.look(u64::MAX), None);
    }

    #[test]
    fn a_signal_without_an_answer_is_reported_after_a_second_once() {
        let (marker, mut watched) = watched();
        watched.limit = u64::MAX;
        let is_asked = Arc::new(AtomicBool::new(false));
        let asked = is_asked.clone();
        let asks: Arc<dyn Fn() -> bool + Send + Sync> =
            Arc::new(move || asked.load(Ordering::Relaxed));
        marker.reports_on_signal(&asks);
        marker.marks.since.store(1, Ordering::Relaxed);
        assert_eq!(watched.look(5), None);
        is_asked.store(true, Ordering::Relaxed);
        assert_eq!(watched.look(10), None);
        assert_eq!(watched.look(10 + STUCK_AFTER), Some(1));
        assert_eq!(watched.look(10 + 9 * STUCK_AFTER), None);
        is_asked.store(false, Ordering::Relaxed);
        assert_eq!(watched.look(10 + 10 * STUCK_AFTER), None);
        is_asked.store(true, Ordering::Relaxed);
        assert_eq!(watched.look(20 * STUCK_AFTER), None);
        assert_eq!(watched.look(21 * STUCK_AFTER), Some(1));
    }
}
