//! One timer, and its life.
//!
//! ```text
//!   start ──> Armed ── due ──> Running ── returned ──> Fired ── refresh ──> Armed
//!               │                 ├── interval, or refresh inside ──> Armed
//!               └──── close ──────┴──> Dead
//!   Fired ── close ──> Cleared ── refresh ──> Hollow ── due ──> Cleared
//! ```

use std::cell::Cell;
use std::fmt;
use std::num::ParseIntError;
use std::rc::Rc;
use std::str::FromStr;

use super::lists::ItemKey;
use super::pass::live_now;
use crate::async_hooks::Capture;
use crate::context::Node;
use crate::delay::Delay;
use crate::process;
use crate::site::Site;
use phaseloop::LoopHandle;
use phaseloop::extension::Call;
use phaseloop::extension::Loop;
use phaseloop::extension::frame::is_plain;

/// The id of a timer, returned by [`Timeout::id`]. It can be printed and parsed.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, TimeoutId, clear_timeout_by_id, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let text = set_timeout(1, || unreachable!()).id().to_string();
///         clear_timeout_by_id(text.parse::<TimeoutId>().unwrap());
///     })
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeoutId(pub(super) u64);

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

/// A timer, returned by [`set_timeout`](crate::set_timeout),
/// [`set_timeout_mut`](crate::set_timeout_mut) and
/// [`set_interval`](crate::set_interval). Clones refer to the same timer.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, Timeout, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let idle: Timeout = set_timeout(60_000, || println!("idle for a minute"));
///         idle.unref(); // the program may end before
///         set_timeout(1, move || {
///             idle.refresh(); // something has happened: count from now
///         });
///     })
/// }
/// ```
//
// The lists hold one reference to the state. When the last other reference is dropped and the timer
// is in no list, the lists reuse the state for the next timer.
#[derive(Clone)]
pub struct Timeout(pub(super) Rc<TimeoutState>);

pub(super) struct TimeoutState {
    node: Rc<Node>,
    /// The slot in the lists; [`ItemKey::NOWHERE`] once the loop was dropped.
    pub(super) item: Cell<ItemKey>,
    pub(super) life: Cell<Life>,
    pub(super) duration: Cell<u32>,
    pub(super) kind: Cell<Kind>,
    /// The caller that created the timer.
    pub(super) site: Cell<Site>,
    /// The time of the last start, in milliseconds of the loop.
    pub(super) start: Cell<u64>,
    /// The id, if it was requested; otherwise 0.
    id: Cell<u64>,
    pub(super) referenced: Cell<bool>,
    /// The callback; `None` while it runs.
    pub(super) callback: Cell<Option<Callback>>,
}

/// Where a timer is in its life.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// The timer is in a list.
    Armed,
    /// The timer was cleared after it had fired, and a refresh has put it into a list again. It has
    /// nothing to call, but keeps the loop alive until it is due, as in Node.
    Hollow,
    /// The callback runs, and the timer is in no list.
    Running,
    /// The timer has fired. A refresh arms it again.
    Fired,
    /// The timer was cleared after it had fired.
    Cleared,
    /// The timer was cleared before it had fired, or its loop was dropped. It never runs again.
    Dead,
}

impl Life {
    pub(super) fn is_listed(self) -> bool {
        matches!(self, Self::Armed | Self::Hollow)
    }

    /// Whether a referenced timer keeps the loop alive.
    pub(super) fn is_pending(self) -> bool {
        self.is_listed() || self == Self::Running
    }
}

/// How often a timer calls its callback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Once: the callback is consumed.
    Once,
    /// Once, and again after each refresh.
    Refreshed,
    Interval,
}

impl Kind {
    /// Returns the name of the function that makes it, in the debug log.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Once => "set_timeout",
            Self::Refreshed => "set_timeout_mut",
            Self::Interval => "set_interval",
        }
    }
}

/// The callback of a timer. The types of the closures are erased, so that the state of one timer
/// can be reused for any other.
pub(super) enum Callback {
    Once(Call),
    Again(Repeated),
}

pub(super) type Repeated = Box<dyn FnMut(&Timeout, Step)>;

/// What a callback that can be called again is asked to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Call,
    /// The timer has fired, and is not armed: its context has ended.
    End,
    /// The timer is armed after that: the context of now is that of its next call.
    Begin,
}

/// The kind of a timer, for hooks.
const TIMEOUT: &str = "Timeout";

impl Callback {
    /// Returns a callback that is called once, in the context of now.
    #[inline(always)]
    pub(super) fn once(callback: Call) -> Self {
        if is_plain() {
            return Self::Once(callback);
        }
        Self::once_in_context(callback)
    }

    #[cold]
    #[inline(never)]
    fn once_in_context(callback: Call) -> Self {
        let context = Rc::new(Capture::of(TIMEOUT, None));
        Self::Once(Call::new(move || {
            let node = Node::current();
            node.timers.run_in(&context, || callback.call());
        }))
    }

    /// Returns a callback that is called again and again, each time in the context of now.
    pub(super) fn again(mut callback: impl FnMut(&Timeout) + 'static) -> Self {
        let context_of_now = || Capture::new(TIMEOUT).map(Rc::new);
        let mut context = context_of_now();
        Self::Again(Box::new(move |timeout, step| match (step, &context) {
            (Step::Call, None) => callback(timeout),
            (Step::Call, Some(context)) => {
                let timers = &timeout.0.node.timers;
                timers.run_in(context, || callback(timeout));
            }
            (Step::End, _) => drop(context.take()),
            (Step::Begin, _) => context = context_of_now(),
        }))
    }
}

