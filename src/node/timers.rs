//! `set_timeout` and `set_interval`.
//!
//! All timers of a loop share one timer of the loop. When it fires, a *pass* calls those that are due, list by list, and
//! drains the lanes between them. `TimerLists::pass` and `TimerLists::run_list` are the algorithm; `lists.rs` is
//! what they work on.

mod listing;
pub mod promises;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::num::ParseIntError;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::str::FromStr;

use super::delay::Delay;
use super::lists::{ItemKey, ListKey, Lists};
use super::process;
use super::state::Node;
use crate::event_loop::core::Core;
use crate::event_loop::handles::Header;
use crate::event_loop::timers::TimerState;
use crate::kinds::{Kind, Phase, Site};

/// Nanoseconds in a millisecond, the unit of these timers.
const MILLISECOND: u64 = 1_000_000;

/// No timer is armed for this time.
const NEVER: u64 = u64::MAX;

/// Calls `callback` once, in the timers phase, after `delay`.
///
/// The delay counts from now by the millisecond clock (N42); see [`Delay`] for odd ones. The callback is given the timer, to
/// [`refresh`](Timeout::refresh) it for example. The timer keeps the loop alive; dropping the returned handle changes
/// nothing.
///
/// In plain Rust: [`sleep`](crate::time::sleep) in a task.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the callback goes to the listeners of
/// [`process::on_uncaught_panic`], or, if there are none, out of the call that runs the loop.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{clear_timeout, run, set_timeout};
///
/// run(async {
///     set_timeout(|_| println!("later"), 5);
///     let never = set_timeout(|_| unreachable!(), 1);
///     clear_timeout(&never);
/// });
/// ```
#[track_caller]
pub fn set_timeout(callback: impl FnMut(&Timeout) + 'static, delay: impl Into<Delay>) -> Timeout {
    Timeout::start(callback, delay.into(), false, Location::caller())
}

/// Calls `callback` again and again, `delay` after the start of the call before; otherwise as [`set_timeout`].
///
/// Nothing is caught up: a callback that takes longer than the delay is called again in the next pass, once (N48).
///
/// In plain Rust: [`interval`](crate::time::interval).
///
/// # Panics
///
/// As [`set_timeout`].
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, set_interval};
///
/// run(async {
///     let mut left = 3;
///     set_interval(
///         move |interval| {
///             left -= 1;
///             if left == 0 {
///                 interval.close();
///             }
///         },
///         1,
///     );
/// });
/// ```
#[track_caller]
pub fn set_interval(callback: impl FnMut(&Timeout) + 'static, delay: impl Into<Delay>) -> Timeout {
    Timeout::start(callback, delay.into(), true, Location::caller())
}

/// Stops a timer of either kind: it is not called any more, also if it is due in the running pass (N50).
///
/// Without effect on one that is over.
pub fn clear_timeout(timeout: &Timeout) {
    timeout.close();
}

/// The same as [`clear_timeout`].
pub fn clear_interval(interval: &Timeout) {
    interval.close();
}

/// Stops the timer of this number; without effect if there is none (N53).
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn clear_timeout_by_id(id: TimeoutId) {
    let node = Node::current();
    let timeout = node.timers.by_id.borrow_mut().remove(&id.0);
    if let Some(timeout) = timeout.and_then(|timeout| timeout.upgrade()) {
        Timeout(timeout).close();
    }
}

/// The number of a timer; see [`Timeout::id`]. It can be printed and parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeoutId(u64);

impl fmt::Display for TimeoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for TimeoutId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// A timer made by [`set_timeout`] or [`set_interval`]; clones are the same timer.
#[derive(Clone)]
pub struct Timeout(Rc<TimeoutState<dyn Callback>>);

struct TimeoutState<C: ?Sized> {
    node: Rc<Node>,
    /// Where it stands in the lists.
    item: Cell<Option<ItemKey>>,
    duration: u32,
    repeats: bool,
    /// The line that made it.
    site: Site,
    /// When it was started last, in milliseconds of the loop.
    start: Cell<u64>,
    /// Its number, if somebody has asked for it.
    id: Cell<u64>,
    referenced: Cell<bool>,
    /// It has fired or was cleared: it does not count among those that keep the loop alive.
    is_over: Cell<bool>,
    /// It was cleared: nothing is called.
    is_cleared: Cell<bool>,
    /// It was cleared while it ran: it can never run again (N49).
    is_dead: Cell<bool>,
    callback: RefCell<C>,
}

