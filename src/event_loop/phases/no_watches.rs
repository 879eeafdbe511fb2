//! Stubs with the names of `watches.rs`, for builds without the feature `fs`.

use std::io;

use crate::event_loop::core::Core;

#[derive(Default)]
pub(crate) struct Watches;

impl Watches {
    pub(in crate::event_loop) fn note_event(&self, _key: usize) {}

    pub(in crate::event_loop) fn has_pending(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn has_due(&self) -> bool {
        false
    }

    pub(in crate::event_loop) fn drain(&self) {}
}

impl Core {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature is shared with `watches.rs`"
    )]
    pub(in crate::event_loop) fn restart_watches(&self) -> io::Result<()> {
        Ok(())
    }

    pub(in crate::event_loop) fn run_watches(&self) -> usize {
        0
    }
}
