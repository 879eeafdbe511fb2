//! The handles that wait for the closing phase: a stack, since the handle that was closed last
//! completes first.
// Rules of tests/LIBUV.md: R103.
// Marks: the check for an empty phase is inlined in each turn, the pass is not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, OnClose, Stage};
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::Origin;

#[derive(Default)]
pub(super) struct Closing {
    stacks: RefCell<Stacks>,
    /// Whether a handle may be in the stacks.
    pub(super) has_some: Cell<bool>,
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
        self.has_some.set(true);
    }

    /// Returns whether a panic left closes that were not delivered.
    pub(crate) fn was_interrupted(&self) -> bool {
        let stacks = self.stacks.borrow();
        let current = stacks.current.as_ref();
        !stacks.running.is_empty() || current.is_some_and(|header| header.has_to_report())
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
        // The stack is popped from its end: the handle that a panic interrupted goes on first, and
        // the rest of its pass follows.
        stacks.running.extend(left);
        stacks.running.extend(stacks.current.take());
        count
    }

    pub(crate) fn next(&self) -> Option<Rc<Header>> {
        let stacks = &mut *self.stacks.borrow_mut();
        stacks.current = stacks.running.pop();
        if stacks.current.is_none() {
            self.has_some.set(!stacks.waiting.is_empty());
        }
        stacks.current.clone()
    }
}

impl Core {
    /// Queues a handle, which its owner has stopped, for the closing phase.
    pub(crate) fn begin_close(&self, header: &Rc<Header>) {
        if self.executor.is_closed() {
            self.ledger.close(header);
            return;
        }
        header.stage.set(Stage::Closing);
        self.ledger.add(Keeper::Closing);
        self.phases.closing.push(header.clone());
        self.notify_host();
    }

    /// Completes all closes when the loop is dropped, without their callbacks. The wakers that wait
    /// for them go to `waiting`.
    pub(in crate::event_loop) fn end_closes(&self, waiting: &mut Vec<Waker>) {
        let closing = &self.phases.closing;
        let _ = closing.begin_pass();
        while let Some(header) = closing.next() {
            self.ledger.close(&header);
            while let Some(on_close) = header.next_to_report() {
                if let OnClose::Wake(waker) = on_close {
                    waiting.push(waker);
                }
            }
        }
    }

    /// Completes closes, the latest first as libuv does, then runs the entries queued for the
    /// phase.
    pub(in crate::event_loop) fn run_closing(&self) {
        if self.phases.closing.has_some.get() {
            self.run_closing_pass();
        }
        self.run_queue(Phase::Closing);
    }

    #[inline(never)]
    fn run_closing_pass(&self) {
        for _ in 0..self.phases.closing.begin_pass() {
            self.ledger.remove(Keeper::Closing);
        }
        while let Some(header) = self.phases.closing.next() {
            if header.is_still_due() {
                // Caught signals of this handle are still to pass through the poll phase; the close
                // completes after them (R115).
                self.ledger.add(Keeper::Closing);
                self.phases.closing.push(header);
                continue;
            }
            if header.stage.get() == Stage::Closing {
                self.set_referenced(&header, false);
                self.ledger.close(&header);
            }
            let origin = || Origin::new(Keeper::Closing, Some(header.site));
            loop {
                match header.next_to_report() {
                    Some(OnClose::Wake(waker)) => {
                        self.dispatch(Phase::Closing, origin, || waker.wake());
                    }
                    Some(OnClose::Call(call)) => self.dispatch(Phase::Closing, origin, call),
                    None => break,
                }
            }
        }
    }
}
