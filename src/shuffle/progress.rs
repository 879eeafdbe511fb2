//! A line on the terminal during a long exploration.

use std::time::{Duration, Instant};

use crate::stderr;
use crate::sys::clock;

/// A shorter exploration prints nothing.
const LONG: Duration = Duration::from_secs(1);

/// The line changes at most so often.
const EVERY: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    /// The number of schedules; for a search of an unknown size the most that it may run.
    total: u64,
    start: Instant,
    /// When the line was printed; `None` as long as it was not, and where there is no terminal.
    printed: Option<Instant>,
    is_terminal: bool,
}

impl Progress {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            start: clock::monotonic(),
            printed: None,
            is_terminal: stderr::is_terminal(),
        }
    }

    /// So many schedules have run.
    pub(super) fn show(&mut self, done: u64) {
        if !self.is_terminal {
            return;
        }
        let now = clock::monotonic();
        let is_due = self.printed.is_none_or(|at| now - at >= EVERY);
        let elapsed = now - self.start;
        if elapsed >= LONG && is_due {
            stderr::write(&format!("\r\x1b[K{}", line(done, self.total, elapsed)));
            self.printed = Some(now);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.printed.is_some() {
            stderr::write("\r\x1b[K");
        }
    }
}

fn line(done: u64, total: u64, elapsed: Duration) -> String {
    let share = done as f64 / total.max(1) as f64;
    let left = elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share.max(f64::MIN_POSITIVE);
    let percent = 100.0 * share.min(1.0);
    format!("phaseloop: {done} of {total} schedules, {percent:.0} %, {left:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_percent_and_time_left() {
        let text = line(50, 200, Duration::from_secs(10));
        assert_eq!(text, "phaseloop: 50 of 200 schedules, 25 %, 30 s left");
        let text = line(200, 200, Duration::from_secs(10));
        assert!(text.ends_with("100 %, 0 s left"), "{text}");
    }

    #[test]
    fn nothing_is_printed_where_there_is_no_terminal() {
        let mut progress = Progress::new(2);
        progress.is_terminal = false;
        progress.start -= Duration::from_secs(60);
        progress.show(1);
        assert!(progress.printed.is_none());
    }
}
