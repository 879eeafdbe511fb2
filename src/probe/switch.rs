//! The switch and the list: which observers watch a loop, and what they want, as bits of one word.
//!
//! Each place of the hot path tests the word once, for the bits that concern it ([`Mode`]). If none
//! is set, the place does nothing for the sake of observation: no guard, no clock, no name. If one
//! is set, a cold twin of the place serves whatever is switched on:
//!
//! | plain path | bits | cold twin |
//! |---|---|---|
//! | `Core::dispatch` | [`Mode::DISPATCH`] | `Core::dispatch_watched` |
//! | `Executor::run_task` | [`Mode::POLL`] | `Executor::run_task_watched` |
//! | `Executor::start` (a spawn) | [`Mode::SPAWN`] | `Executor::push_spawned_watched` |
//! | `Executor::try_push_task` (a wake) | [`Mode::WAKE`] | `Executor::push_task_watched` |
//! | `Core::push_call`, `Core::push_carried` | [`Mode::CALL`] | `Core::push_watched` |
//! | `Core::turn::<false>` | [`Mode::TURN`] | `Core::turn::<true>` |
//! | the ends of busy periods and waits | [`Mode::WAIT`] | `Core::end_busy_watched` … |
//! | `Probe::log` | [`Wants::LOGS`] | `Probe::log_by_list` |
//!
//! A twin notifies the observers through the methods of [`Probe`]. An observer is an implementor of
//! [`Observer`], in a file of its own: recorder, watchdog, debug log, the sink for `tracing`, the
//! user's. A new event is a method of the trait, a bit of [`Wants`] and a method here.
// Marks: the short way of a recorder is inlined, the list is not; `observe` has the numbers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::area::Area;
use super::observer::{Activity, Body, BusyPeriod, Flush, Observer, Waited, Wake, Wants};
use super::origin::Origin;
#[cfg(feature = "probe")]
use super::recorder::Recorders;
use super::sited::SitedCalls;
use crate::clock::Clock;
use crate::phase_order::Phase;
use crate::task_info::{Id, Info};

/// Bits of the switch: a set of events, and what else leads away from the plain path.
#[derive(Clone, Copy)]
pub(crate) struct Mode(u32);

/// What no observer belongs to.
impl Mode {
    /// A handler receives panics (`event_loop/uncaught.rs`).
    pub(crate) const CONTAINED: Self = Self(1 << 16);
    /// A task or a callback has a context (`executor/contexts.rs`).
    pub(crate) const CONTEXTS: Self = Self(1 << 17);
    /// A woken task is kept for the caller, in place of the lane (`executor/unwoken.rs`).
    pub(crate) const KEPT: Self = Self(1 << 18);
    /// Another runtime surrounds the polls of tasks (`executor/guarded.rs`).
    pub(crate) const GUARDED: Self = Self(1 << 19);
    /// The loop may wait in another way than by the kernel (`event_loop/wait.rs`).
    pub(crate) const OTHER_WAIT: Self = Self(1 << 21);
    /// The loop was dropped, or is being dropped: closures are refused.
    pub(crate) const CLOSED: Self = Self(1 << 22);
    /// Several observers want activities.
    const SHARED: Self = Self(1 << 20);
}

/// The bits that concern one place of the hot path.
impl Mode {
    pub(crate) const CALLBACK: Self = Self::CONTEXTS.and(Wants::ACTIVITIES).and(Wants::DISPATCHES);
    pub(crate) const DISPATCH: Self = Self(Self::CALLBACK.0 | Self::CONTAINED.0);
    pub(crate) const POLL: Self = Self(Self::CONTEXTS.0 | Self::GUARDED.0)
        .and(Wants::ACTIVITIES)
        .and(Wants::TASKS);
    pub(crate) const SPAWN: Self = Self::CONTEXTS.and(Wants::TASKS);
    pub(crate) const WAKE: Self = Self::KEPT.and(Wants::WAKES);
    pub(crate) const CALL: Self = Self(Self::CONTEXTS.0 | Self::CLOSED.0).and(Wants::ACTIVITIES);
    pub(crate) const SLEEP: Self = Self::CLOSED.and(Wants::LOGS);
    pub(crate) const TURN: Self = Self(0).and(Wants::TURNS).and(Wants::PHASES);
    /// What a turn may not skip: the phases that are reported, the lanes after a contained panic.
    pub(crate) const PHASES: Self = Self::CONTAINED.and(Wants::PHASES);
    pub(crate) const WAIT: Self = Self(0).and(Wants::WAITS).and(Wants::BUSY);

    const fn and(self, wants: Wants) -> Self {
        Self(self.0 | wants.0)
    }
}

/// The switch of one loop, and its observers.
#[derive(Default)]
pub(crate) struct Probe {
    bits: Cell<u32>,
    /// Replaced as a whole: the events of an activity go to those that were there at its begin.
    list: RefCell<List>,
    pub(crate) sited: SitedCalls,
    #[cfg(feature = "probe")]
    pub(super) recorders: Recorders,
}

