//! Stubs with the names of `signals.rs`, for builds without signals.

use crate::event_loop::core::Core;

#[derive(Default)]
pub(crate) struct Signals;

impl Signals {
    #[inline]
    pub(in crate::event_loop) fn has_pending(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn has_due(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn begin_pass(&self) {}

    pub(in crate::event_loop) fn saw_child(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn forget_caught(&self) {}

    pub(in crate::event_loop) fn drain(&self) {}
}

impl Core {
    pub(in crate::event_loop) fn run_signals(&self) {}
}
