//! The switch: what watches a loop, as the bits of one word.
//!
//! A loop that is not watched tests the word once for each callback, poll, queued closure and turn,
//! and does nothing else for the sake of observation: no guard, no clock, no name. If a bit is set,
//! the test leads to a cold twin, which serves whatever is switched on:
//!
//! | plain path | cold twin |
//! |---|---|
//! | `Core::dispatch` | `Core::dispatch_watched` |
//! | `Executor::run_task` | `Executor::run_task_watched` |
//! | `Executor::start` (a spawn) | `Executor::note_spawn` |
//! | `Core::arm_sleep`, `Core::arm_timer_at` | `Core::log_armed` |
//! | `Executor::try_push_task` (a wake) | `Executor::push_task_watched` |
//! | `Core::push_tick` | `Core::push_tick_watched` |
//! | `Core::push_microtask` | `Core::push_microtask_watched` |
//! | `Executor::run_ticks` | `Executor::run_ticks_watched` |
//! | `Core::turn::<false>` | `Core::turn::<true>` |
//!
//! Each twin asks the [`Probe`](super::Probe), which holds the *sinks*: the observer, the recorder.
//! A sink is one field of the probe, one bit here, and a few lines in the probe's methods:
//!
//! 1. `Modes::set` switches its bit on when the sink is attached, and off when it is removed.
//! 2. `Probe::begin` is called before the body of each activity with its [`Activity`] and its
//!    [`Origin`]; the guard that it returns calls `Probe::end` after it, also after a panic.
//! 3. `Probe::callback` and `Probe::phase` surround a callback with its drain, and a phase.
//! 4. `Probe::wake`, `Probe::begin_turn`, `Probe::end_turn`, `Probe::begin_wait` and
//!    `Probe::end_wait` are told what their names say.
//!
//! The bits that no sink belongs to change how the loop runs user code: [`Mode::CONTAINED`] passes
//! panics to a handler (`event_loop/uncaught.rs`), [`Mode::CONTEXTS`] gives each activity its frame
//! (`executor/contexts.rs`), and `Mode::KEPT` is set while a report takes a task that nothing has
//! woken (`executor/unwoken.rs`). A loop whose only bit is the first is
//! [not watched](Modes::is_unwatched): all but its callbacks take the plain path. To all but the
//! polls of tasks, [`Mode::GUARDED`] is no bit at all: another runtime surrounds these polls
//! (`executor/guarded.rs`).

use std::cell::Cell;

use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;

/// The switch of one loop.
#[derive(Default)]
pub(crate) struct Modes(Cell<u32>);

/// One bit of the switch.
#[derive(Clone, Copy)]
pub(crate) struct Mode(u32);

impl Mode {
    /// A handler receives panics.
    pub(crate) const CONTAINED: Self = Self(1);
    /// An observer receives facts.
    #[allow(dead_code, reason = "set with the feature `probe`")]
    pub(crate) const OBSERVED: Self = Self(1 << 1);
    /// A recorder keeps records.
    #[allow(dead_code, reason = "set with the feature `probe`")]
    pub(crate) const RECORDED: Self = Self(1 << 2);
    /// A watchdog reads what runs now.
    #[allow(dead_code, reason = "set with the feature `probe`")]
    pub(crate) const MARKED: Self = Self(1 << 3);
    /// A log has lines about some areas.
    #[allow(dead_code, reason = "set with the feature `probe`")]
    pub(crate) const LOGGED: Self = Self(1 << 5);
    /// The crate `tracing` is told.
    #[allow(dead_code, reason = "set with the feature `tracing`")]
    pub(crate) const TRACED: Self = Self(1 << 6);
    /// A task or a callback has a context.
    pub(crate) const CONTEXTS: Self = Self(1 << 4);
    /// A woken task is kept for the caller, in place of the lane.
    #[cfg(feature = "stacks")]
    pub(crate) const KEPT: Self = Self(1 << 7);
    /// Another runtime surrounds the polls of tasks.
    pub(crate) const GUARDED: Self = Self(1 << 8);
}

/// The modes that a sink of the probe belongs to.
const SINKS: u32 =
    Mode::OBSERVED.0 | Mode::RECORDED.0 | Mode::MARKED.0 | Mode::LOGGED.0 | Mode::TRACED.0;

