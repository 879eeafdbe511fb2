//! The handles that wait for the closing phase: a stack, since the handle that was closed last
//! completes first.
// Rules of tests/LIBUV.md: R103.

use std::cell::RefCell;
use std::rc::Rc;

use crate::event_loop::api::handle::Header;

#[derive(Default)]
pub(crate) struct Closing {
    stacks: RefCell<Stacks>,
}

#[derive(Default)]
struct Stacks {
    waiting: Vec<Rc<Header>>,
    /// The rest of the running pass, or of a pass that a panic interrupted.
    running: Vec<Rc<Header>>,
    /// The handle whose close is being completed.
    current: Option<Rc<Header>>,
}

impl Closing {
    pub(crate) fn push(&self, header: Rc<Header>) {
        self.stacks.borrow_mut().waiting.push(header);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let stacks = self.stacks.borrow();
        stacks.waiting.is_empty() && stacks.running.is_empty() && stacks.current.is_none()
    }

    /// Returns whether a panic left closes that were not delivered.
    pub(crate) fn was_interrupted(&self) -> bool {
        let stacks = self.stacks.borrow();
        let current = stacks.current.as_ref();
        !stacks.running.is_empty() || current.is_some_and(|header| header.has_to_tell())
    }

    /// Begins a pass over the rest of an interrupted pass and the handles that wait now. Returns
    /// the number of the latter: the caller stops counting all of them as keepers, also those that
    /// are completed later in the pass.
    // Rule R104.
    pub(crate) fn begin_pass(&self) -> usize {
        let stacks = &mut *self.stacks.borrow_mut();
        let count = stacks.waiting.len();
        let left = std::mem::take(&mut stacks.running);
        std::mem::swap(&mut stacks.running, &mut stacks.waiting);
        stacks.running.extend(left);
        stacks.running.extend(stacks.current.take());
        count
    }

    pub(crate) fn next(&self) -> Option<Rc<Header>> {
        let stacks = &mut *self.stacks.borrow_mut();
        stacks.current = stacks.running.pop();
        stacks.current.clone()
    }
}
