//! Stubs with the names of `children.rs`, for builds without child processes.

use super::core::Core;
use super::sources::SourceState;

#[derive(Default)]
pub(crate) struct Children;

impl Children {
    #[inline]
    pub(super) fn any(&self) -> bool {
        false
    }

    pub(super) fn has_due(&self) -> bool {
        false
    }

    pub(super) fn ask(&self) {}

    pub(super) fn ask_all(&self) -> bool {
        false
    }

    #[inline]
    pub(super) fn report(&self, _: &SourceState) -> bool {
        false
    }

    pub(super) fn drain(&self) {}
}

impl Core {
    pub(super) fn collect_children(&self) -> usize {
        0
    }

    pub(super) fn run_exits(&self) -> usize {
        0
    }
}
