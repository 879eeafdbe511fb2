//! Stubs with the names of `signals.rs`, for builds without signals.

use super::core::Core;

#[derive(Default)]
pub(crate) struct Signals;

impl Signals {
    #[inline]
    pub(super) fn any(&self) -> bool {
        false
    }

    pub(super) fn has_due(&self) -> bool {
        false
    }

    pub(super) fn begin_pass(&self) {}

    pub(super) fn saw_child(&self) -> bool {
        false
    }

    pub(super) fn forget_caught(&self) {}

    pub(super) fn drain(&self) {}
}

impl Core {
    pub(super) fn run_signals(&self) {}
}
