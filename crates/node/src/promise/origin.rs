//! The ids of a promise for hooks.

use crate::async_hooks::{Capture, Work};
use phaseloop::extension::frame::{self, Frame};

/// The kind of a promise, for hooks.
pub(super) const PROMISE: &str = "PROMISE";

pub(super) struct Origin {
    /// The ids of the promise and of its cause.
    pub(super) ids: (u64, u64),
}

impl Origin {
    /// Gives a promise that is made now its ids; `None` if no hooks are in use.
    #[inline]
    pub(super) fn of_now(parent: Option<u64>) -> Option<Box<Self>> {
        if !frame::is_tracked() {
            return None;
        }
        // Made here, not by the work: the end of a promise is not emitted.
        let work = Work::begin(PROMISE, parent).map(Work::without_end)?;
        let ids = (work.id(), work.cause());
        Some(Box::new(Self { ids }))
    }

    pub(super) fn id(&self) -> u64 {
        self.ids.0
    }

    /// Returns the work of settling the promise.
    pub(super) fn work(origin: Option<&Self>) -> Option<Work> {
        let (id, cause) = origin?.ids;
        Work::known(id, cause)
    }

    /// Returns what a reaction that is added now, and settles the promise, runs in.
    pub(super) fn context(origin: Option<&Self>) -> Option<Capture> {
        (!frame::is_plain()).then(|| Capture {
            frame: Frame::current(),
            work: Self::work(origin),
        })
    }

    /// Notifies the hooks that the promise is settled.
    #[inline]
    pub(super) fn settled(origin: Option<&Self>) {
        if let Some(work) = Self::work(origin) {
            work.resolve();
        }
    }
}
