//! The timers phase: sleeps and timer handles in one heap, and the pass that fires them.

pub(crate) mod heap;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use self::heap::{Removed, TimerHeap, TimerKey};
use super::callback::CallbackSlot;
use crate::event_loop::api::handle::{Header, Owner};
use crate::event_loop::clock::NEVER;
use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;

/// The state that a timer handle shares with the loop.
pub(crate) struct TimerState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// Whether `start` was ever called.
    pub(crate) started: Cell<bool>,
    /// Nanoseconds between firings; zero for a one-shot.
    pub(crate) repeat: Cell<u64>,
    /// When the timer is due, or was last due.
    pub(crate) due: Cell<u64>,
    /// Set for Node's shared timer: its callback runs many user timers and drains the lanes between
    /// them and after the last, so the loop must not.
    pub(crate) drains: Cell<bool>,
    /// The key of the timer in the heap or the ready list.
    pub(crate) armed: Cell<Option<TimerKey>>,
}

impl TimerState {
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        let state = Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            started: Cell::new(false),
            repeat: Cell::new(0),
            due: Cell::new(0),
            drains: Cell::new(false),
            armed: Cell::new(None),
        });
        let owner = Rc::downgrade(&state);
        state.header.belongs_to(owner);
        state
    }
}

impl Owner for TimerState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn stop_for_good(&self, core: &Core) {
        core.disarm_timer(self);
        self.callback.clear();
    }
}

/// An entry of the heap.
pub(crate) enum Payload {
    /// A sleep, with the line that created it. Its mark in the heap is set if it keeps the loop
    /// alive.
    Sleep {
        waker: Waker,
        site: Site,
    },
    Timer(Rc<TimerState>),
}

/// The earliest deadline, and the clock it is measured by.
pub(crate) struct Next {
    pub(crate) deadline: u64,
    /// Whether the wait is measured from the real clock: for sleeps and Node's timers. Timer
    /// handles use the cached time.
    // Rule N31.
    pub(crate) by_real_clock: bool,
}

pub(crate) struct Timers {
    heap: RefCell<TimerHeap<Payload>>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            heap: RefCell::new(TimerHeap::new()),
        }
    }

    /// Arms an entry. For a sleep, `referenced` is whether it keeps the loop alive.
    pub(crate) fn insert(&self, deadline: u64, payload: Payload, referenced: bool) -> TimerKey {
        self.heap.borrow_mut().insert(deadline, payload, referenced)
    }

    pub(crate) fn remove(&self, key: TimerKey) -> Option<Removed<Payload>> {
        self.heap.borrow_mut().remove(key)
    }

    /// Sets the waker of a sleep. Returns `false` if the sleep has fired.
    pub(crate) fn set_waker(&self, key: TimerKey, new: &Waker) -> bool {
        match self.heap.borrow_mut().get_mut(key) {
            None => return false,
            Some(Payload::Sleep { waker, .. }) if !waker.will_wake(new) => {}
            Some(_) => return true,
        }
        // Cloning or dropping a waker may run user code; both happen outside the borrow.
        let mut new = new.clone();
        let mut heap = self.heap.borrow_mut();
        let Some(Payload::Sleep { waker, .. }) = heap.get_mut(key) else {
            return false;
        };
        std::mem::swap(waker, &mut new);
        drop(heap);
        drop(new);
        true
    }

    /// Sets whether a sleep keeps the loop alive. Returns whether that was a change.
    pub(crate) fn set_referenced(&self, key: TimerKey, new: bool) -> bool {
        self.heap.borrow_mut().set_mark(key, new)
    }

    /// Returns whether the entry has neither fired nor been removed.
    pub(crate) fn is_armed(&self, key: TimerKey) -> bool {
        self.heap.borrow_mut().get_mut(key).is_some()
    }

    /// Returns whether no entry is armed or ready.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.borrow().is_empty()
    }

    /// Returns the earliest deadline that can be reached.
    pub(crate) fn next(&self) -> Option<Next> {
        let heap = self.heap.borrow();
        let (deadline, payload) = heap.first()?;
        (deadline != NEVER).then_some(Next {
            deadline,
            by_real_clock: match payload {
                Payload::Sleep { .. } => true,
                Payload::Timer(timer) => timer.drains.get(),
            },
        })
    }

    /// Calls `f` with the deadline, payload and mark of each armed entry. `f` must not call back
    /// into the heap, which is borrowed.
    fn each(&self, mut f: impl FnMut(u64, &Payload, bool)) {
        for (deadline, payload, referenced) in self.heap.borrow().iter() {
            f(deadline, payload, referenced);
        }
    }

    /// Begins a pass: moves every entry due by `now` to the ready list.
    // Rule R53.
    pub(crate) fn begin_pass(&self, now: u64, collected: impl FnMut(&Payload, bool)) {
        self.heap.borrow_mut().collect_due(now, collected);
    }

    /// Returns the next ready entry.
    pub(crate) fn pop_ready(&self) -> Option<Payload> {
        self.heap.borrow_mut().pop_ready()
    }

    /// Ends an interrupted pass: ready entries that have not fired are armed again.
    pub(crate) fn put_back_ready(&self, put_back: impl FnMut(&Payload, bool)) {
        self.heap.borrow_mut().put_back_ready(put_back);
    }

    pub(crate) fn drain(&self) -> Vec<Payload> {
        self.heap.borrow_mut().drain()
    }
}

