//! The observers of a loop that is being built.

use std::rc::Rc;

#[cfg(feature = "probe")]
use super::built_in::BuiltIn;
use super::observer::Observer;
use super::switch::Probe;
#[cfg(not(feature = "probe"))]
use super::warning;
use crate::clock::Clock;

#[derive(Default)]
pub(crate) struct Attachments {
    /// The observers of the program.
    pub(crate) observers: Vec<Rc<dyn Observer>>,
    /// What the feature `probe` adds.
    #[cfg(feature = "probe")]
    pub(crate) built_in: BuiltIn,
}

impl Attachments {
    /// Attaches the observers to a loop.
    pub(crate) fn attach(self, clock: &Clock) -> Probe {
        let probe = Probe::default();
        #[cfg(feature = "probe")]
        self.built_in.attach(self.observers, &probe, clock);
        #[cfg(not(feature = "probe"))]
        {
            warning::print_once();
            for observer in self.observers {
                probe.attach(observer, clock.read());
            }
        }
        probe
    }

    /// Makes the loop one of several, whose timelines are one file.
    #[cfg(feature = "cluster")]
    #[cfg_attr(
        not(feature = "probe"),
        expect(clippy::unused_self, reason = "the environment has no effect")
    )]
    pub(crate) fn join(&mut self, index: usize, trace: &super::JointTrace) {
        #[cfg(feature = "probe")]
        {
            self.built_in.joint = Some((u32::try_from(index).unwrap_or(u32::MAX), trace.clone()));
        }
        #[cfg(not(feature = "probe"))]
        let _ = (index, trace);
    }

    /// Returns the signal on which the environment asks for a report, and the file of the report.
    #[cfg(feature = "signal")]
    #[cfg_attr(
        not(feature = "probe"),
        expect(clippy::unused_self, reason = "the environment has no effect")
    )]
    pub(crate) fn report_on(&self) -> Option<(i32, Option<std::path::PathBuf>)> {
        #[cfg(feature = "probe")]
        let report_on = self.built_in.report_on();
        #[cfg(not(feature = "probe"))]
        let report_on = None;
        report_on
    }
}
