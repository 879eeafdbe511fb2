//! Rejected promises without a handler.
//!
//! The check runs inside the drain, once both lanes are empty, so a handler that is added in the
//! same drain is in time. The check is a microtask that queues itself again while anything else is
//! queued.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::context::Node;
use super::process::Origin;
use super::reason::Reason;
use super::site::Site;
use phaseloop::extension::Call;
use phaseloop::extension::frame::Frame;

#[derive(Default)]
pub(super) struct Rejections {
    /// The rejections that were not reported yet, in the order of rejection.
    unhandled: RefCell<Vec<Rc<Rejection>>>,
    /// The rejections that were handled after their report.
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

/// A rejection whose promise had no handler at that time.
pub(super) struct Rejection {
    reason: Reason,
    /// The frame of the call that rejected the promise.
    frame: Frame,
    /// The ids of the promise and of its cause, if hooks are in use.
    ids: Option<(u64, u64)>,
    /// The line that made the promise.
    site: Site,
    is_handled: Cell<bool>,
    is_reported: Cell<bool>,
}

impl Rejections {
    /// Adds the rejection, by the running code, of a promise without a handler, with the ids of its
    /// making.
    pub(super) fn add(
        &self,
        node: &Rc<Node>,
        reason: Reason,
        ids: Option<(u64, u64)>,
        site: Site,
    ) -> Rc<Rejection> {
        let rejection = Rc::new(Rejection {
            reason,
            frame: Frame::current(),
            ids,
            site,
            is_handled: Cell::new(false),
            is_reported: Cell::new(false),
        });
        self.unhandled.borrow_mut().push(rejection.clone());
        self.queue_check(node);
        rejection
    }

    /// Marks a rejection as handled.
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

    /// Queues the check at the end of a lane. While the program exits, only the microtask lane is
    /// drained.
    fn put_off(&self, node: &Rc<Node>, lane: Lane) {
        if let Some(core) = node.core() {
            let is_exiting = node.process.is_exiting();
            let lane = if is_exiting { Lane::Microtasks } else { lane };
            let node = node.clone();
            let check = Call::new(move || node.rejections.check(&node, lane));
            match lane {
                Lane::Ticks => core.push_tick(check),
                Lane::Microtasks => core.push_microtask(check),
            }
        }
    }

    /// Reports the rejections if both lanes are empty; `lane` is the lane that ran this check.
    fn check(&self, node: &Rc<Node>, lane: Lane) {
        let Some(core) = node.core() else { return };
        let is_exiting = node.process.is_exiting();
        if core.has_microtasks() || !(is_exiting || core.are_lanes_empty()) {
            // The check goes to the other lane: a lane is drained until it is empty, so in its own
            // lane the check would run again and again before the other lane gets its turn.
            return self.put_off(node, lane.other());
        }
        self.is_check_queued.set(false);
        let handled = self.handled_late.take();
        for rejection in handled {
            node.process.handled_late.emit(&rejection.reason);
        }
        // The list is fixed before the first report: a rejection that the listener of another
        // report handles is still reported.
        let mut unhandled = self.unhandled.take();
        unhandled.retain(|rejection| !rejection.is_handled.get());
        let mut unhandled = unhandled.into_iter();
        while let Some(rejection) = unhandled.next() {
            rejection.is_reported.set(true);
            // It is not restored after a panic: the listener for that runs in it, too.
            let before = rejection.frame.clone().enter();
            let hooks = node.hooks.borrow().clone();
            let running = rejection.ids.zip(hooks);
            if let Some((ids, hooks)) = &running {
                hooks.begin_silently(*ids);
            }
            if !node.process.unhandled.emit(&rejection.reason) {
                let _rest = Rest {
                    node,
                    unhandled: &mut unhandled,
                };
                let reason = rejection.reason.clone().or_unhandled();
                node.process.set_rejected(Some(rejection.site));
                node.uncaught(reason, Origin::UnhandledRejection);
            } else if let Some((ids, hooks)) = &running {
                hooks.end_silently(*ids);
            }
            drop(before.enter());
        }
    }

    pub(super) fn shut_down(&self) {
        let unhandled = self.unhandled.take();
        let handled = self.handled_late.take();
        drop((unhandled, handled));
    }
}

/// Puts the unreported rejections back if a panic leaves the loop.
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
