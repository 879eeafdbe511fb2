//! The timers of a loop: how they arm the loop's timer, and the pass that runs the due ones.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::mem;
use std::rc::{Rc, Weak};

use super::lists::{ItemKey, ListKey, Lists};
use super::timeout::{Callback, Kind, Life, Repeated, Step, Timeout, TimeoutId, TimeoutState};
use crate::async_hooks::Capture;
use crate::context::Node;
use crate::delay::{Delay, Fault};
use crate::process;
use crate::site::Site;
use phaseloop::Keeper;
use phaseloop::extension::Origin;
use phaseloop::extension::{Due, Loop, SharedTimer, Waiting};

/// Nanoseconds in a millisecond, the unit of these timers.
const MILLISECOND: u64 = 1_000_000;

/// The expiry when no timer is armed.
const NEVER: u64 = u64::MAX;

/// The timers of one loop.
pub(crate) struct TimerLists {
    pub(super) lists: RefCell<Lists<Rc<TimeoutState>>>,
    /// The time at which the loop's timer must fire at the latest; [`NEVER`] during a pass.
    next_expiry: Cell<u64>,
    /// The number of timers that keep the loop alive.
    references: Cell<usize>,
    loop_timer: OnceCell<SharedTimer>,
    /// The timers whose id was requested.
    by_id: RefCell<HashMap<u64, Weak<TimeoutState>>>,
    next_id: Cell<u64>,
    /// The context of the callback that runs, if it has any.
    running: RefCell<Option<Rc<Capture>>>,
    /// Whether a negative delay, and one that is no number, were warned about.
    warned: Cell<(bool, bool)>,
}

/// Returns the cached time of the loop in milliseconds, rounded down.
fn now(core: &Loop) -> u64 {
    core.now() / MILLISECOND
}

/// Reads the clock and returns the loop's time in milliseconds.
pub(super) fn live_now(core: &Loop) -> u64 {
    core.update_now() / MILLISECOND
}

impl TimerLists {
    pub(crate) fn new() -> Self {
        Self {
            lists: RefCell::new(Lists::new()),
            next_expiry: Cell::new(NEVER),
            references: Cell::new(0),
            loop_timer: OnceCell::new(),
            by_id: RefCell::default(),
            next_id: Cell::new(1),
            running: RefCell::default(),
            warned: Cell::default(),
        }
    }

    /// Emits the warning about the delay of a timer, if it is due.
    #[cold]
    pub(super) fn warn(&self, delay: Delay, fault: Fault) {
        let (mut negative, mut no_number) = self.warned.get();
        let was_given = match fault {
            Fault::TooLong => false,
            Fault::Negative => mem::replace(&mut negative, true),
            Fault::NotANumber => mem::replace(&mut no_number, true),
        };
        self.warned.set((negative, no_number));
        if !was_given {
            let (name, text) = delay.warning(fault);
            process::emit_warning(name, text);
        }
    }