impl<C: ?Sized> Drop for TimeoutState<C> {
    fn drop(&mut self) {
        if self.id.get() != 0 {
            self.node.timers.by_id.borrow_mut().remove(&self.id.get());
        }
    }
}

/// A callback that can be let go of.
trait Callback {
    fn call(&mut self, timeout: &Timeout);
    fn clear(&mut self);
}

impl<F: FnMut(&Timeout)> Callback for Option<F> {
    fn call(&mut self, timeout: &Timeout) {
        if let Some(callback) = self {
            callback(timeout);
        }
    }

    fn clear(&mut self) {
        *self = None;
    }
}

impl Timeout {
    #[track_caller]
    fn start(
        callback: impl FnMut(&Self) + 'static,
        delay: Delay,
        repeats: bool,
        site: Site,
    ) -> Self {
        let timeout = Self(Rc::new(TimeoutState {
            node: Node::current(),
            item: Cell::new(None),
            duration: delay.as_millis(),
            repeats,
            site,
            start: Cell::new(0),
            id: Cell::new(0),
            referenced: Cell::new(true),
            is_over: Cell::new(false),
            is_cleared: Cell::new(false),
            is_dead: Cell::new(false),
            callback: RefCell::new(Some(callback)),
        }));
        timeout.arm(delay);
        timeout
    }

    /// What does not depend on the callback's type.
    fn arm(&self, delay: Delay) {
        if let Some(text) = delay.warning() {
            process::emit_warning("TimeoutOverflowWarning", text);
        }
        let node = &self.0.node;
        if let Some(core) = node.core() {
            node.timers.loop_timer(node, self.0.site);
            node.timers.add_reference(&core);
            node.timers.insert(&core, self, live_now(&core));
        }
    }

    /// Starts the timer anew, as long as it was to begin with (N49).
    ///
    /// It goes behind all timers of its duration. One that has fired is armed again, also from its own callback; one that was
    /// cleared before it fired stays so. For an interval this moves the next call only, and inside its callback nothing.
    pub fn refresh(&self) -> &Self {
        let state = &*self.0;
        if let Some(core) = state.node.core().filter(|_| !state.is_dead.get()) {
            let timers = &state.node.timers;
            timers.insert(&core, self, live_now(&core));
            if state.is_over.replace(false) && state.referenced.get() {
                timers.add_reference(&core);
            }
        }
        self
    }

    /// Makes the timer keep the loop alive; it does from the start. Idempotent (N51).
    pub fn ref_(&self) -> &Self {
        self.set_referenced(true)
    }

    /// Lets the loop end before the timer is due. Idempotent (N51).
    pub fn unref(&self) -> &Self {
        self.set_referenced(false)
    }

    /// Whether the timer keeps the loop alive while it is armed.
    #[must_use]
    pub fn has_ref(&self) -> bool {
        self.0.referenced.get()
    }

    /// The timer's number, for [`clear_timeout_by_id`].
    #[must_use]
    pub fn id(&self) -> TimeoutId {
        let timers = &self.0.node.timers;
        if self.0.id.get() == 0 {
            let id = timers.next_id.replace(timers.next_id.get() + 1);
            self.0.id.set(id);
            let own = Rc::downgrade(&self.0);
            timers.by_id.borrow_mut().insert(id, own);
        }
        TimeoutId(self.0.id.get())
    }

    /// Stops the timer; see [`clear_timeout`].
    pub fn close(&self) -> &Self {
        let state = &*self.0;
        if state.is_cleared.replace(true) {
            return self;
        }
        if !state.is_over.replace(true) {
            state.is_dead.set(true);
            let timers = &state.node.timers;
            if !state.referenced.get() {
                // Its list stays, even if it is empty now (N51).
                timers.unlink(self);
            } else if let Some(core) = state.node.core() {
                let mut lists = timers.lists.borrow_mut();
                // Not the last reference, as in `unlink`.
                match state.item.take() {
                    Some(item) => drop(lists.remove_with_list(item)),
                    None => lists.drop_if_empty(state.duration),
                }
                drop(lists);
                timers.remove_reference(&core);
            }
        }
        self.drop_callback();
        self
    }

