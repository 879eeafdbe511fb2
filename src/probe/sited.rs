//! The closures in the lanes of a watched loop, each with the line that queued it.
//!
//! An entry of a lane has no place for a line, so that a loop that nothing watches does not pay for
//! one. So the entry holds a box with both. The boxes are used again, since an allocation would
//! cost as much as a record.

use std::cell::RefCell;

use crate::raw::call::Call;
use crate::site::Site;

/// The number of boxes that are kept for the next closures: as many as a busy callback queues. A
/// burst of more does not keep its memory.
const MOST_SPARE: usize = 1024;

/// A closure that is queued in a lane.
pub(crate) struct SitedCall {
    /// `None` in a box that is not used.
    call: Option<Call>,
    /// The line that queued it, if known.
    site: Option<Site>,
}

impl SitedCall {
    /// Calls the closure where no loop is current.
    pub(crate) fn call(self) {
        if let Some(call) = self.call {
            call.call();
        }
    }
}

/// The boxes of one loop that are not used.
#[derive(Default)]
pub(crate) struct SitedCalls {
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: RefCell<Vec<Box<SitedCall>>>,
}

impl SitedCalls {
    #[inline]
    pub(crate) fn put(&self, call: Call, site: Option<Site>) -> Box<SitedCall> {
        let new = SitedCall {
            call: Some(call),
            site,
        };
        match self.spare.borrow_mut().pop() {
            Some(mut spare) => {
                *spare = new;
                spare
            }
            None => Box::new(new),
        }
    }

    /// Returns the closure and its line, and keeps the box.
    #[inline]
    pub(crate) fn take(&self, mut queued: Box<SitedCall>) -> (Option<Call>, Option<Site>) {
        let taken = (queued.call.take(), queued.site);
        let mut spare = self.spare.borrow_mut();
        if spare.len() < MOST_SPARE {
            spare.push(queued);
        }
        taken
    }
}