    /// Runs a callback in its context.
    pub(super) fn run_in(&self, context: &Rc<Capture>, callback: impl FnOnce()) {
        struct Runs<'a>(&'a TimerLists);
        impl Drop for Runs<'_> {
            fn drop(&mut self) {
                let context = self.0.running.take();
                drop(context);
            }
        }

        let _runs = Runs(self);
        self.running.replace(Some(context.clone()));
        context.run(callback);
    }

    /// Notifies the hooks that the timer whose callback runs has ended.
    pub(super) fn destroy_running(&self) {
        let running = self.running.take();
        if let Some(work) = running.as_ref().and_then(|context| context.work.as_ref()) {
            work.destroy();
        }
    }

    /// Starts a new timer.
    #[inline]
    pub(super) fn start(
        &self,
        core: &Loop,
        node: &Rc<Node>,
        callback: Callback,
        kind: Kind,
        duration: u32,
        site: Site,
    ) -> Rc<TimeoutState> {
        let start = live_now(core);
        let mut lists = self.lists.borrow_mut();
        let (place, left) = lists.take_place();
        let state = match left {
            Some(state) => state.clone(),
            None => {
                let state = TimeoutState::new(node, place, site);
                lists.put(place, state.clone());
                state
            }
        };
        state.begin(callback, kind, duration, site);
        state.life.set(Life::Armed);
        state.start.set(start);
        let new_expiry = lists.link(place, duration, start);
        drop(lists);
        self.add_reference(core);
        self.may_expire_at(core, new_expiry, duration);
        state
    }

    /// Returns a new id for a timer.
    pub(super) fn new_id(&self, state: &Rc<TimeoutState>) -> u64 {
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.by_id.borrow_mut().insert(id, Rc::downgrade(state));
        id
    }

    pub(super) fn forget_id(&self, id: u64) {
        self.by_id.borrow_mut().remove(&id);
    }

    /// Takes the timer with this id out of the ids.
    pub(super) fn by_id(&self, id: TimeoutId) -> Option<Timeout> {
        let state = self.by_id.borrow_mut().remove(&id.0)?;
        state.upgrade().map(Timeout)
    }

    /// Returns the single loop timer that all timers of this module share.
    pub(super) fn loop_timer(&self, node: &Rc<Node>, site: Site) -> &SharedTimer {
        self.loop_timer.get_or_init(|| {
            let node = Rc::downgrade(node);
            SharedTimer::new(site, move || {
                if let Some(node) = node.upgrade() {
                    node.timers.fire(&node);
                }
            })
        })
    }

    /// Arms the loop's timer for a time in milliseconds.
    fn arm(&self, core: &Loop, at: u64) {
        if let Some(timer) = self.loop_timer.get() {
            timer.arm_at(core, at.saturating_mul(MILLISECOND));
        }
    }

    fn set_loop_reference(&self, core: &Loop, referenced: bool) {
        if let Some(timer) = self.loop_timer.get() {
            timer.set_referenced(core, referenced);
        }
    }

    pub(super) fn add_reference(&self, core: &Loop) {
        let before = self.references.get();
        self.references.set(before + 1);
        if before == 0 {
            self.set_loop_reference(core, true);
        }
    }

    pub(super) fn remove_reference(&self, core: &Loop) {
        let left = self.references.get() - 1;
        self.references.set(left);
        if left == 0 {
            self.set_loop_reference(core, false);
        }
    }

    /// Stops counting a timer that has fired for the last time. The end of the pass updates the
    /// loop's reference.
    fn finish(&self, state: &TimeoutState, life: Life) {
        state.life.set(life);
        if state.referenced.get() {
            self.references.set(self.references.get() - 1);
        }
    }

    /// Moves a timer to the tail of its list, where it is `Armed` or `Hollow`.
    pub(super) fn insert(&self, core: &Loop, state: &TimeoutState, life: Life, start: u64) {
        let mut lists = self.lists.borrow_mut();
        let (item, duration) = (state.item.get(), state.duration.get());
        let is_as_before = state.life.get() == life && state.start.get() == start;
        if is_as_before && lists.is_last_of(item, duration) {
            // A connection that has read and answers restarts its timer twice in a row.
            return;
        }
        if state.life.replace(life).is_listed() {
            lists.unlink(item);
        }
        state.start.set(start);
        let new_expiry = lists.link(item, duration, start);
        drop(lists);
        self.may_expire_at(core, new_expiry, duration);
    }

    /// Arms the loop's timer for a new list that expires at `expiry`, if it would fire later
    /// otherwise.
    #[inline]
    fn may_expire_at(&self, core: &Loop, expiry: Option<u64>, duration: u32) {
        if let Some(expiry) = expiry.filter(|&expiry| expiry < self.next_expiry.get()) {
            self.next_expiry.set(expiry);
            self.arm(core, now(core) + u64::from(duration));
        }
    }

    /// The callback of the loop's timer: runs the due timers. Those that become due meanwhile wait
    /// for the next timers phase.
    // N47.
    fn fire(&self, node: &Node) {
        let Some(core) = node.core() else { return };
        let _rest = RestOfPass {
            timers: self,
            core: &core,
        };
        let now = live_now(&core);
        let next = loop {
            if core.program_has_exited() {
                return;
            }
            // After a panic the pass starts again, with the same time (N71).
            if let Some(next) = core.contain(|| self.pass(&core, now)) {
                break next;
            }
        };
        self.end_pass(&core, next);
        core.contain(|| core.drain());
    }

    /// Arms the loop's timer again, before the last drain.
    fn end_pass(&self, core: &Loop, next: Option<u64>) {
        match next {
            Some(expiry) => {
                self.arm(core, expiry.max(now(core) + 1));
                self.set_loop_reference(core, self.references.get() > 0);
            }
            None => self.set_loop_reference(core, false),
        }
    }

    /// Runs the timers that are due at `now`, in the order of their lists. Returns the expiry of
    /// the next list.
    fn pass(&self, core: &Loop, now: u64) -> Option<u64> {
        self.next_expiry.set(NEVER);
        let mut is_first = true;
        loop {
            let first = self.lists.borrow_mut().first();
            let (list, expiry) = first?;
            if expiry > now {
                self.next_expiry.set(expiry);
                return Some(expiry);
            }
            if !is_first {
                core.drain();
            }
            is_first = false;
            self.run_list(core, list, now);
        }
    }

    /// Runs the due timers of one list, up to the first timer that is not due.
    fn run_list(&self, core: &Loop, list: ListKey, now: u64) {
        let mut is_first = true;
        loop {
            let head = {
                let lists = self.lists.borrow();
                lists
                    .head(list)
                    .map(|(state, duration)| (Timeout(state.clone()), u64::from(duration)))
            };
            let Some((timeout, duration)) = head else {
                break self.lists.borrow_mut().retire(list);
            };
            let due = timeout.0.start.get() + duration;
            if due > now {
                break self.lists.borrow_mut().postpone(list, due);
            }
            if !is_first {
                core.drain();
            }
            is_first = false;
            self.lists.borrow_mut().unlink(timeout.0.item.get());
            match timeout.0.callback.take() {
                Some(callback) => self.call(core, &timeout, callback, due),
                None if timeout.0.life.get() == Life::Hollow => {
                    self.finish(&timeout.0, Life::Cleared);
                }
                // The drain before has cleared the timer.
                None => {}
            }
        }
    }

    fn call(&self, core: &Loop, timeout: &Timeout, callback: Callback, due: u64) {
        timeout.0.life.set(Life::Running);
        let start = match timeout.0.kind.get() {
            Kind::Interval => live_now(core),
            Kind::Once | Kind::Refreshed => 0,
        };
        // The guard also reschedules the timer after a panic of its callback (N70).
        let mut after = AfterCall {
            timers: self,
            core,
            timeout,
            start,
            again: None,
        };
        let (site, kind) = (timeout.0.site.get(), timeout.0.kind.get());
        let origin = || {
            core.log(|| format!("{} ({site}) fires", kind.name()));
            Origin::new(Keeper::Timer, Some(site)).due(due.saturating_mul(MILLISECOND))
        };
        core.call_nested(origin, || match callback {
            Callback::Once(callback) => callback.call(),
            Callback::Again(callback) => after.again.insert(callback)(timeout, Step::Call),
        });
    }

    /// Adds the armed timers to the report of their loop.
    pub(crate) fn report(&self, core: &Loop, found: &mut Vec<Waiting>) {
        let now = now(core);
        for state in self.lists.borrow().values() {
            let expiry = state.start.get() + u64::from(state.duration.get());
            let left = expiry.saturating_sub(now).saturating_mul(MILLISECOND);
            let is_referenced = state.referenced.get();
            let mut waiting = Waiting::new(Keeper::Timer, Some(state.site.get()));
            waiting.state = if is_referenced { "" } else { "unref'd" }.to_owned();
            waiting.due = Some(Due(left));
            waiting.keeps_alive = is_referenced;
            found.push(waiting);
        }
    }

    pub(crate) fn shut_down(&self) {
        let states = self.lists.borrow_mut().drain();
        // User code may still hold some of these timers: they are marked so that they are never
        // used again.
        for state in &states {
            state.item.set(ItemKey::NOWHERE);
            state.life.set(Life::Dead);
        }
        for state in states {
            drop(state.callback.take());
        }
        if let Some(timer) = self.loop_timer.get() {
            timer.clear();
        }
    }
}