    fn set_referenced(&self, referenced: bool) -> &Self {
        let state = &*self.0;
        if state.referenced.replace(referenced) != referenced && !state.is_over.get() {
            if let Some(core) = state.node.core() {
                if referenced {
                    state.node.timers.add_reference(&core);
                } else {
                    state.node.timers.remove_reference(&core);
                }
            }
        }
        self
    }

    /// Lets go of the callback of a cleared timer; one that runs is let go of when it has returned.
    ///
    /// Its drop may be anybody's code. The borrow does not harm it: only a pass borrows the callback otherwise.
    fn drop_callback(&self) {
        if let Ok(mut callback) = self.0.callback.try_borrow_mut() {
            callback.clear();
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("delay", &self.0.duration)
            .field("repeats", &self.0.repeats)
            .field("armed", &self.0.item.get().is_some())
            .field("referenced", &self.0.referenced.get())
            .finish()
    }
}

/// The timers of one loop.
pub(super) struct TimerLists {
    lists: RefCell<Lists<Timeout>>,
    /// When the loop's timer has to fire at the latest; [`NEVER`] during a pass.
    next_expiry: Cell<u64>,
    /// How many timers keep the loop alive.
    references: Cell<usize>,
    loop_timer: OnceCell<Rc<TimerState>>,
    /// The timers whose number was asked for.
    by_id: RefCell<HashMap<u64, Weak<TimeoutState<dyn Callback>>>>,
    next_id: Cell<u64>,
}

/// The loop's time in milliseconds, cut off.
fn now(core: &Core) -> u64 {
    core.clock.now() / MILLISECOND
}

/// The same after a look at the clock (N38).
fn live_now(core: &Core) -> u64 {
    core.clock.update();
    now(core)
}

impl TimerLists {
    pub(super) fn new() -> Self {
        Self {
            lists: RefCell::new(Lists::new()),
            next_expiry: Cell::new(NEVER),
            references: Cell::new(0),
            loop_timer: OnceCell::new(),
            by_id: RefCell::default(),
            next_id: Cell::new(1),
        }
    }

    /// The one timer of the loop behind all of these.
    fn loop_timer(&self, node: &Rc<Node>, site: Site) -> &Rc<TimerState> {
        self.loop_timer.get_or_init(|| {
            let state = TimerState::new(Header::unlisted(Kind::Timer, site));
            state.drains.set(true);
            let node = Rc::downgrade(node);
            let replaced = state.callback.set(Box::new(move || {
                if let Some(node) = node.upgrade() {
                    node.timers.fire(&node);
                }
            }));
            debug_assert!(replaced.is_none(), "a new timer has no callback");
            state
        })
    }

    /// Arms the loop's timer for a time in milliseconds.
    fn arm(&self, core: &Core, at: u64) {
        if let Some(timer) = self.loop_timer.get() {
            core.disarm_timer(timer);
            core.arm_timer_at(timer, at.saturating_mul(MILLISECOND));
        }
    }

    fn set_loop_reference(&self, core: &Core, referenced: bool) {
        if let Some(timer) = self.loop_timer.get() {
            core.set_referenced(&timer.header, referenced);
        }
    }

    fn add_reference(&self, core: &Core) {
        let before = self.references.get();
        self.references.set(before + 1);
        if before == 0 {
            self.set_loop_reference(core, true);
        }
    }

    fn remove_reference(&self, core: &Core) {
        let left = self.references.get() - 1;
        self.references.set(left);
        if left == 0 {
            self.set_loop_reference(core, false);
        }
    }

    /// The timer has fired for the last time: it does not count any more. The end of the pass tells the loop.
    fn finish(&self, timeout: &Timeout) {
        let state = &*timeout.0;
        if !state.is_over.replace(true) && state.referenced.get() {
            self.references.set(self.references.get() - 1);
        }
    }

