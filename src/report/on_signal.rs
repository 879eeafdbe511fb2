//! A report on a signal: what a program that hangs prints when it is asked.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::panic::Location;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::io::signals::Listener;
use crate::event_loop::ledger::handles::Header;
use crate::keeper::Keeper;
use crate::probe::{Flush, OfLoop};
use crate::report::full_report;
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
            start: report_on,
        }
    }

    /// The environment asks. What it asks in vain is one line on standard error.
    pub(crate) fn by_environment((signal, file): (i32, Option<PathBuf>)) -> Self {
        let start = |core: &Core, how: Self| {
            if let Err(error) = report_on(core, how) {
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
    pub(crate) fn start(self, core: &Core) -> io::Result<()> {
        (self.start)(core, self)
    }
}

/// Prints a report whenever the signal arrives. It neither keeps the loop alive nor is it a
/// handle of the loop.
#[inline]
fn report_on(core: &Core, how: ReportOn) -> io::Result<()> {
    let header = Header::new(Keeper::Signal, Location::caller(), u64::MAX);
    let listener = Listener::new(Rc::new(header));
    let signal = how.signal;
    let none = listener.callback.set(Box::new(move || {
        current::if_any(|core| answer(core, &how));
    }));
    debug_assert!(none.is_none(), "the listener is new");
    core.start_signal(&listener, signal, false)?;
    if let Some(caught) = core.io.caught_signals() {
        let is_asked = move || caught.has_pending();
        let is_asked: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(is_asked);
        core.executor.probe.reports_on_signal(&is_asked);
    }
    Ok(())
}

#[inline]
fn answer(core: &Core, how: &ReportOn) {
    core.executor.probe.flush(Flush::Report);
    let signal = sys::signal::name(how.signal)
        .map_or_else(|| format!("signal {}", how.signal), ToOwned::to_owned);
    let text = format!(
        "phaseloop: {}report of process {} on {signal}:\n{}{}",
        OfLoop(core.executor.shared.index),
        std::process::id(),
        full_report(core),
        core.counters.metrics(&core.executor).summary(),
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
