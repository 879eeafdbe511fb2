//! Rejected promises that nobody waits for (N23).
//!
//! They are looked at when both lanes are empty, inside the drain: who begins to wait in the same drain is in time. The
//! look is a microtask that puts itself off while anything else is queued.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::context::Node;
use super::process::Origin;
use super::reason::Reason;
use crate::raw::call::Call;

#[derive(Default)]
pub(super) struct Rejections {
    /// Not yet reported, in the order of rejection.
    unhandled: RefCell<Vec<Rc<Rejection>>>,
    /// Reported, and handled since.
    handled_late: RefCell<Vec<Rc<Rejection>>>,
    is_check_queued: Cell<bool>,
}

#[derive(Clone, Copy)]
enum Lane {
    Ticks,
    Microtasks,
}

impl Lane {
    fn other(self) -> Self {
        match self {
            Self::Ticks => Self::Microtasks,
            Self::Microtasks => Self::Ticks,
        }
    }
}

/// One rejection that had nobody when it happened.
pub(super) struct Rejection {
    reason: Reason,
    is_handled: Cell<bool>,
    is_reported: Cell<bool>,
}

impl Rejections {
    /// A promise was rejected, and nobody waits for it.
    pub(super) fn add(&self, node: &Rc<Node>, reason: Reason) -> Rc<Rejection> {
        let rejection = Rc::new(Rejection {
            reason,
            is_handled: Cell::new(false),
            is_reported: Cell::new(false),
        });
        self.unhandled.borrow_mut().push(rejection.clone());
        self.queue_check(node);
        rejection
    }

    /// Somebody waits for it after all.
    pub(super) fn handled(&self, node: &Rc<Node>, rejection: &Rc<Rejection>) {
        rejection.is_handled.set(true);
        if rejection.is_reported.get() {
            self.handled_late.borrow_mut().push(rejection.clone());
            self.queue_check(node);
        }
    }

    fn queue_check(&self, node: &Rc<Node>) {
        if !self.is_check_queued.replace(true) {
            self.put_off(node, Lane::Microtasks);
        }
    }

    /// Queues the look at the end of a lane; at the program's end, of the only one that is drained.
    fn put_off(&self, node: &Rc<Node>, lane: Lane) {
        if let Some(core) = node.core() {
            let is_exiting = node.process.is_exiting();
            let lane = if is_exiting { Lane::Microtasks } else { lane };
            let node = node.clone();
            let check = Call::new(move || node.rejections.check(&node, lane));
            match lane {
                Lane::Ticks => core.lane.push_tick(check),
                Lane::Microtasks => core.lane.push_call(check),
            }
        }
    }

    /// Looks, if both lanes are empty; `lane` is the one this came from.
    fn check(&self, node: &Rc<Node>, lane: Lane) {
        let Some(core) = node.core() else { return };
        let is_exiting = node.process.is_exiting();
        if core.lane.has_microtasks() || !(is_exiting || core.lane.is_empty()) {
            // To the end of the other lane: in its own it would keep the drain from the other.
            return self.put_off(node, lane.other());
        }
        self.is_check_queued.set(false);
        let handled = self.handled_late.take();
        for rejection in handled {
            node.process.handled_late.emit(&rejection.reason);
        }
        // Those of this moment: one that is handled by the report of another is reported all the same.
        let mut unhandled = self.unhandled.take();
        unhandled.retain(|rejection| !rejection.is_handled.get());
        let mut unhandled = unhandled.into_iter();
        while let Some(rejection) = unhandled.next() {
            rejection.is_reported.set(true);
            if !node.process.unhandled.emit(&rejection.reason) {
                let _rest = Rest {
                    node,
                    unhandled: &mut unhandled,
                };
                node.uncaught(rejection.reason.clone(), Origin::UnhandledRejection);
            }
        }
    }

    pub(super) fn shut_down(&self) {
        let unhandled = self.unhandled.take();
        let handled = self.handled_late.take();
        drop((unhandled, handled));
    }
}

/// Keeps those that were not looked at if a panic leaves the loop.
struct Rest<'a> {
    node: &'a Rc<Node>,
    unhandled: &'a mut std::vec::IntoIter<Rc<Rejection>>,
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let rejections = &self.node.rejections;
            rejections
                .unhandled
                .borrow_mut()
                .splice(..0, &mut *self.unhandled);
            if !rejections.unhandled.borrow().is_empty() {
                rejections.queue_check(self.node);
            }
        }
    }
}
