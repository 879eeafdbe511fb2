//! The timers phase: sleeps and timer handles in one heap, and the pass that fires them.
// Marks: a sleep is armed and dropped without a call (rows `timer_drop/1000`,
// `timer_replace/1000`).

pub(crate) mod heap;

use std::cell::Cell;
use std::panic::Location;
use std::rc::Rc;
use std::task::Waker;

use self::heap::TimerKey;
use super::Phases;
use super::callback::CallbackSlot;
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::executor::Executor;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Area, Mode, Origin, Wants};
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
    pub(crate) drains_itself: Cell<bool>,
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
            drains_itself: Cell::new(false),
            armed: Cell::new(None),
        });
        state.header.belongs_to(&state);
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

/// The payload of a slot that carries nothing. It owns nothing: the waker is the one without a
/// task.
impl Default for Payload {
    #[inline]
    fn default() -> Self {
        Self::Sleep {
            waker: Waker::noop().clone(),
            site: Location::caller(),
        }
    }
}

/// The earliest deadline, and the clock it is measured by.
pub(crate) struct Next {
    pub(crate) deadline: u64,
    /// Whether the wait is measured from the real clock: for sleeps and Node's timers. Timer
    /// handles use the cached time.
    // Rule N31.
    pub(crate) by_real_clock: bool,
}

impl Phases {
    /// Calls `f` with the deadline and the payload of each armed entry, and whether it keeps the
    /// loop alive. `f` must not change the timers, which are borrowed.
    pub(crate) fn each_timer(&self, mut f: impl FnMut(u64, &Payload, bool)) {
        for (deadline, payload, referenced) in self.timers.borrow().iter() {
            f(deadline, payload, referenced);
        }
    }

    /// Returns the earliest deadline that can be reached.
    pub(crate) fn next_timer(&self) -> Option<Next> {
        let timers = self.timers.borrow();
        let (deadline, payload) = timers.first()?;
        (deadline != NEVER).then_some(Next {
            deadline,
            by_real_clock: match payload {
                Payload::Sleep { .. } => true,
                Payload::Timer(timer) => timer.drains_itself.get(),
            },
        })
    }

    /// Returns whether the sleep has not fired.
    pub(crate) fn is_sleep_armed(&self, key: TimerKey) -> bool {
        self.timers.borrow_mut().get_mut(key).is_some()
    }
}

/// Arms a sleep that is logged, or whose loop was dropped: that one has ended at once.
// Not inlined, so that the callers save no registers for it.
#[cold]
fn arm_rare_sleep(core: &Core, deadline: u64, sleep: Payload, referenced: bool) -> TimerKey {
    if core.executor.probe.wants(Wants::LOGS) {
        log_armed(&core.executor, &sleep, deadline);
    }
    let timers = &core.phases.timers;
    let key = timers.borrow_mut().insert(deadline, sleep, referenced);
    if core.executor.is_closed() {
        core.unref_sleep(key);
        let ended = timers.borrow_mut().end(key);
        if let Payload::Sleep { waker, .. } = ended {
            waker.wake();
        }
    }
    key
}

/// Sleeps.
impl Core {
    /// Arms a sleep. `referenced` is whether it keeps the loop alive.
    #[inline(always)]
    pub(crate) fn arm_sleep(&self, deadline: u64, sleep: Payload, referenced: bool) -> TimerKey {
        if referenced {
            self.ledger.add(Keeper::Sleep);
        }
        if self.executor.probe.has(Mode::SLEEP) {
            return arm_rare_sleep(self, deadline, sleep, referenced);
        }
        let mut timers = self.phases.timers.borrow_mut();
        timers.insert(deadline, sleep, referenced)
    }

    /// Sets the waker of a sleep. If the sleep has fired, its key is given up and the result is
    /// `false`.
    #[inline]
    pub(crate) fn poll_sleep(&self, key: TimerKey, waker: &Waker) -> bool {
        let mut timers = self.phases.timers.borrow_mut();
        match timers.get_mut(key) {
            Some(Payload::Sleep { waker: known, .. }) if known.will_wake(waker) => true,
            Some(_) => {
                drop(timers);
                self.replace_sleep_waker(key, waker)
            }
            None => {
                timers.remove(key);
                false
            }
        }
    }

    // Cloning and dropping a waker may run user code, so both happen outside the borrow. The
    // sleep's future is borrowed by its caller: that code cannot give up its key.
    fn replace_sleep_waker(&self, key: TimerKey, waker: &Waker) -> bool {
        let mut waker = waker.clone();
        self.note_waker(&waker);
        let mut timers = self.phases.timers.borrow_mut();
        let payload = timers.get_mut(key);
        let is_armed = payload.is_some();
        if let Some(Payload::Sleep { waker: known, .. }) = payload {
            std::mem::swap(known, &mut waker);
        } else {
            timers.remove(key);
        }
        drop(timers);
        is_armed
    }

    /// Removes a sleep, whether it has fired or not.
    #[inline]
    pub(crate) fn disarm_sleep(&self, key: TimerKey, referenced: bool) {
        // The waker is dropped last, since its drop may run user code.
        drop(self.take_sleep(key, referenced));
    }

