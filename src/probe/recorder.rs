//! The flight recorder of a loop: the newest records, and the line of each slow period.

use std::cell::{Cell, RefCell};
use std::collections::{HashSet, hash_map};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::blame::{self, Blame, SlowPeriod};
use super::record::{Names, Record, What};
use super::ring::Ring;
use super::switch::{Activity, Origin};
use super::trace::Trace;
use super::{chrome, html};
use crate::clock::{Clock, nanoseconds};
use crate::phase_order::Phase;
use crate::sys::usage::{self, Usage};
use crate::task_info::Info;

/// The default capacity: 2 MiB.
const CAPACITY: usize = 65_536;

/// The default threshold of a slow period.
const SLOW: Duration = Duration::from_millis(10);

/// At most one line about a slow period in this time, in nanoseconds.
const BETWEEN_LINES: u64 = 1_000_000_000;

/// The thread's usage is read after this share of a slow period in busy time.
const USAGE_SHARE: u64 = 10;

/// The number of the next recorder: its track in a trace.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

/// Records what a loop does: waits, callbacks, polls, ticks, wakes and late timers.
///
/// It keeps the newest records in a fixed amount of memory, and is made to be left on. It answers
/// who made timers late ([`blame`](Self::blame)), and writes timelines
/// ([`write_html`](Self::write_html), [`write_chrome`](Self::write_chrome)). Each busy period
/// longer than [`slow`](Self::slow) prints one line on standard error, at most one a second, or
/// calls [`on_slow`](Self::on_slow).
///
/// A recorder is a handle: its clones share the records. A recorder records one loop.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::Recorder, task, time::sleep};
///
/// # fn main() -> std::io::Result<()> {
/// let recorder = Recorder::new().on_slow(|period| println!("{period}"));
/// let mut event_loop = Builder::new().record(recorder.clone()).build()?;
/// event_loop.block_on(async {
///     let hash = task::Builder::new().name("hash").spawn(async {
///         thread::sleep(Duration::from_millis(30)); // blocks the loop
///     });
///     sleep(Duration::from_millis(5)).await;
///     hash.await.unwrap();
/// });
/// let blame = recorder.blame();
/// assert!(blame.culprits[0].who.to_string().contains("\"hash\""), "{blame}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Recorder {
    state: Rc<State>,
}

struct State {
    capacity: Cell<usize>,
    slow: Cell<u64>,
    on_slow: RefCell<Option<Box<SlowListener>>>,
    /// Whether each slow period prints its line, also if there is a listener.
    prints_each: Cell<bool>,
    number: u32,
    /// `None` until the recorder is attached to a loop, so that the capacity can be set.
    ring: RefCell<Option<Ring>>,
    names: RefCell<Names>,
    /// The numbers of tasks whose names are stored, by their low bits: most polls find theirs here.
    named: [Cell<u32>; NAMED],
    /// When it was attached.
    started: Cell<u64>,
    /// When the turn began.
    turn: Cell<u64>,
    /// The end of the last record of depth 0.
    last_end: Cell<u64>,
    depth: Cell<u8>,
    /// The last reading of what the thread had used, and the busy time since.
    usage: Cell<Option<Usage>>,
    busy_since_usage: Cell<u64>,
    last_line: Cell<Option<u64>>,
}

type SlowListener = dyn FnMut(&SlowPeriod);

/// The places of [`State::named`], a power of two.
const NAMED: usize = 64;

/// The beginning of an activity.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    /// The record, whose end is not known yet.
    record: Record,
    /// The number of the recorder.
    recorder: u32,
}

