//! The option of a loop that prints a report on a signal.

use super::SignalKind;
use crate::report::on_signal::ReportOn;
use crate::runtime::builder::Builder;

impl Builder {
    /// Prints the loop's [report](crate::LoopHandle::report) and its most important
    /// [metrics](crate::LoopHandle::metrics) on standard error whenever the process gets `signal`.
    /// With a [`Recorder`](crate::observe::Recorder), the blame follows.
    ///
    /// A loop that waits for events answers at once. A loop that is stuck answers when it is back;
    /// if it has a [watchdog](crate::Builder::watchdog), its stack is printed after a second. The
    /// listener does not keep the loop alive, and is not one of its handles. The environment
    /// variable `PHASELOOP_REPORT=USR1` does the same for any program.
    ///
    /// [`build`](Builder::build) returns an error for a signal that cannot be caught.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, signal::SignalKind};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = Builder::new().report_on(SignalKind::USR1).build()?;
    ///     event_loop.block_on(async {
    ///         // `kill -USR1 PID` prints what the loop waits for.
    ///     });
    ///     assert!(Builder::new().report_on(SignalKind::KILL).build().is_err());
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn report_on(self, signal: SignalKind) -> Self {
        self.set_report_on(ReportOn::new(signal.as_raw()))
    }
}
