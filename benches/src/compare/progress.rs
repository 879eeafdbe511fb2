//! A line on the terminal that says how far it is; lines now and then where there is no terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) struct Progress {
    what: &'static str,
    total: usize,
    state: Mutex<State>,
}

struct State {
    done: usize,
    start: Instant,
    said: Option<Instant>,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: usize) -> Self {
        Self {
            what,
            total,
            state: Mutex::new(State {
                done: 0,
                start: Instant::now(),
                said: None,
            }),
        }
    }

    /// One more is begun.
    pub(crate) fn step(&self, name: &str) {
        let mut state = self.state.lock().expect("nobody panics under it");
        let (what, total) = (self.what, self.total);
        let left = match state.done {
            0 => String::new(),
            done => {
                let left = state.start.elapsed() / done as u32 * (total - done) as u32;
                format!(", {} s left", left.as_secs())
            }
        };
        state.done += 1;
        let line = format!("{what} {}/{total}{left}: {name}", state.done);
        let mut stderr = io::stderr();
        // Nothing depends on what is shown here.
        if stderr.is_terminal() {
            let _ = write!(stderr, "\r\x1b[K{line}");
            if state.done == total {
                let _ = writeln!(stderr);
            }
        } else if state
            .said
            .is_none_or(|said| said.elapsed() > Duration::from_secs(10))
        {
            let _ = writeln!(stderr, "{line}");
            state.said = Some(Instant::now());
        }
    }
}
