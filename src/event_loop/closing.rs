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
}

impl Closing {
    pub(crate) fn push(&self, header: Rc<Header>) {
        self.stacks.borrow_mut().waiting.push(header);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let stacks = self.stacks.borrow();
        stacks.waiting.is_empty() && stacks.running.is_empty()
    }

    /// A pass begins: it reports what is waiting now, after what an unfinished pass left (R104).
    pub(crate) fn begin_pass(&self) {
        let stacks = &mut *self.stacks.borrow_mut();
        let left = std::mem::take(&mut stacks.running);
        std::mem::swap(&mut stacks.running, &mut stacks.waiting);
        stacks.running.extend(left);
    }

    pub(crate) fn next(&self) -> Option<Rc<Header>> {
        self.stacks.borrow_mut().running.pop()
    }
}