impl TimeoutState {
    pub(super) fn new(node: &Rc<Node>, item: ItemKey, site: Site) -> Rc<Self> {
        Rc::new(Self {
            node: node.clone(),
            item: Cell::new(item),
            life: Cell::new(Life::Dead),
            duration: Cell::new(0),
            kind: Cell::new(Kind::Once),
            site: Cell::new(site),
            start: Cell::new(0),
            id: Cell::new(0),
            referenced: Cell::new(true),
            callback: Cell::default(),
        })
    }

    /// Initializes the state for a new timer, which is not armed yet.
    #[inline]
    pub(super) fn begin(&self, callback: Callback, kind: Kind, duration: u32, site: Site) {
        self.duration.set(duration);
        self.kind.set(kind);
        self.site.set(site);
        self.referenced.set(true);
        self.callback.set(Some(callback));
    }
}

impl Timeout {
    #[track_caller]
    pub(super) fn start(callback: Callback, kind: Kind, delay: Delay, site: Site) -> Self {
        let node = Node::current();
        if let Some(fault) = delay.fault() {
            node.timers.warn(delay, fault);
        }
        let duration = delay.as_millis();
        let Some(core) = node.core() else {
            let state = TimeoutState::new(&node, ItemKey::NOWHERE, site);
            state.begin(callback, kind, duration, site);
            return Self(state);
        };
        if core.is_logged() {
            log_start(&core, kind, duration, site);
        }
        let timers = &node.timers;
        timers.loop_timer(&node, site);
        Self(timers.start(&core, &node, callback, kind, duration, site))
    }

    /// Restarts the timer with its original delay.
    ///
    /// The timer fires after all other timers of its duration. A timer that was cleared before it
    /// fired stays cleared.
    ///
    /// A timer of [`set_timeout_mut`](crate::set_timeout_mut) that has fired is armed again,
    /// also by its own callback. A timer of [`set_timeout`](crate::set_timeout) that has
    /// fired has no closure left: it stays stopped, and a [warning](process::on_warning) is
    /// emitted. For an interval only the next call moves; inside its callback, `refresh` has no
    /// effect.
    ///
    /// # Panics
    ///
    /// When the timer has no closure left, and no loop runs on this thread to emit the warning.
    pub fn refresh(&self) -> &Self {
        let state = &*self.0;
        let life = state.life.get();
        let refreshed = match life {
            Life::Dead => return self,
            Life::Armed => Life::Armed,
            // The callback was called, or is being called, and is gone.
            _ if state.kind.get() == Kind::Once => {
                warn_of_spent_timer();
                return self;
            }
            Life::Running | Life::Fired => Life::Armed,
            Life::Cleared | Life::Hollow => Life::Hollow,
        };
        if let Some(core) = state.node.core() {
            let timers = &state.node.timers;
            timers.insert(&core, state, refreshed, live_now(&core));
            if !life.is_pending() && state.referenced.get() {
                timers.add_reference(&core);
            }
        }
        if life == Life::Fired {
            self.begin_again();
        }
        self
    }

    /// Gives the callback of a timer that had fired the context of now.
    fn begin_again(&self) {
        if let Some(Callback::Again(mut callback)) = self.0.callback.take() {
            callback(self, Step::Begin);
            self.0.callback.set(Some(Callback::Again(callback)));
        }
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

    /// The id of the timer, for [`clear_timeout_by_id`](crate::clear_timeout_by_id).
    #[must_use]
    pub fn id(&self) -> TimeoutId {
        if self.0.id.get() == 0 {
            self.0.id.set(self.0.node.timers.new_id(&self.0));
        }
        TimeoutId(self.0.id.get())
    }

    /// Stops the timer; see [`clear_timeout`](crate::clear_timeout).
    pub fn close(&self) -> &Self {
        let state = &*self.0;
        match state.life.get() {
            Life::Armed => self.kill(),
            Life::Running => {
                self.kill();
                state.node.timers.destroy_running();
            }
            Life::Fired => state.life.set(Life::Cleared),
            Life::Cleared | Life::Hollow | Life::Dead => {}
        }
        // A running callback is not here: it is dropped after it has returned.
        drop(state.callback.take());
        self
    }

    /// Ends a timer that is armed or running.
    #[inline]
    fn kill(&self) {
        let (state, timers) = (&*self.0, &self.0.node.timers);
        let was_armed = state.life.replace(Life::Dead) == Life::Armed;
        let mut lists = timers.lists.borrow_mut();
        if !state.referenced.get() {
            // Node keeps the list of an unref'd timer, even if it is now empty (N51).
            if was_armed {
                lists.unlink(state.item.get());
            }
            return;
        }
        if was_armed {
            lists.unlink_with_list(state.item.get());
        } else {
            lists.drop_if_empty(state.duration.get());
        }
        drop(lists);
        if let Some(core) = state.node.core() {
            timers.remove_reference(&core);
        }
    }

    fn set_referenced(&self, referenced: bool) -> &Self {
        let state = &*self.0;
        if state.referenced.replace(referenced) != referenced && state.life.get().is_pending() {
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
            timers.forget_id(state.id.take());
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

#[cold]
#[inline(never)]
fn log_start(core: &Loop, kind: Kind, duration: u32, site: Site) {
    core.log(|| format!("{} ({site}) is set, {duration} ms", kind.name()));
}

impl Drop for Timeout {
    #[inline]
    fn drop(&mut self) {
        // Two references are left: this one and the one in the lists.
        if Rc::strong_count(&self.0) == 2 && !self.0.life.get().is_listed() {
            self.give_back();
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("delay", &self.0.duration.get())
            .field("repeats", &(self.0.kind.get() == Kind::Interval))
            .field("armed", &self.0.life.get().is_listed())
            .field("referenced", &self.0.referenced.get())
            .finish()
    }
}
