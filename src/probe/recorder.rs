//! The flight recorder of a loop: the newest records, and the line of each slow period.

use std::cell::{Cell, OnceCell, RefCell};
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
use crate::clock::{Clock, NEVER, nanoseconds};
use crate::numbered::NumberedSet;
use crate::phase_order::Phase;
use crate::stderr;
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
    /// Empty until the recorder is attached to a loop, so that the capacity can be set.
    ring: OnceCell<Ring>,
    names: RefCell<Names>,
    /// The numbers of the tasks that were polled in this round of the ring. Their names are stored.
    polled: RefCell<NumberedSet<u32>>,
    /// While a poll is in progress that began in the last round: the numbers of those that have
    /// ended in this one.
    ended: RefCell<NumberedSet<u32>>,
    /// Some of these numbers, by their low bits: most polls find theirs here.
    named: [Cell<u32>; NAMED],
    /// When it was attached.
    started: Cell<u64>,
    /// An activity that began before this time is ended by [`Recorder::end_cold`]: it may have
    /// begun before the recorder was attached, or in the last round of the ring.
    rare_before: Cell<u64>,
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

impl Begun {
    /// An activity that is inside no other.
    #[inline(always)]
    pub(crate) fn new(activity: Activity, origin: Origin, start: u64) -> Self {
        let (what, id, phase) = match activity {
            Activity::Callback(phase) => (What::Callback, 0, Some(phase)),
            Activity::Poll(id) => (What::Poll, number_of(id), None),
            Activity::Main => (What::Main, 0, None),
            Activity::Tick => (What::Tick, 0, None),
            Activity::Microtask => (What::Microtask, 0, None),
        };
        Self(Record {
            site: origin.site,
            id,
            phase,
            kind: origin.kind,
            ..Record::new(what, start, start)
        })
    }
}

type SlowListener = dyn FnMut(&SlowPeriod);

/// The places of [`State::named`], a power of two.
const NAMED: usize = 256;

