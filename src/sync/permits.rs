//! Permits that are handed over in the order of asking: what `Mutex`, `Semaphore` and the room of
//! a channel are made of.
//!
//! ```text
//!   poll ──> taken                                        none waits, and enough are free
//!     │
//!     └────> waiting ── release ──> granted ── poll ──> taken
//!               ^                     │  └───── drop ──> released, to the next
//!               └─────────────────────┘
//!                 another future of the same task asks, and takes the permits
//! ```
//!
//! The arrow back keeps a task from waiting for itself. A future that a task does not poll any
//! more cannot use what it was granted, and cannot release it. So the permits belong to the task:
//! whichever of its futures asks first has them, and the other waits at its old place.
//!
//! Nothing is borrowed while a waker is cloned, woken or dropped, since that may be user code.
//! What follows such a call looks at the state anew.
// Marks: a permit that is free takes no call (row `mutex`); what waits is not inlined.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::error::Closed;
use super::identity::{Identity, caller_at};
use crate::executor::primitives::{Caller, DescribedWaiter, Primitive, TaskKey};
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::wait_list::{WaitKey, WaitList};

pub(super) struct Permits {
    free: Cell<usize>,
    /// No request waits, and the permits are not closed: the next takes what is free.
    is_plain: Cell<bool>,
    is_closed: Cell<bool>,
    /// Who has taken permits last, or was granted them.
    last: Cell<Option<Caller>>,
    waiters: RefCell<WaitList<Waiter>>,
}

struct Waiter {
    wants: usize,
    caller: Caller,
}

/// What permits are a part of.
pub(super) trait Lot: Primitive + 'static {
    /// Whether reports name who has taken permits last.
    const NOTES_TAKER: bool;

    fn permits(&self) -> &Permits;

    fn identity(&self) -> &Identity;
}

/// One that asks for permits: a part of a future.
pub(super) struct Request {
    wants: usize,
    site: Site,
    key: Option<WaitKey>,
}

