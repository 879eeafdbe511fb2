//! The observers that the feature `probe` brings along: those that the program chooses, and those
//! that the environment asks for.

use std::rc::Rc;

use super::debug_log::{Areas, DebugLog};
use super::environment::Environment;
use super::observer::Observer;
use super::recorder::Recorder;
use super::switch::Probe;
use super::trace_file::{Timeline, TraceFile};
#[cfg(feature = "tracing")]
use super::traced::Traced;
use super::watchdog::{Marker, Watchdog};

#[derive(Default)]
pub(crate) struct BuiltIn {
    pub(crate) recorder: Option<Recorder>,
    pub(crate) watchdog: Option<Watchdog>,
    /// Returns the report of the current loop, for the watchdog.
    report: Option<fn() -> String>,
    #[cfg(feature = "tracing")]
    pub(crate) is_traced: bool,
    /// Whether the variables `PHASELOOP_*` have no effect.
    pub(crate) ignores_environment: bool,
}

impl BuiltIn {
    /// Sets what returns the report of the current loop.
    pub(crate) fn give_report(&mut self, report: fn() -> String) {
        self.report = Some(report);
    }

    /// Attaches all observers of a loop, at the time `now`.
    // The recorder is the last one: the time of the others is not that of the activities.
    pub(super) fn attach(mut self, observers: Vec<Rc<dyn Observer>>, probe: &Probe, now: u64) {
        let (areas, trace) = if self.ignores_environment {
            Default::default()
        } else {
            self.apply(Environment::of_process())
        };
        if !areas.is_empty() {
            probe.attach(Rc::new(DebugLog::new(areas)), now);
        }
        for observer in observers {
            probe.attach(observer, now);
        }
        #[cfg(feature = "tracing")]
        if self.is_traced {
            probe.attach(Rc::new(Traced::default()), now);
        }
        if let Some(watchdog) = self.watchdog {
            probe.attach(Rc::new(Marker::new(watchdog, self.report)), now);
        }
        if let Some((file, recorder)) = trace.zip(self.recorder.clone()) {
            probe.attach(Rc::new(Timeline { file, recorder }), now);
        }
        if self.recorder.is_some() {
            probe.record(self.recorder, now);
        }
    }

    /// Adds what the environment asks for. Returns the areas of the debug log, and the file for the
    /// timeline.
    fn apply(&mut self, environment: &Environment) -> (Areas, Option<TraceFile>) {
        let trace = environment.trace.as_deref().and_then(TraceFile::create);
        if trace.is_some() && self.recorder.is_none() {
            // The environment asked for a file, not for lines.
            self.recorder = Some(Recorder::new().on_slow(|_| ()));
        }
        if let Some(slow) = environment.slow {
            let recorder = self.recorder.take().unwrap_or_default();
            self.recorder = Some(recorder.slow(slow).print_each());
        }
        if let (None, Some(limit)) = (&self.watchdog, environment.watchdog) {
            self.watchdog = Some(Watchdog::new(limit));
        }
        (environment.debug, trace)
    }

    /// Returns the signal on which the environment asks for a report, and the file of the report.
    #[cfg(feature = "signal")]
    pub(super) fn report_on(&self) -> Option<(i32, Option<std::path::PathBuf>)> {
        let environment = (!self.ignores_environment).then(Environment::of_process)?;
        environment.report.clone()
    }
}
