//! The main future of `block_on` and `run`. It is polled as a microtask but is not a task: it stays
//! on the stack of its caller, from which it may borrow.

use std::task::Waker;

use super::{Executor, MAIN_FUTURE, budget};
use crate::probe::{Body, Origin};
use crate::site::Site;

/// The site and the waker of the main future.
#[derive(Clone, Copy)]
pub(crate) struct MainInfo {
    /// The line that called `block_on` or `run`.
    pub(crate) site: Site,
    /// The data pointer of its wakers.
    pub(crate) waker: *const (),
}

impl Executor {
    /// Makes `poll` the poll of the main future while `body` runs.
    pub(crate) fn with_main_future<R>(
        &self,
        site: Site,
        waker: &Waker,
        poll: &mut dyn FnMut(),
        body: impl FnOnce() -> R,
    ) -> R {
        let waker = waker.data();
        let _context = self.begin_main_context();
        let _known = Known {
            executor: self,
            before: self.main_info.replace(Some(MainInfo { site, waker })),
        };
        self.main_future.with(poll, body)
    }

    /// Polls the main future, if there is one, as a microtask.
    pub(crate) fn poll_main_future(&self) {
        self.main_polls.set(self.main_polls.get() + 1);
        self.poll_main_now();
    }

    /// Polls the main future, if there is one, outside of the lanes.
    pub(crate) fn poll_main_now(&self) {
        self.main_future.call();
    }

    /// Calls `poll` with the main future marked as being polled, and with a budget of its own.
    pub(crate) fn polling_main_future<R>(&self, poll: impl FnOnce() -> R) -> R {
        let _polled = Polled {
            executor: self,
            before: self.polled.replace(MAIN_FUTURE),
        };
        budget::begin_poll();
        self.guarded(|| {
            let site = self.main_info.get().map(|main| main.site);
            self.watching(Body::MainFuture, Origin::at(site), || {
                self.in_main_context(poll)
            })
        })
    }

    /// Returns whether the main future is being polled, here or further up the stack.
    pub(crate) fn is_in_main_future(&self) -> bool {
        self.is_polled(MAIN_FUTURE)
    }

    /// Forgets the main future, which has completed.
    pub(crate) fn end_main_future(&self) {
        self.main_info.set(None);
    }

    /// Returns the site and the waker of the main future, while it is pending.
    pub(crate) fn main_info(&self) -> Option<MainInfo> {
        self.main_info.get()
    }
}

/// Marks a future as the main future; the drop restores the previous one.
struct Known<'a> {
    executor: &'a Executor,
    before: Option<MainInfo>,
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        self.executor.main_info.set(self.before);
    }
}

/// Marks the main future as being polled; the drop restores the previous mark.
struct Polled<'a> {
    executor: &'a Executor,
    before: u32,
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.executor.polled.set(self.before);
    }
}