/// The beginning of an activity: its record, whose end is not known yet.
#[derive(Clone, Copy)]
pub(crate) struct Begun(Record);

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
                ring: OnceCell::new(),
                names: RefCell::default(),
                polled: RefCell::default(),
                ended: RefCell::default(),
                named: [const { Cell::new(0) }; NAMED],
                started: Cell::new(0),
                rare_before: Cell::new(0),
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
        let before = self.state.on_slow.replace(Some(Box::new(f)));
        // User code, which may use the recorder.
        drop(before);
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
        self.state.ring.get().map(Ring::to_vec).unwrap_or_default()
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
        state.ring.get_or_init(|| Ring::new(state.capacity.get()));
        state.started.set(now);
        state.rare_before.set(now.saturating_add(1));
        state.usage.set(usage::of_thread());
        state.last_end.set(now);
        self.begin_turn(now);
    }

    /// Begins a turn. `now` is the cached time: no user code has run since it was read, or the last
    /// record has ended later.
    pub(crate) fn begin_turn(&self, now: u64) {
        let state = &*self.state;
        let now = now.max(state.last_end.get());
        state.turn.set(now);
        state.last_end.set(now);
        state.depth.set(0);
    }

    /// Ends a turn. `now` is the cached time, as of [`begin_turn`](Self::begin_turn).
    pub(crate) fn end_turn(&self, now: u64, tasks: usize) {
        let state = &*self.state;
        let now = now.max(state.last_end.get());
        let id = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.push(Record {
            id,
            ..Record::new(What::Turn, state.turn.get(), now)
        });
        state.last_end.set(now);
    }

    /// Excludes the time up to `now` from the next activity: an observer has used it, or the loop
    /// did not run.
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
        if let Activity::Poll(id) = activity {
            self.name(number_of(id), info);
        }
        let state = &*self.state;
        let depth = state.depth.get();
        state.depth.set(depth.saturating_add(1));
        let start = if depth == 0 {
            state.last_end.get()
        } else {
            clock.read()
        };
        if let Some(due) = origin.due {
            self.note_late(due, start, origin);
        }
        let Begun(record) = Begun::new(activity, origin, start);
        Begun(Record { depth, ..record })
    }

    /// Ends an activity. One that began with another recorder is not recorded.
    pub(crate) fn end(&self, Begun(record): Begun, now: u64) {
        let state = &*self.state;
        if record.start < state.rare_before.get() && !self.end_cold(&record) {
            return;
        }
        state.depth.set(record.depth);
        if record.depth == 0 {
            state.last_end.set(now);
        }
        self.push(Record { end: now, ..record });
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
    #[inline(never)]
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

    /// Notes a wake. It takes no clock reading: the time is that of the last record.
    pub(crate) fn wake(&self, id: u64) {
        self.push(self.wake_of(id));
    }

    #[inline(always)]
    fn wake_of(&self, id: u64) -> Record {
        let now = self.state.last_end.get();
        Record {
            id: number_of(id),
            ..Record::new(What::Wake, now, now)
        }
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

    /// Notes the end of a busy period. Returns whether [`end_long`](Self::end_long) must follow:
    /// the period was slow, or it is time to read what the thread has used.
    #[inline(always)]
    pub(crate) fn end_busy(&self, (start, end): (u64, u64)) -> bool {
        let state = &*self.state;
        state.last_end.set(end);
        let took = end.saturating_sub(start.max(state.started.get()));
        let busy = state.busy_since_usage.get() + took;
        state.busy_since_usage.set(busy);
        busy >= state.slow.get() / USAGE_SHARE
    }

    /// Reports a busy period that was slow.
    /// `overdue` returns the deadlines up to a time of the timers that were not called yet.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_long(
        &self,
        (start, end): (u64, u64),
        clock: &Clock,
        overdue: &dyn Fn(u64) -> Vec<u64>,
    ) {
        let start = start.max(self.state.started.get());
        let (took, slow) = (end.saturating_sub(start), self.state.slow.get());
        // On a paused clock the processor's time means nothing.
        let usage = (!clock.is_paused()).then(|| self.take_usage());
        if took >= slow && took > 0 {
            self.push(Record::new(What::Slow, start, end));
            let overdue = overdue(end.saturating_sub(blame::late_limit(slow)));
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
            stderr::print(format_args!("phaseloop: {period}"));
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
            stderr::print(format_args!("phaseloop: {period}"));
        }
    }

    fn push(&self, record: Record) {
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
    #[cold]
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

/// The short ways of what happens most. They make no call, so that their callers save no registers.
/// What they refuse is left to the functions above.
impl Recorder {
    /// Begins a poll of the task with this number, and returns its start. Returns `None` inside of
    /// another activity, and if the name of the task may have to be stored.
    #[inline(always)]
    pub(crate) fn try_begin_poll(&self, id: u64) -> Option<u64> {
        let id = number_of(id);
        let is_named = self.state.named[id as usize % NAMED].get() == id;
        if is_named { self.try_begin() } else { None }
    }

    /// Begins an activity that is no poll, and returns its start. Returns `None` inside of another
    /// activity.
    #[inline(always)]
    pub(crate) fn try_begin(&self) -> Option<u64> {
        let state = &*self.state;
        if state.depth.get() != 0 {
            return None;
        }
        state.depth.set(1);
        Some(state.last_end.get())
    }

    /// Ends an activity. Returns `false` if it was inside of another one, may have begun before the
    /// recorder was attached or in the last round of the ring, or if the round is over.
    #[inline(always)]
    pub(crate) fn try_end(&self, Begun(record): Begun, now: u64) -> bool {
        let state = &*self.state;
        let is_usual = record.depth == 0 && record.start >= state.rare_before.get();
        let is_written = is_usual && self.try_push(Record { end: now, ..record });
        if is_written {
            state.depth.set(0);
            state.last_end.set(now);
        }
        is_written
    }

    /// Notes a wake. Returns `false` if the round is over.
    #[inline(always)]
    pub(crate) fn try_wake(&self, id: u64) -> bool {
        self.try_push(self.wake_of(id))
    }

    #[inline(always)]
    fn try_push(&self, record: Record) -> bool {
        let ring = self.state.ring.get();
        ring.is_some_and(|ring| ring.push(record))
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