impl Recorder {
    /// Creates a recorder for 65,536 records (2 MiB) and slow periods of 10 ms.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Rc::new(State {
                capacity: Cell::new(CAPACITY),
                slow: Cell::new(nanoseconds(SLOW)),
                on_slow: RefCell::default(),
                prints_each: Cell::new(false),
                number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
                ring: RefCell::default(),
                names: RefCell::default(),
                named: [const { Cell::new(0) }; NAMED],
                started: Cell::new(0),
                turn: Cell::new(0),
                last_end: Cell::new(0),
                depth: Cell::new(0),
                usage: Cell::default(),
                busy_since_usage: Cell::new(0),
                last_line: Cell::default(),
            }),
        }
    }

    /// Sets the number of records that are kept, rounded up to a power of two. It has an effect
    /// before the first record only.
    #[must_use]
    pub fn capacity(self, records: usize) -> Self {
        self.state.capacity.set(records);
        self
    }

    /// Sets how long a busy period must be to be called slow.
    #[must_use]
    pub fn slow(self, threshold: Duration) -> Self {
        self.state.slow.set(nanoseconds(threshold));
        self
    }

    /// Calls `f` at the end of each slow period, in place of the line on standard error.
    ///
    /// `f` runs on the owner thread, before the loop waits. It must not run the loop.
    #[must_use]
    pub fn on_slow(self, f: impl FnMut(&SlowPeriod) + 'static) -> Self {
        *self.state.on_slow.borrow_mut() = Some(Box::new(f));
        self
    }

    /// Prints the line of each slow period, also if there is a listener.
    pub(crate) fn print_each(self) -> Self {
        self.state.prints_each.set(true);
        self
    }

    /// Returns the records, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        let ring = self.state.ring.borrow();
        ring.as_ref().map(Ring::to_vec).unwrap_or_default()
    }

    /// Returns who made timers late, over the records that are kept.
    #[must_use]
    pub fn blame(&self) -> Blame {
        blame::blame(&self.records(), &self.state.names.borrow())
    }

    /// Writes the records as JSON in the trace format of Chrome. Perfetto, `chrome://tracing` and
    /// speedscope open it.
    ///
    /// # Errors
    ///
    /// Any error of `out`.
    pub fn write_chrome(&self, mut out: impl io::Write) -> io::Result<()> {
        let (records, names) = (self.records(), self.state.names.borrow());
        chrome::write(&[self.trace(&records, &names)], &mut out)?;
        out.flush()
    }

    /// Writes the records as a page with a timeline. The page needs no network.
    ///
    /// # Errors
    ///
    /// Any error of `out`.
    pub fn write_html(&self, mut out: impl io::Write) -> io::Result<()> {
        let (records, names) = (self.records(), self.state.names.borrow());
        html::write(&self.trace(&records, &names), &mut out)?;
        out.flush()
    }

    fn trace<'a>(&self, records: &'a [Record], names: &'a Names) -> Trace<'a> {
        Trace::new(records, names, self.state.number)
    }
}

/// What the loop calls, through its probe.
impl Recorder {
    /// Begins to record: the recorder was attached to a loop.
    pub(crate) fn start(&self, now: u64) {
        let state = &*self.state;
        let mut ring = state.ring.borrow_mut();
        ring.get_or_insert_with(|| Ring::new(state.capacity.get()));
        state.started.set(now);
        state.usage.set(usage::of_thread());
        self.begin_turn(now);
    }

    pub(crate) fn begin_turn(&self, now: u64) {
        self.state.turn.set(now);
        self.state.last_end.set(now);
        self.state.depth.set(0);
    }

    pub(crate) fn end_turn(&self, now: u64, tasks: usize) {
        let id = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.push(Record {
            id,
            ..Record::new(What::Turn, self.state.turn.get(), now)
        });
        self.state.last_end.set(now);
    }

    /// Excludes the time up to `now` from the next activity: an observer has used it.
    pub(crate) fn skip_to(&self, now: u64) {
        if self.state.depth.get() == 0 {
            self.state.last_end.set(now);
        }
    }

    /// Begins an activity. The clock is read only for one inside another.
    pub(crate) fn begin(
        &self,
        activity: Activity,
        origin: Origin,
        clock: &Clock,
        info: &dyn Fn() -> Option<Info>,
    ) -> Begun {
        let state = &*self.state;
        let depth = state.depth.get();
        state.depth.set(depth.saturating_add(1));
        let start = if depth == 0 {
            state.last_end.get()
        } else {
            clock.read()
        };
        let (what, phase, id) = match activity {
            Activity::Callback(phase) => (What::Callback, Some(phase), 0),
            Activity::Poll(id) => (What::Poll, None, number_of(id)),
            Activity::Main => (What::Main, None, 0),
            Activity::Tick => (What::Tick, None, 0),
            Activity::Microtask => (What::Microtask, None, 0),
        };
        if let Some(due) = origin.due {
            self.note_late(due, start, origin);
        }
        if what == What::Poll && state.named[id as usize % NAMED].replace(id) != id {
            self.name(id, info);
        }
        let record = Record {
            start,
            end: start,
            site: origin.site,
            id,
            what,
            phase,
            kind: origin.kind,
            depth,
        };
        Begun {
            record,
            recorder: state.number,
        }
    }

    /// Ends an activity. One that began with another recorder is not recorded.
    pub(crate) fn end(&self, begun: Begun, now: u64) {
        let state = &*self.state;
        let record = begun.record;
        if begun.recorder != state.number || record.start < state.started.get() {
            return;
        }
        state.depth.set(record.depth);
        if record.depth == 0 {
            state.last_end.set(now);
        }
        self.push(Record { end: now, ..record });
    }

