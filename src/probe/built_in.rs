//! The observers that the feature `probe` brings along: those that the program chooses, and those
//! that the environment asks for.

use std::path::Path;
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
use crate::clock::Clock;

#[derive(Default)]
pub(crate) struct BuiltIn {
    pub(crate) recorder: Option<Recorder>,
    pub(crate) watchdog: Option<Watchdog>,
    /// Returns the report of the current loop, for the watchdog.
    report: Option<fn() -> String>,
    #[cfg(feature = "tracing")]
    pub(crate) is_traced: bool,
    /// The index of the loop among several, and the timeline of all.
    #[cfg(feature = "cluster")]
    pub(crate) joint: Option<(u32, super::JointTrace)>,
    /// Whether the variables `PHASELOOP_*` have no effect.
    pub(crate) ignores_environment: bool,
}

impl BuiltIn {
    /// Sets what returns the report of the current loop.
    pub(crate) fn give_report(&mut self, report: fn() -> String) {
        self.report = Some(report);
    }

    /// Attaches all observers of a loop.
    // The recorder is the last one: the time of the others is not that of the activities.
    pub(super) fn attach(mut self, observers: Vec<Rc<dyn Observer>>, probe: &Probe, clock: &Clock) {
        let (now, index) = (clock.read(), self.index());
        let (areas, trace) = if self.ignores_environment {
            Default::default()
        } else {
            self.apply(Environment::of_process(), clock)
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
            probe.attach(Rc::new(Marker::new(watchdog, self.report, index)), now);
        }
        if let Some((file, recorder)) = trace.zip(self.recorder.clone()) {
            probe.attach(Rc::new(Timeline { file, recorder }), now);
        }
        if let Some(recorder) = &self.recorder {
            recorder.set_index(index);
        }
        if self.recorder.is_some() {
            probe.record(self.recorder, now);
        }
    }

    /// Adds what the environment asks for. Returns the areas of the debug log, and the file for the
    /// timeline.
    fn apply(&mut self, environment: &Environment, clock: &Clock) -> (Areas, Option<TraceFile>) {
        let trace = environment.trace.as_deref();
        let trace = trace.and_then(|pattern| self.create_trace(pattern, clock));
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

    #[cfg(feature = "cluster")]
    fn create_trace(&self, pattern: &Path, clock: &Clock) -> Option<TraceFile> {
        match &self.joint {
            Some((index, joint)) => joint.part(*index, pattern, clock.instant(0)),
            None => TraceFile::create(pattern),
        }
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, reason = "a loop is one of several by a feature")]
    fn create_trace(&self, pattern: &Path, _: &Clock) -> Option<TraceFile> {
        TraceFile::create(pattern)
    }

    /// Returns the index of the loop among several.
    fn index(&self) -> Option<u32> {
        #[cfg(feature = "cluster")]
        let index = self.joint.as_ref().map(|(index, _)| *index);
        #[cfg(not(feature = "cluster"))]
        let index = None;
        index
    }

    /// Returns the signal on which the environment asks for a report, and the file of the report.
    #[cfg(feature = "signal")]
    pub(super) fn report_on(&self) -> Option<(i32, Option<std::path::PathBuf>)> {
        let environment = (!self.ignores_environment).then(Environment::of_process)?;
        environment.report.clone()
    }
}
