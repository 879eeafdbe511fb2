//! `set_timeout` and `set_interval`.
//!
//! All timers of a loop share one timer of the loop. When it fires, a *pass* calls those that are due, list by list, and
//! drains the lanes between them: `timers/pass.rs` is the algorithm, `timers/lists.rs` what it works on.

mod listing;
mod lists;
mod pass;
pub mod promises;

use std::cell::Cell;
use std::fmt;
use std::num::ParseIntError;
use std::panic::Location;
use std::rc::Rc;
use std::str::FromStr;

use self::lists::ItemKey;
pub(super) use self::pass::TimerLists;
use self::pass::live_now;
use super::context::Node;
use super::delay::Delay;
use super::process;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::raw::call::Call;
use crate::site::Site;

/// Calls `callback` once, in the timers phase, after `delay`.
///
/// The closure comes last, as everywhere in Rust. The delay counts from now by the millisecond clock; see [`Delay`] for odd
/// ones. The timer keeps the loop alive; dropping the returned handle changes nothing. A timer that is to fire again after
/// it has fired is one of [`set_timeout_mut`].
///
/// In plain Rust: [`sleep`](crate::time::sleep) in a task.
///
/// # Panics
///
/// When no loop runs on this thread. A panic of the callback goes to the listeners of
/// [`process::on_uncaught_exception`], or, if there are none, out of the call that runs the loop.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{clear_timeout, run, set_timeout};
///
/// run(async {
///     let text = String::from("later");
///     set_timeout(5, move || println!("{text}"));
///     let never = set_timeout(1, || unreachable!());
///     clear_timeout(&never);
/// });
/// ```
#[track_caller]
#[inline]
pub fn set_timeout(delay: impl Into<Delay>, callback: impl FnOnce() + 'static) -> Timeout {
    let callback = Callback::Once(Call::new(callback));
    Timeout::start(callback, delay.into(), false, Location::caller())
}

/// Calls `callback` after `delay`, and again after each [`refresh`](Timeout::refresh) of the timer; otherwise as
/// [`set_timeout`].
///
/// The callback is given the timer, so that it can refresh it. The timer holds the callback until it is cleared, or until
/// it is over and its last handle is dropped.
///
/// # Panics
///
/// As [`set_timeout`].
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, set_timeout_mut};
///
/// run(async {
///     let mut rounds = 0;
///     set_timeout_mut(1, move |timer| {
///         rounds += 1;
///         if rounds < 3 {
///             timer.refresh();
///         }
///     });
/// });
/// ```
#[track_caller]
pub fn set_timeout_mut(
    delay: impl Into<Delay>,
    callback: impl FnMut(&Timeout) + 'static,
) -> Timeout {
    let callback = Callback::Again(Box::new(callback));
    Timeout::start(callback, delay.into(), false, Location::caller())
}