/// The observers, in the order of their attachment. An empty list takes no allocation.
type List = Option<Rc<[Attached]>>;

#[derive(Clone)]
struct Attached {
    wants: Wants,
    observer: Rc<dyn Observer>,
}

/// Calls `notify` with each observer that wants the events.
fn each<'a>(
    list: impl DoubleEndedIterator<Item = &'a Attached>,
    wants: Wants,
    notify: impl Fn(&dyn Observer),
) {
    for attached in list {
        if attached.wants.intersects(wants) {
            notify(&*attached.observer);
        }
    }
}

fn iter(list: &List) -> std::slice::Iter<'_, Attached> {
    list.as_deref().unwrap_or_default().iter()
}

/// The switch.
impl Probe {
    /// Returns whether one of these bits is set.
    #[inline]
    pub(crate) fn has(&self, mode: Mode) -> bool {
        self.bits.get() & mode.0 != 0
    }

    /// Returns whether an observer wants one of these events.
    #[inline]
    pub(crate) fn wants(&self, wants: Wants) -> bool {
        self.has(Mode(wants.0))
    }

    pub(crate) fn set(&self, mode: Mode, on: bool) {
        let others = self.bits.get() & !mode.0;
        self.bits.set(if on { others | mode.0 } else { others });
    }
}

/// The list.
impl Probe {
    /// Adds an observer, at the time `now`. It is inside of those that were attached before: its
    /// `begin` comes last, and its `end` first.
    pub(crate) fn attach(&self, observer: Rc<dyn Observer>, now: u64) {
        let wants = observer.wants();
        let added = Attached {
            wants,
            observer: observer.clone(),
        };
        let before = self.list.borrow().clone();
        self.replace(iter(&before).cloned().chain([added]).collect());
        observer.attached(now);
    }

    /// Removes an observer. What it has seen the begin of, it sees the end of.
    #[cfg(feature = "probe")]
    pub(super) fn detach(&self, observer: &Rc<dyn Observer>) {
        let before = self.list.borrow().clone();
        let others = iter(&before).filter(|it| !Rc::ptr_eq(&it.observer, observer));
        self.replace(others.cloned().collect());
    }

    fn replace(&self, list: Vec<Attached>) {
        let wanted = list.iter().fold(0, |bits, it| bits | it.wants.0);
        let wants_activities = |it: &&Attached| it.wants.intersects(Wants::ACTIVITIES);
        let is_shared = list.iter().filter(wants_activities).count() > 1;
        self.bits
            .set(self.bits.get() & !Wants::ALL.0 | wanted & Wants::ALL.0);
        self.set(Mode::SHARED, is_shared);
        let list = (!list.is_empty()).then(|| list.into());
        let before = self.list.replace(list);
        // An observer is user code, which may use the loop when it is dropped.
        drop(before);
    }

    fn list(&self) -> List {
        self.list.borrow().clone()
    }

    fn each(&self, wants: Wants, notify: impl Fn(&dyn Observer)) {
        each(iter(&self.list()), wants, notify);
    }
}

/// What the cold twins call.
impl Probe {
    /// Runs `run` as an activity. `info` describes the task of a poll.
    // The closures are passed on by value: by reference, the short way would write them to memory.
    #[inline(always)]
    pub(crate) fn observe<R>(
        &self,
        body: Body,
        origin: impl Fn() -> Origin,
        clock: &Clock,
        info: impl Fn() -> Option<Info>,
        run: impl FnOnce() -> R,
    ) -> R {
        // The short way of a recorder, and the only one: without it `self_wake/recorded` is 549
        // instructions in place of 301. So it is inlined, and the rest is not.
        #[cfg(feature = "probe")]
        if let Some(recording) = self.recording(body, origin(), clock) {
            let value = run();
            recording.finish();
            return value;
        }
        self.observe_by_list(body, origin, clock, info, run)
    }

    #[inline(never)]
    fn observe_by_list<R>(
        &self,
        body: Body,
        origin: impl Fn() -> Origin,
        clock: &Clock,
        info: impl Fn() -> Option<Info>,
        run: impl FnOnce() -> R,
    ) -> R {
        let activity = Activity {
            body,
            origin: origin(),
            clock,
            info: &info,
            is_shared: self.has(Mode::SHARED),
        };
        let list = self.list();
        each(iter(&list), Wants::ACTIVITIES, |it| it.begin(&activity));
        let _running = Running { list, activity };
        run()
    }

    pub(crate) fn phase(&self, phase: Phase) -> Option<Span> {
        self.wants(Wants::PHASES)
            .then(|| Span::new(self.list(), Edges::PHASE, phase))
    }

    /// Begins a callback with its drain.
    pub(crate) fn dispatch(&self, phase: Phase) -> Option<Span> {
        self.wants(Wants::DISPATCHES)
            .then(|| Span::new(self.list(), Edges::DISPATCH, phase))
    }

    pub(crate) fn begin_turn(&self, now: u64) {
        self.each(Wants::TURNS, |it| it.begin_turn(now));
    }

