//! A report on a signal: what a program that hangs prints when it is asked.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::panic::Location;
use std::path::PathBuf;
use std::rc::Rc;

use crate::event_loop::api::handle::Header;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::io::signals::Listener;
use crate::keeper::Keeper;
use crate::stderr;
use crate::sys;

/// The signal that asks for a report, and where the report goes.
#[derive(Clone, Debug)]
pub(crate) struct ReportOn {
    signal: i32,
    /// `None` for standard error. The file is appended to.
    file: Option<PathBuf>,
    /// A pointer: a program that never asks does not compile the reports.
    start: fn(&Core, Self) -> io::Result<()>,
}

impl ReportOn {
    /// The program asks.
    #[inline]
    pub(crate) fn new(signal: i32) -> Self {
        Self {
            signal,
            file: None,
            start: Core::report_on,
        }
    }

    /// The environment asks. What it asks in vain is one line on standard error.
    #[cfg(feature = "probe")]
    pub(in crate::event_loop) fn by_environment((signal, file): (i32, Option<PathBuf>)) -> Self {
        let start = |core: &Core, how: Self| {
            if let Err(error) = core.report_on(how) {
                stderr::print(format_args!("phaseloop: PHASELOOP_REPORT: {error}"));
            }
            Ok(())
        };
        Self {
            signal,
            file,
            start,
        }
    }

    /// Prints reports of the loop from now on.
    pub(in crate::event_loop) fn start(self, core: &Core) -> io::Result<()> {
        (self.start)(core, self)
    }
}

impl Core {
    /// Prints a report whenever the signal arrives. It neither keeps the loop alive nor is it a
    /// handle of the loop.
    #[inline]
    fn report_on(&self, how: ReportOn) -> io::Result<()> {
        let header = Header::new(Keeper::Signal, Location::caller(), u64::MAX);
        let listener = Listener::new(Rc::new(header));
        let signal = how.signal;
        let none = listener.callback.set(Box::new(move || {
            current::with(|core| {
                if let Some(core) = core {
                    core.answer(&how);
                }
            });
        }));
        debug_assert!(none.is_none(), "the listener is new");
        self.start_signal(&listener, signal, false)?;
        if let Some(caught) = self.caught_signals() {
            let is_asked = move || caught.has_pending();
            self.probe().answers(Box::new(is_asked));
        }
        Ok(())
    }

    #[inline]
    fn answer(&self, how: &ReportOn) {
        self.probe().write_trace();
        let signal = sys::signal::name(how.signal)
            .map_or_else(|| format!("signal {}", how.signal), ToOwned::to_owned);
        let text = format!(
            "phaseloop: report of process {} on {signal}:\n{}{}",
            std::process::id(),
            self.report_with_blame(),
            self.metrics().summary(),
        );
        let Some(path) = &how.file else {
            return stderr::write(&text);
        };
        let file = OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
            let path = path.display();
            stderr::print(format_args!("phaseloop: no report in {path}: {error}"));
        }
    }
}