    /// Moves a timer to the tail of its list.
    fn insert(&self, core: &Core, timeout: &Timeout, start: u64) {
        self.unlink(timeout);
        let state = &*timeout.0;
        state.start.set(start);
        let (item, new_expiry) =
            self.lists
                .borrow_mut()
                .insert(state.duration, start, timeout.clone());
        state.item.set(Some(item));
        if let Some(expiry) = new_expiry {
            if self.next_expiry.get() > expiry {
                self.next_expiry.set(expiry);
                self.arm(core, now(core) + u64::from(state.duration));
            }
        }
    }

    fn unlink(&self, timeout: &Timeout) {
        if let Some(item) = timeout.0.item.take() {
            // Not the last reference: the caller has one. So nothing of the user's is dropped under the borrow.
            self.lists.borrow_mut().remove(item);
        }
    }

    /// What the loop's timer does.
    fn fire(&self, node: &Node) {
        let Some(core) = node.core() else { return };
        let _rest = RestOfPass {
            timers: self,
            core: &core,
        };
        loop {
            let now = live_now(&core);
            let next = loop {
                if core.containment.has_ended() {
                    return;
                }
                // After a panic the pass starts again, with the same time (N71).
                if let Some(next) = core.contain(|| self.pass(&core, now)) {
                    break next;
                }
            };
            self.end_pass(&core, next);
            core.contain(|| core.drain());
            if !self.is_due(&core) {
                return;
            }
            // The drain has refreshed the loop's time: another pass before the loop goes on (N47).
        }
    }

    /// Arms the loop's timer again, before the last drain.
    fn end_pass(&self, core: &Core, next: Option<u64>) {
        match next {
            Some(expiry) => {
                self.arm(core, expiry.max(now(core) + 1));
                self.set_loop_reference(core, self.references.get() > 0);
            }
            None => self.set_loop_reference(core, false),
        }
    }

    fn is_due(&self, core: &Core) -> bool {
        let Some(timer) = self.loop_timer.get() else {
            return false;
        };
        let is_due = timer.armed.get().is_some() && timer.due.get() <= core.clock.now();
        if is_due {
            core.disarm_timer(timer);
        }
        is_due
    }

    /// Calls what is due by `now`, the first list first (N43). Returns the expiry of the next list.
    fn pass(&self, core: &Core, now: u64) -> Option<u64> {
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

    /// Calls what is due in one list, up to the first timer that is not.
    fn run_list(&self, core: &Core, list: ListKey, now: u64) {
        let mut is_first = true;
        loop {
            let head = {
                let lists = self.lists.borrow();
                lists
                    .head(list)
                    .map(|(timeout, duration)| (timeout.clone(), u64::from(duration)))
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
            self.unlink(&timeout);
            if timeout.0.is_cleared.get() {
                self.finish(&timeout);
            } else {
                self.call(core, &timeout);
            }
        }
    }

    fn call(&self, core: &Core, timeout: &Timeout) {
        let state = &*timeout.0;
        let start = if state.repeats { live_now(core) } else { 0 };
        // Also after a panic (N70).
        let _after = AfterCall {
            timers: self,
            core,
            timeout,
            start,
        };
        let _span = core.probe.callback(Phase::Timers);
        state.callback.borrow_mut().call(timeout);
    }

    pub(super) fn shut_down(&self) {
        let timeouts = self.lists.borrow_mut().drain();
        for timeout in &timeouts {
            timeout.0.item.set(None);
            timeout.0.is_over.set(true);
            timeout.0.is_dead.set(true);
            timeout.0.is_cleared.set(true);
            timeout.drop_callback();
        }
        if let Some(timer) = self.loop_timer.get() {
            timer.callback.clear();
        }
    }
}

/// What becomes of a timer when its callback has returned or panicked.
struct AfterCall<'a> {
    timers: &'a TimerLists,
    core: &'a Core,
    timeout: &'a Timeout,
    /// When the callback began.
    start: u64,
}

impl Drop for AfterCall<'_> {
    fn drop(&mut self) {
        let state = &*self.timeout.0;
        if state.repeats && !state.is_dead.get() {
            self.timers.insert(self.core, self.timeout, self.start);
        } else if state.item.get().is_none() {
            self.timers.finish(self.timeout);
        }
        if state.is_cleared.get() {
            self.timeout.drop_callback();
        }
    }
}

/// If a panic leaves the loop, the next run goes on with the rest of the pass.
struct RestOfPass<'a> {
    timers: &'a TimerLists,
    core: &'a Core,
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