/// Sleeps.
impl Core {
    /// Arms a sleep. `referenced` is whether it keeps the loop alive.
    #[inline]
    pub(crate) fn arm_sleep(&self, deadline: u64, sleep: Payload, referenced: bool) -> TimerKey {
        let key = self.phases.timers.insert(deadline, sleep, referenced);
        if referenced {
            self.ledger.add(Keeper::Sleep);
        }
        key
    }

    /// Removes a sleep from the heap or the ready list. Without effect once it has fired.
    #[inline]
    pub(crate) fn disarm_sleep(&self, key: TimerKey, referenced: bool) {
        if let Some(removed) = self.phases.timers.remove(key) {
            if referenced && removed.was_in_heap {
                self.ledger.remove(Keeper::Sleep);
            }
            // The waker is dropped last, since its drop may run user code.
            drop(removed.payload);
        }
    }

    /// Sets the waker of a sleep. Returns `false` if the sleep has fired.
    #[inline]
    pub(crate) fn set_sleep_waker(&self, key: TimerKey, waker: &Waker) -> bool {
        self.phases.timers.set_waker(key, waker)
    }

    /// Stops a sleep from keeping the loop alive.
    pub(crate) fn unref_sleep(&self, key: TimerKey) {
        if self.phases.timers.set_referenced(key, false) {
            self.ledger.remove(Keeper::Sleep);
        }
    }

    /// Returns whether the sleep has neither fired nor been disarmed.
    pub(crate) fn is_sleep_armed(&self, key: TimerKey) -> bool {
        self.phases.timers.is_armed(key)
    }
}

/// Timer handles.
impl Core {
    /// Updates liveness for a timer or sleep that enters or leaves the heap.
    fn count_timer(&self, payload: &Payload, referenced: bool, armed: bool) {
        match payload {
            Payload::Sleep { .. } => {
                if referenced {
                    self.ledger.change(Keeper::Sleep, armed);
                }
            }
            Payload::Timer(timer) => self.set_active(&timer.header, armed),
        }
    }

    /// Returns the earliest deadline that can be reached.
    #[inline(always)]
    pub(in crate::event_loop) fn next_timer(&self) -> Option<Next> {
        self.phases.timers.next()
    }

    /// Calls `f` with the deadline, payload and mark of each armed entry. `f` must not change the
    /// timers, which are borrowed.
    pub(in crate::event_loop) fn each_timer(&self, f: impl FnMut(u64, &Payload, bool)) {
        self.phases.timers.each(f);
    }

    /// Arms a timer handle for the cached time plus `timeout`.
    // Rule R50.
    pub(crate) fn arm_timer(&self, timer: &Rc<TimerState>, timeout: u64) {
        self.arm_timer_at(timer, self.clock.now().saturating_add(timeout));
    }

    pub(crate) fn arm_timer_at(&self, timer: &Rc<TimerState>, due: u64) {
        timer.due.set(due);
        let key = self
            .phases
            .timers
            .insert(due, Payload::Timer(timer.clone()), true);
        timer.armed.set(Some(key));
        self.set_active(&timer.header, true);
    }

    /// Removes a timer handle from the heap or the ready list.
    pub(crate) fn disarm_timer(&self, timer: &TimerState) {
        if let Some(key) = timer.armed.take() {
            drop(self.phases.timers.remove(key));
            self.set_active(&timer.header, false);
        }
    }
}

impl Core {
    /// Ends a pass that a panic interrupted: ready entries that have not fired are armed again.
    pub(in crate::event_loop) fn put_back_timers(&self) {
        self.phases
            .timers
            .put_back_ready(|payload, referenced| self.count_timer(payload, referenced, true));
    }

    #[inline(always)]
    pub(in crate::event_loop) fn run_timers(&self) {
        let _span = self.probe.phase(Phase::Timers);
        if !self.phases.timers.is_empty() {
            self.run_timer_pass();
        }
        self.run_queue(Phase::Timers);
    }

    /// Fires the timers that are due by the cached time. A timer that becomes due during the pass
    /// waits for the next one.
    // Rule R53.
    #[inline(never)]
    fn run_timer_pass(&self) {
        self.phases
            .timers
            .begin_pass(self.clock.now(), |payload, referenced| {
                self.count_timer(payload, referenced, false);
            });
        while let Some(payload) = self.phases.timers.pop_ready() {
            match payload {
                Payload::Sleep { waker, .. } => self.dispatch_waker(Phase::Timers, waker),
                Payload::Timer(timer) => {
                    timer.armed.set(None);
                    // A repeating timer is armed before its callback runs, so that the callback can
                    // stop it. The cached time is the base: missed firings are not made up (R58).
                    if timer.repeat.get() != 0 {
                        self.arm_timer(&timer, timer.repeat.get());
                    }
                    // Its callback runs many user timers, and drains the lanes after each.
                    if timer.drains.get() {
                        timer.callback.call();
                    } else {
                        self.dispatch(Phase::Timers, || timer.callback.call());
                    }
                }
            }
        }
    }
}