impl Permits {
    pub(super) fn new(free: usize) -> Self {
        Self {
            free: Cell::new(free),
            is_plain: Cell::new(true),
            is_closed: Cell::new(false),
            last: Cell::new(None),
            waiters: RefCell::default(),
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.get()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Returns who has taken permits last.
    pub(super) fn last(&self) -> Option<Caller> {
        self.last.get()
    }

    /// Takes permits, if so many are free and none waits.
    #[inline(always)]
    pub(super) fn try_take(&self, wants: usize) -> bool {
        let free = self.free.get();
        let can = self.is_plain.get() && wants <= free;
        if can {
            self.free.set(free - wants);
        }
        can
    }

    /// Takes permits as [`try_take`](Self::try_take) does, and notes who has them.
    #[inline(always)]
    pub(super) fn try_take_at(&self, wants: usize, site: Site) -> bool {
        let is_taken = self.try_take(wants);
        if is_taken {
            self.last.set(Some(caller_at(site)));
        }
        is_taken
    }

    /// Takes up to so many permits that are free, for ever. Returns how many.
    pub(super) fn forget(&self, most: usize) -> usize {
        let free = self.free.get();
        let forgotten = most.min(free);
        self.free.set(free - forgotten);
        forgotten
    }

    /// Releases permits. They go to those that wait, in their order.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    #[inline]
    pub(super) fn release(&self, count: usize) {
        self.free.set(self.free.get() + count);
        if !self.is_plain.get() {
            self.grant();
        }
    }

    /// Grants permits to those that wait, in their order, as long as enough are free.
    #[inline(never)]
    fn grant(&self) {
        let mut wakes = Steps::default();
        while let Some(waker) = self.grant_to_first() {
            wakes.run(|| waker.wake());
        }
        wakes.end();
    }

    /// Grants permits to the first that waits, if enough are free. Returns its waker.
    #[inline]
    fn grant_to_first(&self) -> Option<Waker> {
        let mut waiters = self.waiters.borrow_mut();
        let (key, &Waiter { wants, caller }) = waiters.first()?;
        let free = self.free.get();
        if wants > free {
            return None;
        }
        self.free.set(free - wants);
        self.last.set(Some(caller));
        let waker = waiters.set_aside(key);
        self.note_waiters(&waiters);
        waker
    }

    fn note_waiters(&self, waiters: &WaitList<Waiter>) {
        self.is_plain
            .set(waiters.is_empty() && !self.is_closed.get());
    }

    /// Closes the permits for ever: whoever waits is woken, in order, and gets an error. Permits
    /// that were granted and not taken are free again when their futures notice.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.is_plain.set(false);
        let mut wakes = Steps::default();
        loop {
            // No further wait begins.
            let waker = self.waiters.borrow_mut().pop_before(u64::MAX);
            let Some(waker) = waker else {
                break;
            };
            wakes.run(|| waker.wake());
        }
        wakes.end();
    }

    /// Takes back what was granted to other futures of `task`, until `wants` permits are free or
    /// nothing is left to take. Returns the first of those futures.
    #[cold]
    fn take_back(&self, task: TaskKey, wants: usize, waker: &Waker) -> Option<WaitKey> {
        let granted: Vec<_> = {
            let waiters = self.waiters.borrow();
            let of_task = waiters
                .aside()
                .filter(|(_, waiter)| waiter.caller.task == task);
            of_task.map(|(key, _)| key).collect()
        };
        let mut first = None;
        for key in granted {
            if self.free.get() >= wants {
                break;
            }
            // The future was woken, and waits again without a poll. The next permit wakes the task.
            let waker = waker.clone();
            let mut waiters = self.waiters.borrow_mut();
            let held = waiters.get_mut(key).map_or(0, |(_, waiter)| waiter.wants);
            let refused = waiters.put_back(key, waker);
            if refused.is_none() {
                self.free.set(self.free.get() + held);
                first = first.or(Some(key));
            }
            self.note_waiters(&waiters);
            drop(waiters);
            drop(refused);
        }
        first
    }

    /// Returns those that wait, for a report.
    pub(super) fn described(&self, shows_wants: bool) -> Vec<DescribedWaiter> {
        let waiters = self.waiters.borrow();
        let described = waiters.waiting().map(|(waker, waiter)| DescribedWaiter {
            site: Some(waiter.caller.site),
            task: waiter.caller.task,
            waker: waker.data(),
            wants: shows_wants.then_some(waiter.wants),
        });
        described.collect()
    }
}

impl Request {
    pub(super) fn new(wants: usize, site: Site) -> Self {
        Self {
            wants,
            site,
            key: None,
        }
    }

    pub(super) fn wants(&self) -> usize {
        self.wants
    }

