//! The handles that wait for the closing phase: a stack, since the handle that was closed last
//! completes first.
// Rules of tests/LIBUV.md: R103.

use std::cell::RefCell;
use std::rc::Rc;

use crate::event_loop::api::handle::{Header, OnClose, Stage};
use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::turn::Phase;

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

impl Core {
    /// Completes closes, the latest first as libuv does, then runs the entries queued for the
    /// phase.
    pub(in crate::event_loop) fn run_closing(&self) {
        let _span = self.probe.phase(Phase::Closing);
        if !self.closing.is_empty() {
            self.run_closing_pass();
        }
        self.run_queue(Phase::Closing, &self.closing_queue);
    }

    #[inline(never)]
    fn run_closing_pass(&self) {
        for _ in 0..self.closing.begin_pass() {
            self.liveness.remove(Keeper::Closing);
        }
        while let Some(header) = self.closing.next() {
            if header.is_still_due() {
                // Caught signals of this handle are still to pass through the poll phase; the close
                // completes after them (R115).
                self.liveness.add(Keeper::Closing);
                self.closing.push(header);
                continue;
            }
            if header.stage.get() == Stage::Closing {
                self.set_referenced(&header, false);
                self.handles.remove(&header);
            }
            loop {
                match header.next_to_tell() {
                    Some(OnClose::Wake(waker)) => self.dispatch_waker(Phase::Closing, waker),
                    Some(OnClose::Call(call)) => self.dispatch(Phase::Closing, call),
                    None => break,
                }
            }
        }
    }
}