/// Calls `callback` again and again, `delay` after the start of the call before; otherwise as [`set_timeout`].
///
/// The callback is given the timer, so that it can stop it. Nothing is caught up: a callback that takes longer than the
/// delay is called again in the next pass, once.
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
///     set_interval(1, move |interval| {
///         left -= 1;
///         if left == 0 {
///             interval.close();
///         }
///     });
/// });
/// ```
#[track_caller]
pub fn set_interval(delay: impl Into<Delay>, callback: impl FnMut(&Timeout) + 'static) -> Timeout {
    let callback = Callback::Again(Box::new(callback));
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

/// A timer made by [`set_timeout`], [`set_timeout_mut`] or [`set_interval`]; clones are the same timer.
//
// The lists of the loop hold one reference to its state. When the last other one is dropped and the timer is not armed, the
// state is theirs alone, to be the next timer's.
#[derive(Clone)]
pub struct Timeout(Rc<TimeoutState>);

struct TimeoutState {
    node: Rc<Node>,
    /// Its place in the lists; [`ItemKey::NOWHERE`] when the loop is gone.
    item: Cell<ItemKey>,
    /// Whether it stands in a list.
    is_armed: Cell<bool>,
    duration: Cell<u32>,
    repeats: Cell<bool>,
    /// The line that made it.
    site: Cell<Site>,
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
    /// It was called and can be called only once: there is nothing to refresh.
    is_spent: Cell<bool>,
    /// Taken out while it runs.
    callback: Cell<Option<Callback>>,
}

/// What a timer calls. The types of the closures are erased, so that the states of all timers are alike.
enum Callback {
    Once(Call),
    Again(Repeated),
}

type Repeated = Box<dyn FnMut(&Timeout)>;

impl TimeoutState {
    fn new(node: &Rc<Node>, item: ItemKey, site: Site) -> Rc<Self> {
        Rc::new(Self {
            node: node.clone(),
            item: Cell::new(item),
            is_armed: Cell::new(false),
            duration: Cell::new(0),
            repeats: Cell::new(false),
            site: Cell::new(site),
            start: Cell::new(0),
            id: Cell::new(0),
            referenced: Cell::new(true),
            is_over: Cell::new(false),
            is_cleared: Cell::new(false),
            is_dead: Cell::new(false),
            is_spent: Cell::new(false),
            callback: Cell::default(),
        })
    }

    /// Begins as a new timer.
    #[inline]
    fn begin(&self, callback: Callback, duration: u32, repeats: bool, site: Site) {
        self.duration.set(duration);
        self.repeats.set(repeats);
        self.site.set(site);
        self.referenced.set(true);
        self.is_over.set(false);
        self.is_cleared.set(false);
        self.is_dead.set(false);
        self.is_spent.set(false);
        self.callback.set(Some(callback));
    }
}

impl Timeout {
    #[track_caller]
    fn start(callback: Callback, delay: Delay, repeats: bool, site: Site) -> Self {
        if let Some(text) = delay.warning() {
            process::emit_warning("TimeoutOverflowWarning", text);
        }
        let node = Node::current();
        let duration = delay.as_millis();
        let Some(core) = node.core() else {
            let state = TimeoutState::new(&node, ItemKey::NOWHERE, site);
            state.begin(callback, duration, repeats, site);
            return Self(state);
        };
        let timers = &node.timers;
        timers.loop_timer(&node, site);
        Self(timers.start(&core, &node, callback, duration, repeats, site))
    }

    /// Starts the timer anew, as long as it was to begin with (N49).
    ///
    /// It goes behind all timers of its duration. One that was cleared before it fired stays so. A timer of
    /// [`set_timeout_mut`] that has fired is armed again, also from its own callback. One of [`set_timeout`] that has
    /// fired has no closure left: it stays over, and a [warning](process::on_warning) says so. For an interval this moves
    /// the next call only, and inside its callback nothing.
    pub fn refresh(&self) -> &Self {
        let state = &*self.0;
        if state.is_spent.get() {
            warn_of_spent_timer();
            return self;
        }
        if let Some(core) = state.node.core().filter(|_| !state.is_dead.get()) {
            let timers = &state.node.timers;
            timers.insert(&core, state, live_now(&core));
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
                timers.unlink(state);
            } else if let Some(core) = state.node.core() {
                let mut lists = timers.lists.borrow_mut();
                if state.is_armed.replace(false) {
                    lists.unlink_with_list(state.item.get());
                } else {
                    lists.drop_if_empty(state.duration.get());
                }
                drop(lists);
                timers.remove_reference(&core);
            }
        }
        // One that runs is let go of when it has returned.
        drop(state.callback.take());
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

    /// The timer is over, and nobody holds it: its state is free.
    fn give_back(&self) {
        let (state, timers) = (&*self.0, &self.0.node.timers);
        if state.item.get() == ItemKey::NOWHERE {
            return;
        }
        if state.id.get() != 0 {
            timers.by_id.borrow_mut().remove(&state.id.take());
        }
        // Its drop may be anybody's code, which may set timers: before the place is free.
        drop(state.callback.take());
        let surplus = timers.lists.borrow_mut().give_back(state.item.get());
        if surplus.is_some() {
            state.item.set(ItemKey::NOWHERE);
        }
    }
}

/// A port whose original refreshes a timer after it has fired would wait for ever without a word.
#[cold]
fn warn_of_spent_timer() {
    if LoopHandle::try_current().is_some() {
        let text = "a timer of set_timeout was refreshed after it had fired; set_timeout_mut makes one that fires again";
        process::emit_warning("TimeoutRefreshWarning", text);
    }
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        // The lists have the other one.
        if Rc::strong_count(&self.0) == 2 && !self.0.is_armed.get() {
            self.give_back();
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("delay", &self.0.duration.get())
            .field("repeats", &self.0.repeats.get())
            .field("armed", &self.0.is_armed.get())
            .field("referenced", &self.0.referenced.get())
            .finish()
    }
}
