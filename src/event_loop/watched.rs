//! The loop while something watches it: the cold twins of `dispatch` and of the pushes to the
//! lanes; see `probe/switch.rs`.

use super::core::Core;
use super::current;
use crate::frame;
use crate::phase_order::Phase;
use crate::probe::{Activity, Area, Mode, Origin, Probe};
use crate::raw::call::{Call, Note, Noted};
use crate::site::Site;

impl Core {
    pub(super) fn probe(&self) -> &Probe {
        self.executor.probe()
    }

    /// Runs one callback of a phase, then drains the lanes: [`dispatch`](Self::dispatch) while
    /// something watches, or a handler receives panics.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch_watched(
        &self,
        phase: Phase,
        origin: Origin,
        callback: &mut dyn FnMut(),
    ) {
        self.counters.count_callback(phase);
        // A recorder that is all that watches has no span and no frame: 53 instructions less.
        if let Some(recording) = self.executor.recording(Activity::Callback(phase), origin) {
            callback();
            recording.finish();
            return self.drain();
        }
        self.clear_frame();
        let _span = self.probe().callback(phase);
        self.call_and_drain(phase, origin, callback);
        self.clear_frame();
    }

    /// Empties the frame: a callback begins without one, and leaves none behind.
    // Rule O4.
    pub(super) fn clear_frame(&self) {
        if self.executor.uses_contexts() {
            self.executor.begin_activity();
        }
    }

    /// Runs the body of a callback in the current frame, then drains the lanes.
    pub(super) fn call_and_drain(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        let mut body = || self.run_body(phase, origin, callback);
        if self.is_contained() {
            self.dispatch_contained(body);
        } else {
            body();
            self.drain();
        }
    }

    /// Runs one of several user callbacks of one callback of the loop, without a drain.
    #[cold]
    #[inline(never)]
    pub(super) fn call_watched(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        self.clear_frame();
        let _span = self.probe().callback(phase);
        self.run_body(phase, origin, callback);
    }

    /// Runs the body of a callback as an activity.
    #[inline(always)]
    pub(super) fn run_body(&self, phase: Phase, origin: Origin, body: &mut dyn FnMut()) {
        self.executor
            .watching(Activity::Callback(phase), origin, body);
    }
}

impl Core {
    /// Ends the last busy period of a run, which has no kernel poll after it.
    pub(super) fn end_busy_run(&self) {
        let (busy_since, now) = self.count_end_of_run();
        if !self.modes().is_unwatched() {
            self.end_busy_watched(busy_since, now);
            self.probe().rest();
        }
    }

    /// Tells the sinks that a busy period has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn end_busy_watched(&self, start: u64, end: u64) {
        let overdue = |latest| {
            let mut found = Vec::new();
            self.each_timer(|deadline, _, _| {
                if deadline <= latest {
                    found.push(deadline);
                }
            });
            found
        };
        self.probe().end_busy((start, end), self.clock(), &overdue);
        self.probe().end_period(&|| self.report_with_blame());
    }

    /// Writes a line of the debug log, if its area is chosen.
    #[inline]
    pub(crate) fn log(&self, area: Area, text: impl Fn() -> String) {
        if self.is_logged() {
            self.probe().note(area, &text);
        }
    }

    /// Returns whether the loop has a debug log. A hot path asks before it makes a text, since what
    /// a text refers to has to be in memory.
    #[inline(always)]
    pub(crate) fn is_logged(&self) -> bool {
        cfg!(feature = "probe") && self.modes().has(Mode::LOGGED)
    }

    /// Returns the report, and the blame if there is a recorder.
    #[inline]
    pub(super) fn report_with_blame(&self) -> String {
        #[cfg_attr(
            not(feature = "probe"),
            allow(unused_mut, reason = "no recorder adds to it")
        )]
        let mut text = self.report().to_string();
        #[cfg(feature = "probe")]
        if let Some(recorder) = self.probe().recorder() {
            text += &recorder.blame().to_string();
        }
        text
    }
}

/// The lanes.
impl Core {
    /// Lets a closure that is queued on this loop run in the current surroundings. The loop must be
    /// the current one: then the switch, which is tested anyway, tells whether contexts are in use.
    #[inline(always)]
    pub(crate) fn carried(&self, kind: &'static str, call: Call) -> Call {
        if self.modes().is_unwatched() {
            debug_assert!(!frame::is_used(), "the current loop knows of contexts");
            return call;
        }
        frame::carry(kind, call)
    }

    /// Queues a tick on the current loop, to run in the current surroundings, as
    /// [`carried`](Self::carried) does: the switch is tested once.
    #[inline(always)]
    pub(crate) fn push_tick_here(&self, kind: &'static str, tick: Call, site: Option<Site>) {
        if self.modes().is_unwatched() {
            self.executor.push_tick(tick);
        } else {
            self.push_tick_watched(frame::carry(kind, tick), site);
        }
    }

    /// Queues a closure as a microtask on the current loop, to run in the current surroundings.
    #[inline(always)]
    pub(crate) fn push_microtask_here(&self, kind: &'static str, call: Call, site: Option<Site>) {
        if self.modes().is_unwatched() {
            self.executor.push_microtask(call);
        } else {
            self.push_microtask_watched(frame::carry(kind, call), site);
        }
    }

    /// Queues a tick. `site` is the line that queues it, if known.
    #[inline]
    pub(crate) fn push_tick(&self, tick: Call, site: Option<Site>) {
        if self.modes().is_unwatched() {
            self.executor.push_tick(tick);
        } else {
            self.push_tick_watched(tick, site);
        }
    }

    /// Queues a closure as a microtask. `site` is the line that queues it, if known.
    #[inline]
    pub(crate) fn push_microtask(&self, microtask: Call, site: Option<Site>) {
        if self.modes().is_unwatched() {
            self.executor.push_microtask(microtask);
        } else {
            self.push_microtask_watched(microtask, site);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_tick_watched(&self, tick: Call, site: Option<Site>) {
        let note = Call::note(&TICK, site);
        self.executor.push_noted_tick(note, tick);
    }

    #[cold]
    #[inline(never)]
    fn push_microtask_watched(&self, microtask: Call, site: Option<Site>) {
        let note = Call::note(&MICROTASK, site);
        self.executor.push_noted_microtask(note, microtask);
    }
}

/// The note before a tick that was queued while something watched. Usually the drain reads its
/// line. If nothing watched when the drain began, it calls the note.
pub(super) static TICK: Note = Note::new::<Tick>();

/// The note before a microtask closure, likewise. It is always called.
static MICROTASK: Note = Note::new::<Microtask>();

struct Tick;
struct Microtask;

impl Noted for Tick {
    fn call(site: Option<Site>) {
        current::with(|core| {
            if let Some(core) = core {
                core.executor.run_noted_tick(site);
            }
        });
    }
}

impl Noted for Microtask {
    fn call(site: Option<Site>) {
        current::with(|core| {
            if let Some(core) = core {
                core.executor.run_noted_microtask(site);
            }
        });
    }
}