/// Reschedules or finishes a timer when its callback has returned or panicked.
struct AfterCall<'a> {
    timers: &'a TimerLists,
    core: &'a Loop,
    timeout: &'a Timeout,
    /// The start time of the callback.
    start: u64,
    /// The callback, if it can be called again.
    again: Option<Repeated>,
}

impl Drop for AfterCall<'_> {
    fn drop(&mut self) {
        let state = &*self.timeout.0;
        // The callback of a cleared timer is dropped.
        if state.life.get() == Life::Dead {
            return;
        }
        if state.kind.get() == Kind::Interval {
            self.timers
                .insert(self.core, state, Life::Armed, self.start);
        } else if state.life.get() == Life::Running {
            self.timers.finish(state, Life::Fired);
            if let Some(callback) = &mut self.again {
                callback(self.timeout, Step::End);
            }
        }
        if let Some(callback) = self.again.take() {
            state.callback.set(Some(Callback::Again(callback)));
        }
    }
}

/// Arms the loop's timer again if a panic leaves the loop, so that the next run continues the pass.
struct RestOfPass<'a> {
    timers: &'a TimerLists,
    core: &'a Loop,
}

impl Drop for RestOfPass<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let first = self.timers.lists.borrow_mut().first();
            let next = first.map(|(_, expiry)| expiry);
            if let Some(expiry) = next {
                self.timers.next_expiry.set(expiry);
                self.timers.arm(self.core, expiry);
                let is_referenced = self.timers.references.get() > 0;
                self.timers.set_loop_reference(self.core, is_referenced);
            }
        }
    }
}