impl Modes {
    /// Returns whether nothing is switched on.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.0.get() & !Mode::GUARDED.0 == 0
    }

    /// Returns whether nothing is switched on but a handler of panics: no sink is told, and no
    /// activity has a frame.
    #[inline(always)]
    pub(crate) fn is_unwatched(&self) -> bool {
        self.0.get() & !(Mode::CONTAINED.0 | Mode::GUARDED.0) == 0
    }

    /// Returns whether a task is polled by the plain path: the loop is not watched, and nothing
    /// surrounds the poll.
    #[inline(always)]
    pub(crate) fn has_plain_polls(&self) -> bool {
        self.0.get() & !Mode::CONTAINED.0 == 0
    }

    /// Returns whether the probe has a sink.
    #[inline(always)]
    pub(crate) fn has_sinks(&self) -> bool {
        self.0.get() & SINKS != 0
    }

    /// Returns whether this is all that is switched on.
    #[inline(always)]
    pub(crate) fn is_only(&self, mode: Mode) -> bool {
        self.0.get() == mode.0
    }

    #[inline(always)]
    pub(crate) fn has(&self, mode: Mode) -> bool {
        self.0.get() & mode.0 != 0
    }

    #[cfg_attr(
        not(feature = "probe"),
        allow(dead_code, reason = "a loop may have nothing to switch")
    )]
    pub(crate) fn set(&self, mode: Mode, on: bool) {
        let others = self.0.get() & !mode.0;
        self.0.set(if on { others | mode.0 } else { others });
    }
}

/// One piece of user code that the loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// The body of a callback, without the drain after it.
    Callback(Phase),
    /// One poll of the task with this number.
    Poll(u64),
    /// One poll of the main future.
    Main,
    Tick,
    /// A closure in the microtask lane.
    Microtask,
}

/// Where an activity comes from. It is computed in the cold twins only.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(feature = "probe"),
    allow(dead_code, reason = "without sinks it is not read")
)]
pub struct Origin {
    /// What kind of handle or request it belongs to.
    pub(crate) kind: Option<Keeper>,
    /// The line of the program that created the handle, request, task or closure.
    pub(crate) site: Option<Site>,
    /// The deadline of a timer.
    pub(crate) due: Option<u64>,
}

impl Origin {
    /// The kind of what causes a callback, and the line that queued it, if known.
    pub fn new(kind: Keeper, site: Option<Site>) -> Self {
        Self {
            kind: Some(kind),
            site,
            due: None,
        }
    }

    /// Returns the origin of what is known by its line only.
    pub(crate) fn at(site: Option<Site>) -> Self {
        Self {
            site,
            ..Self::default()
        }
    }

    /// Adds the deadline, in nanoseconds of the loop's clock.
    pub fn due(self, deadline: u64) -> Self {
        Self {
            due: Some(deadline),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, Modes};

    #[test]
    fn each_bit_is_switched_by_itself() {
        let modes = Modes::default();
        assert!(modes.is_plain());
        modes.set(Mode::RECORDED, true);
        assert!(modes.is_only(Mode::RECORDED) && !modes.is_only(Mode::CONTAINED));
        modes.set(Mode::CONTAINED, true);
        modes.set(Mode::RECORDED, true);
        assert!(!modes.is_only(Mode::RECORDED));
        assert!(modes.has(Mode::RECORDED) && modes.has(Mode::CONTAINED));
        modes.set(Mode::RECORDED, false);
        assert!(!modes.has(Mode::RECORDED) && modes.has(Mode::CONTAINED));
        assert!(modes.is_unwatched() && !modes.is_plain());
        modes.set(Mode::CONTAINED, false);
        assert!(modes.is_plain());
    }

    #[test]
    fn a_context_is_no_sink_but_is_watched() {
        let modes = Modes::default();
        assert!(modes.is_unwatched() && !modes.has_sinks());
        modes.set(Mode::CONTEXTS, true);
        assert!(!modes.is_unwatched() && !modes.has_sinks());
        modes.set(Mode::CONTEXTS, false);
        let sinks = [
            Mode::OBSERVED,
            Mode::RECORDED,
            Mode::MARKED,
            Mode::LOGGED,
            Mode::TRACED,
        ];
        for sink in sinks {
            modes.set(sink, true);
            assert!(!modes.is_unwatched() && modes.has_sinks());
            modes.set(sink, false);
        }
    }
}
