//! What a loop reports to its recorder, and the records that it writes.
// Marks: a record is made where it is written (row `self_wake/recorded`).

use super::{NAMED, Recorder, number_of};
use crate::clock::NEVER;
use crate::numbered::NumberedSet;
use crate::phase_order::Phase;
use crate::probe::blame::{self, SlowPeriod};
use crate::probe::observer::{Activity, Body, BusyPeriod, Observer, Waited, Wake, Wants};
use crate::probe::of_loop::OfLoop;
use crate::probe::origin::Origin;
use crate::probe::record::{Record, What};
use crate::probe::ring::Ring;
use crate::stderr;
use crate::sys::usage::{self, Usage};
use crate::task_info::{Id, Info};

/// At most one line about a slow period in this time, in nanoseconds.
const BETWEEN_LINES: u64 = 1_000_000_000;

/// The thread's usage is read after this share of a slow period in busy time.
const USAGE_SHARE: u64 = 10;

impl Observer for Recorder {
    fn wants(&self) -> Wants {
        Wants::ACTIVITIES | Wants::TURNS | Wants::WAITS | Wants::BUSY | Wants::WAKES
    }

    fn attached(&self, now: u64) {
        let state = &*self.state;
        state.ring.get_or_init(|| Ring::new(state.capacity.get()));
        state.started.set(now);
        state.rare_before.set(now.saturating_add(1));
        state.usage.set(usage::of_thread());
        state.last_end.set(now);
        self.begin_turn(now);
    }

    /// The clock is read only for an activity inside another, and behind other observers: their
    /// time is the loop's.
    fn begin(&self, activity: &Activity<'_>) {
        if let Body::Poll(id) = activity.body {
            self.name(number_of(id), activity.info);
        }
        let state = &*self.state;
        let depth = state.depth.get();
        state.depth.set(depth.saturating_add(1));
        let start = if depth == 0 && !activity.is_shared {
            state.last_end.get()
        } else {
            activity.now()
        };
        state.open.borrow_mut().push((start, depth));
        if let Some(due) = activity.origin.due {
            self.note_late(due, start, activity);
        }
    }

    fn end(&self, activity: &Activity<'_>) {
        let opened = self.state.open.borrow_mut().pop();
        if let Some((start, depth)) = opened {
            let record = record_of(activity.body, activity.origin, start, depth);
            let end = activity.now();
            self.finish(Record { end, ..record });
        }
    }

    /// `now` is the cached time: no user code has run since it was read, or the last record has
    /// ended later.
    fn begin_turn(&self, now: u64) {
        let state = &*self.state;
        let now = now.max(state.last_end.get());
        state.turn.set(now);
        state.last_end.set(now);
        state.depth.set(0);
    }

    fn end_turn(&self, now: u64, tasks: usize) {
        let state = &*self.state;
        let now = now.max(state.last_end.get());
        self.push(Record {
            id: u32::try_from(tasks).unwrap_or(u32::MAX),
            ..Record::new(What::Turn, state.turn.get(), now)
        });
        state.last_end.set(now);
    }

    fn end_wait(&self, waited: &Waited) {
        self.push(Record {
            id: u32::try_from(waited.events).unwrap_or(u32::MAX),
            ..Record::new(What::Wait, waited.start, waited.end)
        });
        self.state.last_end.set(waited.end);
    }

    /// What was before it is not the loop's.
    fn begin_busy(&self, now: u64) {
        if self.state.depth.get() == 0 {
            self.state.last_end.set(now);
        }
    }

    fn end_busy(&self, period: &BusyPeriod<'_>) {
        let state = &*self.state;
        state.last_end.set(period.end);
        let start = period.start.max(state.started.get());
        let busy = state.busy_since_usage.get() + period.end.saturating_sub(start);
        state.busy_since_usage.set(busy);
        // The period was slow, or it is time to read what the thread has used.
        if busy >= state.slow.get() / USAGE_SHARE {
            self.end_long(start, period);
        }
    }

    /// It takes no clock reading: the time is that of the last record.
    fn woken(&self, wake: &Wake<'_>) {
        self.push(self.wake_of(wake.id));
    }

    fn add_to_report(&self, report: &mut String) {
        report.push_str(&self.blame().to_string());
    }
}

/// The record of an activity whose end is not known yet.
#[inline(always)]
pub(super) fn record_of(body: Body, origin: Origin, start: u64, depth: u8) -> Record {
    let (what, id, phase) = match body {
        Body::Callback(phase) => (What::Callback, 0, Some(phase)),
        Body::Poll(id) => (What::Poll, number_of(id), None),
        Body::MainFuture => (What::Main, 0, None),
        Body::Tick => (What::Tick, 0, None),
        Body::Microtask => (What::Microtask, 0, None),
    };
    Record {
        site: origin.site,
        id,
        phase,
        kind: origin.kind,
        depth,
        ..Record::new(what, start, start)
    }
}

/// Activities.
impl Recorder {
    /// The record of a wake. Its time is that of the last record.
    #[inline(always)]
    pub(super) fn wake_of(&self, id: Id) -> Record {
        let now = self.state.last_end.get();
        Record {
            id: number_of(id),
            ..Record::new(What::Wake, now, now)
        }
    }

    /// Writes the record of an activity. One that began before the recorder was attached, or was in
    /// progress when it was removed, is not recorded.
    pub(super) fn finish(&self, record: Record) {
        let state = &*self.state;
        if record.start < state.rare_before.get() && !self.end_cold(&record) {
            return;
        }
        state.depth.set(record.depth);
        if record.depth == 0 {
            state.last_end.set(record.end);
        }
        self.push(record);
    }