    /// Takes the permits, or waits for them. After it has returned `Ready` it may be polled again
    /// for as many more.
    #[inline(always)]
    pub(super) fn poll<L: Lot>(
        &mut self,
        lot: &Rc<L>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Closed>> {
        if self.key.is_none() {
            let permits = lot.permits();
            let is_taken = if L::NOTES_TAKER {
                permits.try_take_at(self.wants, self.site)
            } else {
                permits.try_take(self.wants)
            };
            if is_taken {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_cold(lot, cx)
    }

    #[inline(never)]
    fn poll_cold<L: Lot>(&mut self, lot: &Rc<L>, cx: &Context<'_>) -> Poll<Result<(), Closed>> {
        let permits = lot.permits();
        if let Some(ended) = self.ended(permits) {
            return Poll::Ready(ended);
        }
        // User code, which may change the state.
        let waker = cx.waker().clone();
        let task = lot.identity().begin_wait(lot);
        let mut before = None;
        if !task.is_none() && permits.waiters.borrow().has_aside() {
            before = permits.take_back(task, self.wants, &waker);
        }
        if let Some(ended) = self.ended(permits) {
            let taken = ended.is_ok().then(|| Taken::new(permits, self.wants));
            // It does not need what it took back from others, if it did.
            permits.grant();
            std::mem::forget(taken);
            return Poll::Ready(ended);
        }
        let site = self.site;
        let caller = Caller { site, task };
        let can_take = before.is_some() || permits.is_plain.get();
        if can_take && permits.free.get() >= self.wants {
            permits.free.set(permits.free.get() - self.wants);
            permits.last.set(Some(caller));
            let taken = Taken::new(permits, self.wants);
            let removed = self.leave(permits);
            // What is left may be enough for one that waits.
            permits.grant();
            drop(removed);
            std::mem::forget(taken);
            return Poll::Ready(Ok(()));
        }
        self.wait(permits, waker, caller, before);
        Poll::Pending
    }

    /// Returns the result, if the permits are closed or granted. It runs no user code if they are
    /// granted.
    #[inline]
    fn ended(&mut self, permits: &Permits) -> Option<Result<(), Closed>> {
        if permits.is_closed.get() {
            self.cancel(permits);
            return Some(Err(Closed));
        }
        let key = self.key?;
        let mut waiters = permits.waiters.borrow_mut();
        let (None, _) = waiters.get_mut(key)? else {
            return None;
        };
        waiters.remove(key);
        self.key = None;
        Some(Ok(()))
    }

    /// Waits behind all others, or goes on waiting; or waits in the place of `before`.
    fn wait(&mut self, permits: &Permits, waker: Waker, caller: Caller, before: Option<WaitKey>) {
        let mut waiters = permits.waiters.borrow_mut();
        let mut replaced = None;
        let key = match self.key {
            Some(key) => {
                if let Some((_, waiter)) = waiters.get_mut(key) {
                    waiter.caller = caller;
                }
                let (Ok(before) | Err(before)) = waiters.replace(key, waker);
                replaced = Some(before);
                key
            }
            None => {
                let wants = self.wants;
                waiters.push_with(waker, Waiter { wants, caller })
            }
        };
        if let Some(before) = before {
            waiters.put_before(key, before);
        }
        self.key = Some(key);
        permits.note_waiters(&waiters);
        drop(waiters);
        if before.is_some() {
            permits.grant();
        }
        // Dropping a waker may run user code.
        drop(replaced);
    }

    /// Ends the wait of one that has taken its permits. Returns its waker, whose drop may run user
    /// code.
    fn leave(&mut self, permits: &Permits) -> Option<Waker> {
        let key = self.key.take()?;
        let mut waiters = permits.waiters.borrow_mut();
        let (waker, _) = waiters.remove(key)?;
        permits.note_waiters(&waiters);
        waker
    }

    /// Ends the wait. Permits that were granted go to the next.
    ///
    /// # Panics
    ///
    /// If a waker panics. All are woken before the panic is resumed.
    #[inline]
    pub(super) fn cancel(&mut self, permits: &Permits) {
        if let Some(key) = self.key.take() {
            cancel_wait(permits, key);
        }
    }
}

/// Permits that were taken. A panic on the way to their owner releases them.
struct Taken<'a> {
    permits: &'a Permits,
    count: usize,
}

impl<'a> Taken<'a> {
    fn new(permits: &'a Permits, count: usize) -> Self {
        Self { permits, count }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.permits.release(self.count);
    }
}

#[inline(never)]
fn cancel_wait(permits: &Permits, key: WaitKey) {
    let mut waiters = permits.waiters.borrow_mut();
    let removed = waiters.remove(key);
    permits.note_waiters(&waiters);
    drop(waiters);
    match removed {
        Some((None, waiter)) => permits.free.set(permits.free.get() + waiter.wants),
        // It may have kept those behind it from what is free.
        Some((Some(waker), _)) => {
            let mut steps = Steps::default();
            steps.run(|| permits.grant());
            steps.run(|| drop(waker));
            return steps.end();
        }
        None => {}
    }
    permits.grant();
}
