//! How long a loop was active and how long idle, readable by any thread, also while the loop is
//! stuck.
//!
//! While a loop is busy, its idle time stands still and its active time passes; while it waits, the
//! other way round. So one of the two sums and the beginning of the run give both at any moment.
//! The loop stores one word when it begins to wait and one when it is back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::clock::Counter;

/// The loop is busy: `still` is the idle time, and `other` when the loop would have begun if it had
/// run without a pause.
const BUSY: u64 = 0;
/// The loop waits: `still` is the active time, and `other` is as above.
const WAITING: u64 = 1;
/// The loop does not run, or its clock does not: `still` is the active time, `other` the idle time.
const STOPPED: u64 = 2;
const STATE_BITS: u32 = 2;

pub(crate) struct Pace {
    counter: Counter,
    /// The sum that stands still, in nanoseconds, above the state.
    still: AtomicU64,
    other: AtomicU64,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            counter: Counter::new(),
            still: AtomicU64::new(STOPPED),
            other: AtomicU64::new(0),
        }
    }

    /// A run begins, or goes on: the loop was active and idle so long.
    pub(crate) fn begin_run(&self, active: u64, idle: u64) {
        let begun = self.counter.nanoseconds().wrapping_sub(active + idle);
        self.set(idle << STATE_BITS | BUSY, begun);
    }

    pub(crate) fn stop(&self, active: u64, idle: u64) {
        self.set(active << STATE_BITS | STOPPED, idle);
    }

    /// The loop begins to wait, and has been active so long.
    #[inline]
    pub(crate) fn begin_wait(&self, active: u64) {
        self.still
            .store(active << STATE_BITS | WAITING, Ordering::Relaxed);
    }

    /// The loop is back, and has been idle so long.
    #[inline]
    pub(crate) fn end_wait(&self, idle: u64) {
        self.still
            .store(idle << STATE_BITS | BUSY, Ordering::Relaxed);
    }

    fn set(&self, still: u64, other: u64) {
        // No reader takes the two words of different moments: it reads `still` again.
        self.still.store(u64::MAX, Ordering::SeqCst);
        self.other.store(other, Ordering::SeqCst);
        self.still.store(still, Ordering::SeqCst);
    }

    /// Returns the active and the idle time at this moment, in nanoseconds.
    pub(crate) fn read(&self) -> (u64, u64) {
        loop {
            let still = self.still.load(Ordering::SeqCst);
            let other = self.other.load(Ordering::SeqCst);
            let now = self.counter.nanoseconds();
            if still == u64::MAX || still != self.still.load(Ordering::SeqCst) {
                std::hint::spin_loop();
                continue;
            }
            let sum = still >> STATE_BITS;
            let passing = now.wrapping_sub(other).saturating_sub(sum);
            return match still & ((1 << STATE_BITS) - 1) {
                BUSY => (passing, sum),
                WAITING => (sum, passing),
                _ => (sum, other),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn one_sum_passes_and_the_other_stands_still() {
        let pace = Pace::new();
        assert_eq!(pace.read(), (0, 0));
        pace.begin_run(5, 7);
        let (active, idle) = pace.read();
        assert!(active >= 5 && idle == 7);
        thread::sleep(Duration::from_millis(1));
        assert!(
            pace.read().0 >= active + 1_000_000,
            "the active time passes"
        );
        pace.begin_wait(9);
        let (active, idle) = pace.read();
        assert!(active == 9 && idle >= 7, "{active} {idle}");
        pace.end_wait(11);
        assert_eq!(pace.read().1, 11);
        pace.stop(13, 11);
        assert_eq!((pace.read(), pace.read()), ((13, 11), (13, 11)));
    }

    #[test]
    fn a_reader_never_takes_two_words_of_different_moments() {
        let pace = Pace::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..50_000 {
                    pace.stop(i, i * 2);
                }
            });
            for _ in 0..50_000 {
                let (active, idle) = pace.read();
                assert_eq!(idle, active * 2);
            }
        });
    }
}
