//! Stubs with the names of `watches.rs`, for builds without the feature `fs`.

use std::io;

use super::core::Core;

#[derive(Default)]
pub(crate) struct Watches;

impl Watches {
    pub(super) fn note_event(&self, _key: usize) {}

    pub(super) fn any(&self) -> bool {
        false
    }

    pub(super) fn has_due(&self) -> bool {
        false
    }

    pub(super) fn drain(&self) {}
}

impl Core {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature is shared with `watches.rs`"
    )]
    pub(super) fn restart_watches(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn run_watches(&self) -> usize {
        0
    }
}