    /// Takes a sleep out, whether it has fired or not. It no longer keeps the loop alive.
    #[inline(always)]
    fn take_sleep(&self, key: TimerKey, referenced: bool) -> Option<Payload> {
        let removed = self.phases.timers.borrow_mut().remove(key)?;
        if referenced && removed.was_in_heap {
            self.ledger.remove(Keeper::Sleep);
        }
        Some(removed.payload)
    }

    /// Gives an armed sleep another deadline; its waker stays. Returns `None` if the sleep has
    /// fired: its waker is used up, and the key is free.
    #[inline(never)]
    pub(crate) fn rearm_sleep(
        &self,
        key: TimerKey,
        deadline: u64,
        referenced: bool,
    ) -> Option<TimerKey> {
        let sleep = self.take_sleep(key, referenced)?;
        let key = self.arm_sleep(deadline, sleep, referenced);
        // The host of an embedded loop may wait for the deadline before.
        self.notify_host();
        Some(key)
    }

    /// Stops a sleep from keeping the loop alive.
    pub(crate) fn unref_sleep(&self, key: TimerKey) {
        if self.phases.timers.borrow_mut().set_mark(key, false) {
            self.ledger.remove(Keeper::Sleep);
        }
    }
}

/// Timer handles.
impl Core {
    /// Arms a timer handle for the cached time plus `timeout`.
    // Rule R50.
    pub(crate) fn arm_timer(&self, timer: &Rc<TimerState>, timeout: u64) {
        self.arm_timer_at(timer, self.executor.clock.now().saturating_add(timeout));
    }

    pub(crate) fn arm_timer_at(&self, timer: &Rc<TimerState>, due: u64) {
        timer.due.set(due);
        let payload = Payload::Timer(timer.clone());
        if self.executor.probe.wants(Wants::LOGS) {
            log_armed(&self.executor, &payload, due);
        }
        let key = self.phases.timers.borrow_mut().insert(due, payload, true);
        timer.armed.set(Some(key));
        self.set_active(&timer.header, true);
    }

    /// Removes a timer handle from the heap or the ready list.
    pub(crate) fn disarm_timer(&self, timer: &TimerState) {
        if let Some(key) = timer.armed.take() {
            let removed = self.phases.timers.borrow_mut().remove(key);
            self.set_active(&timer.header, false);
            drop(removed);
        }
    }
}

/// The timers phase.
impl Core {
    /// Updates the time, since the callbacks of the phases before have taken some, and fires the
    /// timers that are due. A timer that becomes due during the pass waits for the next one.
    // Rule R53.
    #[inline(never)]
    pub(in crate::event_loop) fn run_timers(&self) {
        let now = self.executor.clock.update();
        let collected = |deadline: u64, payload: &Payload, referenced| {
            self.counters.lateness.record(now.saturating_sub(deadline));
            self.count_timer(payload, referenced, false);
        };
        self.phases.timers.borrow_mut().collect_due(now, collected);
        loop {
            let ready = self.phases.timers.borrow_mut().pop_ready();
            match ready {
                Some((due, Payload::Sleep { waker, site })) => {
                    let origin = || Origin::new(Keeper::Sleep, Some(site)).due(due);
                    self.dispatch(Phase::Timers, origin, || waker.wake());
                }
                Some((_, Payload::Timer(timer))) => self.fire_timer(&timer),
                None => break,
            }
        }
        if self.phases.timers_queue.len.get() != 0 {
            self.run_queue(Phase::Timers);
        }
    }

    fn fire_timer(&self, timer: &Rc<TimerState>) {
        // The key of a timer that has left the heap stays taken until it is given up.
        if let Some(key) = timer.armed.take() {
            self.phases.timers.borrow_mut().remove(key);
        }
        let due = timer.due.get();
        // A repeating timer is armed before its callback runs, so that the callback can stop it.
        // The cached time is the base: missed firings are not made up (R58).
        if timer.repeat.get() != 0 {
            self.arm_timer(timer, timer.repeat.get());
        }
        // Node's callback runs many user timers, and drains the lanes after each.
        if timer.drains_itself.get() {
            timer.callback.call();
        } else {
            let origin = || timer.header.origin().due(due);
            self.dispatch(Phase::Timers, origin, || timer.callback.call());
        }
    }

    /// Ends a pass that a panic has interrupted: ready timers that have not fired are armed again.
    pub(in crate::event_loop) fn put_back_timers(&self) {
        let count = |payload: &Payload, referenced| self.count_timer(payload, referenced, true);
        self.phases.timers.borrow_mut().put_back_ready(count);
    }

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
}

#[cold]
fn log_armed(executor: &Executor, payload: &Payload, due: u64) {
    let (kind, site) = match payload {
        Payload::Sleep { site, .. } => (Keeper::Sleep, *site),
        Payload::Timer(timer) => (Keeper::Timer, timer.header.site),
    };
    let origin = Origin::new(kind, Some(site)).due(due);
    executor
        .probe
        .log(Area::Timers, || origin.armed_text(executor.clock.read()));
}
