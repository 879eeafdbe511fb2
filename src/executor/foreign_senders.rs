//! Rejects messages from other threads on a loop whose runs must be repeatable.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The first other thread that has sent something, if that is refused.
#[derive(Default)]
pub(crate) struct ForeignSenders {
    are_refused: AtomicBool,
    first: OnceLock<String>,
    /// Whether other loops of one program run on the same thread.
    has_siblings: AtomicBool,
}

impl ForeignSenders {
    /// Refuses sends of other threads from now on.
    pub(crate) fn refuse(&self) {
        self.are_refused.store(true, Ordering::Relaxed);
    }

    /// Notes that other loops of one program run on the same thread.
    #[cfg(feature = "cluster")]
    pub(crate) fn note_siblings(&self) {
        self.has_siblings.store(true, Ordering::Relaxed);
    }

    /// Returns whether other loops of one program run on the same thread.
    pub(crate) fn has_siblings(&self) -> bool {
        self.has_siblings.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn are_refused(&self) -> bool {
        self.are_refused.load(Ordering::Relaxed)
    }

    /// Notes a send of this thread, which is not the owner thread.
    pub(super) fn note(&self) {
        self.first.get_or_init(|| {
            let thread = thread::current();
            match thread.name() {
                Some(name) => format!("the thread {name:?}"),
                None => format!("a thread without a name ({:?})", thread.id()),
            }
        });
    }

    /// Returns the name of the first thread that was noted.
    pub(crate) fn first(&self) -> Option<&str> {
        self.first.get().map(String::as_str)
    }
}
