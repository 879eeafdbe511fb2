//! The probe without the feature `probe`: it has no sinks, and its guards do nothing.

use std::env;
use std::marker::PhantomData;
use std::sync::Once;

use super::area::Area;
use super::switch::{Activity, Modes, Origin};
use crate::clock::Clock;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::stderr;
use crate::sys::privilege;
use crate::task_info::Info;

/// The variables of `environment.rs`, which is not compiled.
const VARIABLES: [&str; 5] = [
    "PHASELOOP_TRACE",
    "PHASELOOP_SLOW",
    "PHASELOOP_WATCHDOG",
    "PHASELOOP_REPORT",
    "PHASELOOP_DEBUG",
];

/// Prints a line if the environment asks for what this program cannot do.
#[cold]
fn warn_of_variables() {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let names: Vec<_> = VARIABLES.into_iter().filter(is_set).collect();
    if !names.is_empty() && !privilege::is_elevated() {
        let names = names.join(", ");
        stderr::print(format_args!(
            "phaseloop: no effect of {names}: the program is built without the feature `probe` of phaseloop"
        ));
    }
}

/// A probe without sinks.
pub(crate) struct Probe;

/// The span between a start and its end; here it is empty.
pub(crate) struct Span<'a>(PhantomData<&'a ()>);

/// An activity that runs; here no sink hears of its end.
pub(crate) struct Running<'a>(PhantomData<&'a ()>);

/// An activity that is recorded; here there is no recorder.
pub(crate) struct Recording<'a>(PhantomData<&'a ()>);

impl Recording<'_> {
    pub(crate) fn finish(self) {}
}

/// The sinks of a loop that is being built: there are none.
pub(crate) struct Sinks;

impl Sinks {
    pub(crate) fn new() -> Self {
        Self
    }
}

#[expect(
    clippy::unused_self,
    reason = "the signatures are those of the probe with sinks"
)]
impl Probe {
    pub(crate) fn new(_: Sinks, _: &Modes, _: &Clock) -> Self {
        static WARNED: Once = Once::new();
        WARNED.call_once(warn_of_variables);
        Self
    }

    pub(crate) fn phase(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    pub(crate) fn callback(&self, _: Phase) -> Span<'_> {
        Span(PhantomData)
    }

    pub(crate) fn begin<'a>(
        &'a self,
        _: &Modes,
        _: &'a Clock,
        _: Activity,
        _: Origin,
        _: &dyn Fn() -> Option<Info>,
    ) -> Running<'a> {
        Running(PhantomData)
    }

    pub(crate) fn begin_poll(&self, _: u64) -> Option<u64> {
        None
    }

    pub(crate) fn end_poll(&self, _: u64, _: Site, _: u64, _: &Clock) {}

    pub(crate) fn recording<'a>(
        &'a self,
        _: &'a Clock,
        _: Activity,
        _: Origin,
    ) -> Option<Recording<'a>> {
        None
    }

    pub(crate) fn record_wake(&self, _: u64) {}

    pub(crate) fn write_trace(&self) {}

    pub(crate) fn wake(&self, _: u64, _: &dyn Fn() -> Option<(Info, Option<Info>)>) {}

    pub(crate) fn spawned(&self, _: &dyn Fn() -> Option<Info>) {}

    pub(crate) fn ended(&self, _: u64) {}

    pub(crate) fn armed(&self, _: Origin, _: &Clock) {}

    pub(crate) fn note(&self, _: Area, _: &dyn Fn() -> String) {}

    pub(crate) fn begin_run(&self, _: &Clock) {}

    pub(crate) fn begin_turn(&self, _: &Clock) {}

    pub(crate) fn end_turn(&self, _: &Clock, _: usize) {}

    // A closure that is not called is not compiled either: so these are not `dyn`.
    pub(crate) fn end_busy(&self, _: (u64, u64), _: &Clock, _: &impl Fn(u64) -> Vec<u64>) {}

    pub(crate) fn begin_wait(&self) {}

    pub(crate) fn end_wait(&self, _: u64, _: u64, _: usize) {}

    pub(crate) fn end_period(&self, _: &impl Fn() -> String) {}

    pub(crate) fn begin_period(&self) {}

    pub(crate) fn rest(&self) {}

    #[allow(dead_code, reason = "called with the feature `signal`")]
    pub(crate) fn answers(&self, _: Box<dyn Fn() -> bool + Send + Sync>) {}
}