    /// Stores the name of a task, so that its records have one after its end.
    #[cold]
    fn name(&self, id: u32, info: &dyn Fn() -> Option<Info>) {
        let mut names = self.state.names.borrow_mut();
        if let hash_map::Entry::Vacant(place) = names.entry(id) {
            if let Some(info) = info() {
                place.insert(info);
            }
        }
    }

    /// Notes a wake. It takes no clock reading: the time is that of the last record.
    pub(crate) fn wake(&self, id: u64) {
        let now = self.state.last_end.get();
        self.push(Record {
            id: number_of(id),
            ..Record::new(What::Wake, now, now)
        });
    }

    /// Notes a timer that is called late.
    fn note_late(&self, deadline: u64, call: u64, origin: Origin) {
        if call.saturating_sub(deadline) > blame::late_limit(self.state.slow.get()) {
            self.push(Record {
                site: origin.site,
                kind: origin.kind,
                phase: Some(Phase::Timers),
                ..Record::new(What::Late, deadline, call)
            });
        }
    }

    /// Notes a wait for events.
    pub(crate) fn wait(&self, start: u64, end: u64, events: usize) {
        let id = u32::try_from(events).unwrap_or(u32::MAX);
        self.push(Record {
            id,
            ..Record::new(What::Wait, start, end)
        });
        self.state.last_end.set(end);
    }

    /// Notes the end of a busy period, and reports it if it was slow.
    /// `overdue` returns the deadlines up to a time of the timers that were not called yet.
    pub(crate) fn end_busy(
        &self,
        (start, end): (u64, u64),
        clock: &Clock,
        overdue: &dyn Fn(u64) -> Vec<u64>,
    ) {
        let state = &*self.state;
        state.last_end.set(end);
        let start = start.max(state.started.get());
        let took = end.saturating_sub(start);
        let slow = state.slow.get();
        let busy = state.busy_since_usage.get() + took;
        state.busy_since_usage.set(busy);
        // On a paused clock the processor's time means nothing.
        let asks = busy >= slow / USAGE_SHARE && !clock.is_paused();
        let usage = asks.then(|| self.take_usage());
        if took >= slow && took > 0 {
            self.push(Record::new(What::Slow, start, end));
            let overdue = overdue(end.saturating_sub(blame::late_limit(slow)));
            self.tell_slow((start, end), &overdue, usage.flatten());
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

    fn tell_slow(&self, span: (u64, u64), overdue: &[u64], usage: Option<Usage>) {
        let period = self.describe(span, overdue, usage);
        let prints_each = self.state.prints_each.get();
        if prints_each {
            eprintln!("phaseloop: {period}");
        }
        // Taken out, since the listener may use the recorder.
        let listener = self.state.on_slow.borrow_mut().take();
        match listener {
            Some(mut listener) => {
                listener(&period);
                self.state.on_slow.borrow_mut().get_or_insert(listener);
            }
            None if prints_each => {}
            None => self.print(&period, span.1),
        }
    }

    fn describe(&self, span: (u64, u64), overdue: &[u64], usage: Option<Usage>) -> SlowPeriod {
        let ring = self.state.ring.borrow();
        let newest = ring.iter().flat_map(Ring::newest_first);
        let mut records: Vec<_> = newest
            .take_while(|record| record.end >= span.0)
            .copied()
            .collect();
        records.reverse();
        let late = (overdue, blame::late_limit(self.state.slow.get()));
        blame::slow_period(&records, span, late, usage, &self.state.names.borrow())
    }

    fn print(&self, period: &SlowPeriod, now: u64) {
        let last = self.state.last_line.get();
        if last.is_none_or(|last| now.saturating_sub(last) >= BETWEEN_LINES) {
            self.state.last_line.set(Some(now));
            eprintln!("phaseloop: {period}");
        }
    }

    #[inline]
    fn push(&self, record: Record) {
        if let Some(ring) = &mut *self.state.ring.borrow_mut() {
            ring.push(record);
            if ring.is_at_start() {
                self.sweep_names(ring);
            }
        }
    }

    /// Drops the names of tasks without a record in the ring, once a round.
    #[cold]
    fn sweep_names(&self, ring: &Ring) {
        let polls = ring.newest_first();
        let polls = polls.filter(|record| record.what == What::Poll);
        let polled: HashSet<_> = polls.map(|record| record.id).collect();
        self.state
            .names
            .borrow_mut()
            .retain(|id, _| polled.contains(id));
        for place in &self.state.named {
            place.set(0);
        }
    }
}

/// Returns the number of a task in a record. Numbers start at 1 and wrap after 2^32 tasks.
#[expect(clippy::cast_possible_truncation, reason = "it wraps")]
fn number_of(id: u64) -> u32 {
    id as u32
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("slow", &Duration::from_nanos(self.state.slow.get()))
            .finish_non_exhaustive()
    }
}
