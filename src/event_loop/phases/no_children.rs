//! Stubs with the names of `children.rs`, for builds without child processes.

use super::sources::SourceState;
use crate::event_loop::core::Core;

#[derive(Default)]
pub(crate) struct Children;

impl Children {
    #[inline]
    pub(in crate::event_loop) fn has_pending(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn has_due(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn ask(&self) {}

    pub(in crate::event_loop) fn ask_all(&self) -> bool {
        false
    }

    #[inline]
    pub(in crate::event_loop) fn report(&self, _: &SourceState) -> bool {
        false
    }

    pub(in crate::event_loop) fn drain(&self) {}
}

impl Core {
    pub(in crate::event_loop) fn collect_children(&self) -> usize {
        0
    }

    pub(in crate::event_loop) fn run_exits(&self) -> usize {
        0
    }
}
