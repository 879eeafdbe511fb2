//! `set_timeout` and `set_interval`.
//!
//! All timers of this module share one timer of their loop. When it fires, a *pass* runs the due
//! timers, list by list, and drains the lanes between them. `timers/pass.rs` is the algorithm,
//! `timers/lists.rs` its data structure.

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
/// The closure comes last, as everywhere in Rust. The delay counts from now, in whole milliseconds;
/// see [`Delay`] for negative and long ones. The timer keeps the loop alive. Dropping the returned
/// handle does not stop it. Use [`set_timeout_mut`] for a timer that can fire again after a
/// [`refresh`](Timeout::refresh).
///
/// In plain Rust: [`sleep`](crate::time::sleep) in a task.
///
/// # Panics
///
/// When no loop runs on this thread. The listeners of [`process::on_uncaught_exception`] receive a
/// panic of the callback; without a listener, it leaves the call that runs the loop.
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

/// Calls `callback` after `delay`, and again after each [`refresh`](Timeout::refresh) of the timer;
/// otherwise like [`set_timeout`].
///
/// The callback receives the timer, so that it can refresh it. The callback is dropped when the
/// timer is cleared, or when the timer has fired and its last handle is dropped.
///
/// # Panics
///
/// When no loop runs on this thread; for a panic of the callback see [`set_timeout`].
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

/// Calls `callback` repeatedly, each time `delay` after the start of the previous call; otherwise
/// like [`set_timeout`].
///
/// The callback receives the timer, so that it can stop it. Missed calls are skipped: a callback
/// that takes longer than the delay is called once in the next pass.
///
/// In plain Rust: [`interval`](crate::time::interval).
///
/// # Panics
///
/// When no loop runs on this thread; for a panic of the callback see [`set_timeout`].
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

/// Stops a timeout or an interval. Its callback does not run any more, even if it is due in the
/// running pass.
///
/// Stopping a timer that has fired or was stopped does nothing.
pub fn clear_timeout(timeout: &Timeout) {
    timeout.close();
}

/// Stops an interval or a timeout; see [`clear_timeout`].
pub fn clear_interval(interval: &Timeout) {
    interval.close();
}

/// Stops the timer with this id. Does nothing if there is none.
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

/// The id of a timer, returned by [`Timeout::id`]. It can be printed and parsed.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{TimeoutId, clear_timeout_by_id, run, set_timeout};
///
/// run(async {
///     let text = set_timeout(1, || unreachable!()).id().to_string();
///     clear_timeout_by_id(text.parse::<TimeoutId>().unwrap());
/// });
/// ```
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

/// A timer, returned by [`set_timeout`], [`set_timeout_mut`] and [`set_interval`]. Clones refer to
/// the same timer.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Timeout, run, set_timeout};
///
/// run(async {
///     let idle: Timeout = set_timeout(60_000, || println!("idle for a minute"));
///     idle.unref(); // the program may end before
///     set_timeout(1, move || {
///         idle.refresh(); // something has happened: count from now
///     });
/// });
/// ```
//
// The lists hold one reference to the state. When the last other reference is dropped and the timer
// is not armed, the lists reuse the state for the next timer.
#[derive(Clone)]
pub struct Timeout(Rc<TimeoutState>);

struct TimeoutState {
    node: Rc<Node>,
    /// The slot in the lists; [`ItemKey::NOWHERE`] once the loop was dropped.
    item: Cell<ItemKey>,
    /// Whether the timer is in a list.
    is_armed: Cell<bool>,
    duration: Cell<u32>,
    repeats: Cell<bool>,
    /// The caller that created the timer.
    site: Cell<Site>,
    /// The time of the last start, in milliseconds of the loop.
    start: Cell<u64>,
    /// The id, if it was requested; otherwise 0.
    id: Cell<u64>,
    referenced: Cell<bool>,
    /// Whether the timer has fired or was cleared. It does not keep the loop alive then.
    is_over: Cell<bool>,
    /// Whether the timer was cleared. Its callback does not run then.
    is_cleared: Cell<bool>,
    /// Whether the timer was cleared before it was over. It can never run again then.
    is_dead: Cell<bool>,
    /// Whether a one-shot callback was called: a refresh has nothing to call.
    is_spent: Cell<bool>,
    /// The callback; `None` while it runs.
    callback: Cell<Option<Callback>>,
}

/// The callback of a timer. The types of the closures are erased, so that the state of one timer
/// can be reused for any other.
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

    /// Initializes the state for a new timer.
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

    /// Restarts the timer with its original delay.
    ///
    /// The timer fires after all other timers of its duration. A timer that was cleared before it
    /// fired stays cleared.
    ///
    /// A timer of [`set_timeout_mut`] that has fired is armed again, also by its own callback. A
    /// timer of [`set_timeout`] that has fired has no closure left: it stays stopped, and a
    /// [warning](process::on_warning) is emitted. For an interval only the next call moves; inside
    /// its callback, `refresh` has no effect.
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

    /// Makes the timer keep the loop alive, which is the default. Idempotent.
    pub fn ref_(&self) -> &Self {
        self.set_referenced(true)
    }

    /// Stops the timer from keeping the loop alive. Idempotent.
    pub fn unref(&self) -> &Self {
        self.set_referenced(false)
    }

    /// Whether the timer keeps the loop alive while it is armed.
    #[must_use]
    pub fn has_ref(&self) -> bool {
        self.0.referenced.get()
    }

    /// The id of the timer, for [`clear_timeout_by_id`].
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
                // Node keeps the list of an unref'd timer, even if it is now empty (N51).
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
        // A running callback is not here: it is dropped after it has returned.
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

    /// Frees the state of a timer that is over and has no handle left.
    fn give_back(&self) {
        let (state, timers) = (&*self.0, &self.0.node.timers);
        if state.item.get() == ItemKey::NOWHERE {
            return;
        }
        if state.id.get() != 0 {
            timers.by_id.borrow_mut().remove(&state.id.take());
        }
        // Dropping the callback may run user code, which may set timers. It is dropped before the
        // slot is free.
        drop(state.callback.take());
        let surplus = timers.lists.borrow_mut().give_back(state.item.get());
        if surplus.is_some() {
            state.item.set(ItemKey::NOWHERE);
        }
    }
}

/// Warns about a refresh of a timer that cannot fire again. In Node it would fire, so a port would
/// wait for ever without this warning.
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
        // Two references are left: this one and the one in the lists.
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
