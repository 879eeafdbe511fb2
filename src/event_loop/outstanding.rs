//! What must end before a loop of a cluster is drained: its accepted connections, and the tasks
//! that were spawned from outside, which are its roots.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use super::current;
use crate::executor::join::AbortHandle;
use crate::executor::shared::Shared;
use crate::sorted::SortedMap;
use crate::task_info::Id;

#[derive(Default)]
pub(crate) struct Outstanding {
    /// The roots that have not ended, by number.
    roots: RefCell<SortedMap<u64, AbortHandle>>,
    next_root: Cell<u64>,
    /// Wakes the future that waits until the loop is drained.
    waiter: Cell<Option<Waker>>,
}

/// Counts a root until it is dropped, on its loop.
pub(crate) struct Root {
    number: u64,
}

impl Outstanding {
    /// Returns a number for a root, and the guard that its future owns.
    pub(crate) fn new_root(&self) -> (u64, Root) {
        let number = self.next_root.get();
        self.next_root.set(number + 1);
        (number, Root { number })
    }

    pub(crate) fn begin_root(&self, number: u64, task: AbortHandle) {
        self.roots.borrow_mut().insert(number, task);
    }

    /// Returns the roots that have not ended, but for some.
    pub(crate) fn roots(&self, but: &[Id]) -> Vec<AbortHandle> {
        let roots = self.roots.borrow();
        let roots = roots.iter().filter(|(_, root)| !but.contains(&root.id()));
        roots.map(|(_, root)| root.clone()).collect()
    }

    pub(crate) fn note_accepted(shared: &Shared) {
        let open = shared.connections.load(Ordering::Relaxed) + 1;
        shared.connections.store(open, Ordering::Relaxed);
    }

    pub(crate) fn note_closed(&self, shared: &Shared) {
        let open = shared.connections.load(Ordering::Relaxed) - 1;
        shared.connections.store(open, Ordering::Relaxed);
        if open == 0 {
            self.notify();
        }
    }

    /// Waits until the roots have ended, but for some, and the accepted connections are closed.
    pub(crate) fn poll_drained(&self, shared: &Shared, but: &[Id], cx: &Context<'_>) -> Poll<()> {
        if shared.connections.load(Ordering::Relaxed) == 0 && self.roots(but).is_empty() {
            return Poll::Ready(());
        }
        self.waiter.set(Some(cx.waker().clone()));
        Poll::Pending
    }

    fn notify(&self) {
        if let Some(waiter) = self.waiter.take() {
            waiter.wake();
        }
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let ended = current::with(|core| {
            let outstanding = &core?.outstanding;
            let ended = outstanding.roots.borrow_mut().remove(self.number);
            outstanding.notify();
            ended
        });
        drop(ended);
    }
}