    /// Stops: what is in progress is not recorded.
    pub(super) fn detached(&self) {
        self.state.started.set(NEVER);
        self.state.rare_before.set(NEVER);
    }

    /// Returns whether an activity is recorded that may have begun before the recorder was
    /// attached, or in the last round of the ring.
    fn end_cold(&self, record: &Record) -> bool {
        let state = &*self.state;
        // At the end of an activity that began with another recorder, those that began with this
        // one have ended.
        let is_of_another = state.depth.get() == 0;
        if is_of_another || record.start < state.started.get() {
            return false;
        }
        let is_another_round = state.rare_before.get() == NEVER;
        if is_another_round && record.what == What::Poll {
            state.ended.borrow_mut().insert(record.id);
        }
        if is_another_round && record.depth == 0 {
            // None that began in the last round is in progress any more.
            self.begin_round(state.ended.take());
            state.rare_before.set(state.started.get().saturating_add(1));
        }
        true
    }

    /// Begins a round of the ring, which has records of polls of these tasks.
    fn begin_round(&self, polled: NumberedSet<u32>) {
        self.state.polled.replace(polled);
        for place in &self.state.named {
            place.set(0);
        }
    }

    /// Stores the name of a task with the first of its polls in a round of the ring, so that its
    /// records have one after its end.
    fn name(&self, id: u32, info: &dyn Fn() -> Option<Info>) {
        let is_known = self.state.named[id as usize % NAMED].replace(id) == id;
        if is_known || !self.state.polled.borrow_mut().insert(id) {
            return;
        }
        let mut names = self.state.names.borrow_mut();
        if !names.contains_key(&id) {
            names.extend(info().map(|info| (id, info)));
        }
    }

    /// Notes a timer that is called late.
    fn note_late(&self, deadline: u64, call: u64, activity: &Activity<'_>) {
        if call.saturating_sub(deadline) > blame::late_limit(self.state.slow.get()) {
            self.push(Record {
                site: activity.origin.site,
                kind: activity.origin.kind,
                phase: Some(Phase::Timers),
                ..Record::new(What::Late, deadline, call)
            });
        }
    }

    pub(in crate::probe) fn push(&self, record: Record) {
        if let Some(ring) = self.state.ring.get() {
            if !ring.push(record) {
                self.sweep_names();
                ring.begin_round();
                ring.push(record);
            }
        }
    }

    /// Drops the names of tasks without a record in the ring, once a round: those that were not
    /// polled in the round that ends. The polls that are in progress are ended in another round;
    /// until then, all names stay.
    fn sweep_names(&self) {
        let state = &*self.state;
        let polled = state.polled.borrow();
        state.names.borrow_mut().retain(|id, _| polled.contains(id));
        drop(polled);
        if state.depth.get() == 0 {
            self.begin_round(NumberedSet::default());
        } else {
            state.rare_before.set(NEVER);
        }
    }
}

/// Busy periods.
impl Recorder {
    /// Reports a busy period that was slow. `start` is when the recorder has begun to see it.
    fn end_long(&self, start: u64, period: &BusyPeriod<'_>) {
        let (end, slow) = (period.end, self.state.slow.get());
        let took = end.saturating_sub(start);
        // On a paused clock the processor's time means nothing.
        let usage = (!period.is_clock_paused()).then(|| self.take_usage());
        if took >= slow && took > 0 {
            self.push(Record::new(What::Slow, start, end));
            let overdue = period.overdue(end.saturating_sub(blame::late_limit(slow)));
            self.report_slow((start, end), &overdue, usage.flatten());
        }
    }

    /// Returns what the thread has used since the last call.
    // Two system calls. Between two readings lies at most a tenth of a slow period in other busy
    // periods, which is the error of what is said of one.
    fn take_usage(&self) -> Option<Usage> {
        let state = &*self.state;
        state.busy_since_usage.set(0);
        let now = usage::of_thread();
        let earlier = state.usage.replace(now);
        Some(now?.since(earlier?))
    }

    fn report_slow(&self, span: (u64, u64), overdue: &[u64], usage: Option<Usage>) {
        let period = self.describe(span, overdue, usage);
        let prints_each = self.state.prints_each.get();
        if prints_each {
            let of_loop = OfLoop(self.state.index.get());
            stderr::print(format_args!("phaseloop: {of_loop}{period}"));
        }
        // Taken out, since the listener may use the recorder.
        let listener = self.state.on_slow.borrow_mut().take();
        match listener {
            Some(mut listener) => {
                listener(&period);
                // Unless the listener has set another one.
                if self.state.on_slow.borrow().is_none() {
                    self.state.on_slow.replace(Some(listener));
                }
            }
            None if prints_each => {}
            None => self.print(&period, span.1),
        }
    }

    fn describe(&self, span: (u64, u64), overdue: &[u64], usage: Option<Usage>) -> SlowPeriod {
        let newest = self.state.ring.get().into_iter();
        let mut records: Vec<_> = newest
            .flat_map(Ring::newest_first)
            .take_while(|record| record.end >= span.0)
            .collect();
        records.reverse();
        let late = (overdue, blame::late_limit(self.state.slow.get()));
        blame::slow_period(&records, span, late, usage, &self.state.names.borrow())
    }

    fn print(&self, period: &SlowPeriod, now: u64) {
        let last = self.state.last_line.get();
        if last.is_none_or(|last| now.saturating_sub(last) >= BETWEEN_LINES) {
            self.state.last_line.set(Some(now));
            let of_loop = OfLoop(self.state.index.get());
            stderr::print(format_args!("phaseloop: {of_loop}{period}"));
        }
    }
}
