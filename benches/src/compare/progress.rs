//! A line on the terminal: percent, time left, what is measured. Nothing where there is no terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::Instant;

/// After so many expected seconds the pace of this machine is known.
const PACE_AFTER: f64 = 5.0;

pub(crate) struct Progress {
    /// Seconds that all steps are expected to take.
    expected: f64,
    state: Mutex<State>,
}

struct State {
    start: Instant,
    /// Expected seconds of the steps that were begun before this one.
    passed: f64,
    /// Expected seconds of this one.
    under_way: f64,
}

impl Progress {
    pub(crate) fn new(expected: f64) -> Self {
        Self {
            expected,
            state: Mutex::new(State {
                start: Instant::now(),
                passed: 0.0,
                under_way: 0.0,
            }),
        }
    }

    /// One more is begun, which is expected to take so many seconds.
    pub(crate) fn step(&self, name: &str, seconds: f64) {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        state.passed += state.under_way;
        state.under_way = seconds;
        let elapsed = state.start.elapsed().as_secs_f64();
        let pace = if state.passed < PACE_AFTER {
            1.0
        } else {
            elapsed / state.passed
        };
        let left = pace * (self.expected - state.passed).max(0.0);
        let percent = 100.0 * state.passed / self.expected.max(f64::MIN_POSITIVE);
        let line = format!("{percent:3.0} %, {} left: {name}", duration(left));
        // Nothing depends on what is shown here.
        if is_shown() {
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// All is done. How long it took.
    pub(crate) fn end(self) -> f64 {
        if is_shown() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        state.start.elapsed().as_secs_f64()
    }
}

/// Whether the output is a terminal.
pub(crate) fn is_shown() -> bool {
    io::stderr().is_terminal()
}

/// In words, as exact as an estimate can be.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 200.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}
