//! What was around the making of a promise: its context, and its ids for hooks.

use std::cell::RefCell;

use crate::async_hooks::{Capture, Work};
use phaseloop::extension::frame::{self, Frame};

/// The kind of a promise, for hooks.
pub(super) const PROMISE: &str = "PROMISE";

pub(super) struct Origin {
    frame: RefCell<Frame>,
    /// The ids of the promise and of its cause, if hooks are in use.
    pub(super) ids: Option<(u64, u64)>,
}

impl Origin {
    /// Captures what is around a promise that is made now; `None` if there is nothing.
    #[inline]
    pub(super) fn of_now(parent: Option<u64>) -> Option<Box<Self>> {
        (!frame::is_plain()).then(|| {
            // Made here, not by the work: the end of a promise is not told.
            let work = Work::begin(PROMISE, parent).map(Work::without_end);
            Box::new(Self {
                frame: RefCell::new(Frame::captured()),
                ids: work.map(|work| (work.id(), work.cause())),
            })
        })
    }

    pub(super) fn id(&self) -> Option<u64> {
        self.ids.map(|(id, _)| id)
    }

    /// Returns the frame of the making, or what the function that settles the promise has entered.
    pub(super) fn frame(&self) -> Frame {
        self.frame.borrow().clone()
    }

    /// Keeps what the function that settles the promise has entered.
    #[inline]
    pub(super) fn keep_entered(origin: Option<&Self>) {
        if let Some(origin) = origin {
            let before = origin.frame.replace(Frame::current());
            drop(before);
        }
    }

    /// Returns the work of settling the promise.
    pub(super) fn work(origin: Option<&Self>) -> Option<Work> {
        let (id, cause) = origin?.ids?;
        Work::known(id, cause)
    }

    /// Returns what a reaction runs in that settles the promise.
    pub(super) fn context(origin: Option<&Self>) -> Option<Capture> {
        let frame = origin?.frame();
        let work = Self::work(origin);
        Some(Capture { frame, work })
    }

    /// Tells the hooks that the promise is settled.
    #[inline]
    pub(super) fn settled(origin: Option<&Self>) {
        if let Some(work) = Self::work(origin) {
            work.resolve();
        }
    }
}
