//! Handles that wait to be reported closed: a stack, since the last one closed is reported first (R103).

use std::cell::RefCell;
use std::rc::Rc;

use super::handles::Header;

#[derive(Default)]
pub(crate) struct Closing {
    stacks: RefCell<Stacks>,
}

#[derive(Default)]
struct Stacks {
    waiting: Vec<Rc<Header>>,
    /// The rest of the pass that runs now, or that a panic cut short.
    running: Vec<Rc<Header>>,
    /// The one that is being reported.
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

    /// Whether a panic has left some who were not told of a close.
    pub(crate) fn has_rest(&self) -> bool {
        let stacks = self.stacks.borrow();
        let current = stacks.current.as_ref();
        !stacks.running.is_empty() || current.is_some_and(|header| header.has_to_tell())
    }

    /// A pass begins: it reports what is waiting now, after what an unfinished pass left (R104). Returns how many were
    /// waiting: they are not any more, also those whose turn is still to come.
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
