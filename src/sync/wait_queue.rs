//! Those that wait for an event, which are woken in the order of their wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Waker;

use super::identity::Identity;
use crate::executor::primitives::{Caller, DescribedWaiter, Primitive};
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::wait_list::{WaitKey, WaitList};

#[derive(Default)]
pub(super) struct WaitQueue(RefCell<WaitList<Caller>>);

/// A future that waits: a part of it.
pub(super) struct Waiting {
    site: Site,
    key: Option<WaitKey>,
}

impl Waiting {
    pub(super) fn new(site: Site) -> Self {
        Self { site, key: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.key.is_some()
    }
}

impl WaitQueue {
    /// Waits behind all others, or goes on waiting. The wake of the queue ends the wait.
    ///
    /// The clone of the waker is user code, so the caller passes it in, and looks at the state
    /// between the clone and this call.
    pub(super) fn wait<P: Primitive + 'static>(
        &self,
        waiting: &mut Waiting,
        waker: Waker,
        identity: &Identity,
        primitive: &Rc<P>,
    ) {
        let task = identity.begin_wait(primitive);
        let site = waiting.site;
        let caller = Caller { site, task };
        let mut list = self.0.borrow_mut();
        let renewed = match waiting.key {
            Some(key) => {
                if let Some((_, before)) = list.get_mut(key) {
                    *before = caller;
                }
                list.replace(key, waker)
            }
            None => Err(waker),
        };
        let before = match renewed {
            Ok(before) => Some(before),
            Err(waker) => {
                waiting.key = Some(list.push_with(waker, caller));
                None
            }
        };
        drop(list);
        // Dropping a waker may run user code.
        drop(before);
    }

    /// Ends a wait, if it has not ended.
    #[inline]
    pub(super) fn stop(&self, waiting: &mut Waiting) {
        if let Some(key) = waiting.key.take() {
            let removed = self.0.borrow_mut().remove(key);
            drop(removed);
        }
    }

    /// Wakes those that wait now.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    pub(super) fn wake_all(&self) {
        if self.0.borrow().is_empty() {
            return;
        }
        let limit = self.0.borrow().next_number();
        let mut wakes = Steps::default();
        loop {
            let waker = self.0.borrow_mut().pop_before(limit);
            let Some(waker) = waker else {
                break;
            };
            wakes.run(|| waker.wake());
        }
        wakes.end();
    }

    /// Sets the first that waits aside, and returns its waker.
    pub(super) fn serve_first(&self) -> Option<Waker> {
        let mut list = self.0.borrow_mut();
        let (key, _) = list.first()?;
        list.set_aside(key)
    }

    /// Returns whether one that waited was served.
    pub(super) fn is_served(&self, waiting: &Waiting) -> bool {
        let mut list = self.0.borrow_mut();
        let waiter = waiting.key.and_then(|key| list.get_mut(key));
        waiter.is_some_and(|(waker, _)| waker.is_none())
    }

    /// Returns those that wait, for a report.
    #[inline]
    pub(super) fn described(&self) -> Vec<DescribedWaiter> {
        let list = self.0.borrow();
        let described = list.waiting().map(|(waker, caller)| DescribedWaiter {
            site: Some(caller.site),
            task: caller.task,
            waker: waker.data(),
            wants: None,
        });
        described.collect()
    }
}