    pub(crate) fn end_turn(&self, now: u64, tasks: usize) {
        self.each(Wants::TURNS, |it| it.end_turn(now, tasks));
    }

    pub(crate) fn begin_wait(&self, now: u64) {
        self.each(Wants::WAITS, |it| it.begin_wait(now));
    }

    pub(crate) fn end_wait(&self, start: u64, end: u64, events: usize) {
        let waited = Waited { start, end, events };
        self.each(Wants::WAITS, |it| it.end_wait(&waited));
    }

    pub(crate) fn begin_busy(&self, now: u64) {
        self.each(Wants::BUSY, |it| it.begin_busy(now));
    }

    /// Notifies of a busy period, at its end. `overdue` returns the deadlines up to a time of the
    /// timers that were not called yet.
    pub(crate) fn end_busy(
        &self,
        (start, end): (u64, u64),
        clock: &Clock,
        overdue: &dyn Fn(u64) -> Vec<u64>,
    ) {
        let period = BusyPeriod {
            start,
            end,
            clock,
            overdue,
        };
        self.each(Wants::BUSY, |it| it.end_busy(&period));
    }

    pub(crate) fn spawned(&self, info: impl FnOnce() -> Option<Info>) {
        if !self.wants(Wants::TASKS) {
            return;
        }
        if let Some(info) = info() {
            self.each(Wants::TASKS, |it| it.spawned(&info));
        }
    }

    pub(crate) fn ended(&self, id: Id) {
        self.each(Wants::TASKS, |it| it.ended(id));
    }

    /// Notifies of a wake on the owner thread. `task` describes the woken task, `by` the one that
    /// is being polled.
    #[inline(always)]
    pub(crate) fn woken(
        &self,
        id: Id,
        task: impl Fn() -> Option<Info>,
        by: impl Fn() -> Option<Info>,
    ) {
        // See `observe`.
        #[cfg(feature = "probe")]
        if self.has_recorded_wake(id) {
            return;
        }
        self.woken_by_list(id, task, by);
    }

    #[inline(never)]
    fn woken_by_list(
        &self,
        id: Id,
        task: impl Fn() -> Option<Info>,
        by: impl Fn() -> Option<Info>,
    ) {
        let wake = Wake {
            id,
            task: &task,
            by: &by,
        };
        self.each(Wants::WAKES, |it| it.woken(&wake));
    }

    /// Logs a line, if an observer wants lines. A hot path asks [`wants`](Self::wants) before it
    /// makes a text, since what a text refers to has to be in memory.
    #[inline]
    pub(crate) fn log(&self, area: Area, text: impl Fn() -> String) {
        if self.wants(Wants::LOGS) {
            self.log_by_list(area, &text);
        }
    }

    #[cold]
    fn log_by_list(&self, area: Area, text: &dyn Fn() -> String) {
        self.each(Wants::LOGS, |it| it.log(area, text));
    }

    #[cfg(feature = "signal")]
    pub(crate) fn reports_on_signal(
        &self,
        is_asked: &std::sync::Arc<dyn Fn() -> bool + Send + Sync>,
    ) {
        for attached in iter(&self.list()) {
            attached.observer.reports_on_signal(is_asked);
        }
    }

    #[cfg(any(feature = "signal", feature = "probe"))]
    pub(crate) fn add_to_report(&self, report: &mut String) {
        for attached in iter(&self.list()) {
            attached.observer.add_to_report(report);
        }
    }

    pub(crate) fn flush(&self, why: Flush) {
        self.each(Wants::FLUSHES, |it| it.flush(why));
    }
}

/// An activity that runs; the drop notifies of its end, also after a panic.
struct Running<'a> {
    /// Those that were notified of its begin.
    list: List,
    activity: Activity<'a>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let observers = iter(&self.list).rev();
        each(observers, Wants::ACTIVITIES, |it| it.end(&self.activity));
    }
}

/// The two ends of a phase, or of a callback with its drain.
#[derive(Clone, Copy)]
struct Edges {
    wants: Wants,
    begin: fn(&dyn Observer, Phase),
    end: fn(&dyn Observer, Phase),
}

impl Edges {
    const PHASE: Self = Self {
        wants: Wants::PHASES,
        begin: |it, phase| it.begin_phase(phase),
        end: |it, phase| it.end_phase(phase),
    };
    const DISPATCH: Self = Self {
        wants: Wants::DISPATCHES,
        begin: |it, phase| it.begin_dispatch(phase),
        end: |it, phase| it.end_dispatch(phase),
    };
}

/// A phase, or a callback with its drain; the drop notifies of the end.
pub(crate) struct Span {
    list: List,
    edges: Edges,
    phase: Phase,
}

impl Span {
    fn new(list: List, edges: Edges, phase: Phase) -> Self {
        each(iter(&list), edges.wants, |it| (edges.begin)(it, phase));
        Self { list, edges, phase }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let (edges, phase) = (self.edges, self.phase);
        let observers = iter(&self.list).rev();
        each(observers, edges.wants, |it| (edges.end)(it, phase));
    }
}
