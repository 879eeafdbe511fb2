//! The flight recorder of a loop: the newest records, and the line of each slow period.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::blame::{self, Blame, SlowPeriod};
use super::record::{Names, Record, What};
use super::ring::Ring;
use super::trace::Trace;
use super::{chrome, html};
use crate::task_info::Info;
use crate::keeper::Keeper;
use crate::site::Site;
use crate::sys::usage::{self, Usage};
use crate::phase_order::Phase;

/// The default capacity: 2 MiB.
const CAPACITY: usize = 65_536;

/// The default threshold of a slow period.
const SLOW: Duration = Duration::from_millis(10);

/// At most one line about a slow period in this time, in nanoseconds.
const BETWEEN_LINES: u64 = 1_000_000_000;

/// The number of the next recorder: its track in a trace.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

/// Records what a loop does: waits, callbacks, polls, ticks, wakes and late timers.
///
/// It keeps the newest records in a fixed amount of memory, and is made to be left on. It answers who
/// made timers late ([`blame`](Self::blame)), and writes timelines ([`write_html`](Self::write_html),
/// [`write_chrome`](Self::write_chrome)). Each busy period longer than [`slow`](Self::slow) prints one
/// line on standard error, at most one a second, or calls [`on_slow`](Self::on_slow).
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
    number: u32,
    /// `None` until the first record, so that the capacity can be set.
    ring: RefCell<Option<Ring>>,
    names: RefCell<Names>,
    /// The end of the last record of depth 0.
    last_end: Cell<u64>,
    depth: Cell<u8>,
    /// What the thread had used when the busy period began.
    usage: Cell<Option<Usage>>,
    last_line: Cell<Option<u64>>,
}

type SlowListener = dyn FnMut(&SlowPeriod);

/// The beginning of an activity.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    start: u64,
    depth: u8,
}

/// Who an activity is.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) what: What,
    pub(crate) phase: Option<Phase>,
    pub(crate) kind: Option<Keeper>,
    pub(crate) site: Option<Site>,
    pub(crate) id: u32,
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
                number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
                ring: RefCell::default(),
                names: RefCell::default(),
                last_end: Cell::new(0),
                depth: Cell::new(0),
                usage: Cell::default(),
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

/// What the loop calls.
impl Recorder {
    /// Notes the beginning of a turn, or of a run.
    pub(crate) fn begin_turn(&self, now: u64) {
        self.state.last_end.set(now);
        self.state.depth.set(0);
    }

    pub(crate) fn end_turn(&self, start: u64, now: u64, tasks: usize) {
        let id = u32::try_from(tasks).unwrap_or(u32::MAX);
        self.push(Record {
            id,
            ..Record::new(What::Turn, start, now)
        });
        self.state.last_end.set(now);
    }

    /// Notes the beginning of an activity. `now` reads the clock; it is called only for an activity
    /// inside another one.
    pub(crate) fn begin(&self, now: impl FnOnce() -> u64) -> Begun {
        let depth = self.state.depth.get();
        self.state.depth.set(depth.saturating_add(1));
        let start = if depth == 0 {
            self.state.last_end.get()
        } else {
            now()
        };
        Begun { start, depth }
    }

    pub(crate) fn end(&self, begun: Begun, origin: Origin, now: u64) {
        self.state.depth.set(begun.depth);
        if begun.depth == 0 {
            self.state.last_end.set(now);
        }
        self.push(Record {
            site: origin.site,
            id: origin.id,
            phase: origin.phase,
            kind: origin.kind,
            depth: begun.depth,
            ..Record::new(origin.what, begun.start, now)
        });
    }

    /// Stores the name of a task, so that its records have one after its end.
    pub(crate) fn name(&self, id: u32, info: impl FnOnce() -> Option<Info>) {
        let mut names = self.state.names.borrow_mut();
        if !names.contains_key(&id) {
            if let Some(info) = info() {
                names.insert(id, info);
            }
        }
    }

    /// Notes a wake. It takes no clock reading: the time is that of the last record.
    pub(crate) fn wake(&self, id: u32) {
        let now = self.state.last_end.get();
        self.push(Record {
            id,
            ..Record::new(What::Wake, now, now)
        });
    }

    /// Notes the call of a timer, if it is late.
    pub(crate) fn fire(&self, deadline: u64, site: Option<Site>, kind: Keeper) {
        let call = self.state.last_end.get();
        if call.saturating_sub(deadline) > blame::late_limit(self.state.slow.get()) {
            self.push(Record {
                site,
                kind: Some(kind),
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
        self.state.usage.set(usage::of_thread());
    }

    /// Notes the end of a busy period, and reports it if it was slow.
    pub(crate) fn end_busy(&self, start: u64, end: u64) {
        if end.saturating_sub(start) < self.state.slow.get() {
            return;
        }
        self.push(Record::new(What::Slow, start, end));
        let earlier = self.state.usage.get().unwrap_or_default();
        let usage = usage::of_thread().map(|now| now.since(earlier));
        let period = self.describe(start, end, usage);
        // Taken out, since the listener may use the recorder.
        let listener = self.state.on_slow.borrow_mut().take();
        match listener {
            Some(mut listener) => {
                listener(&period);
                self.state.on_slow.borrow_mut().get_or_insert(listener);
            }
            None => self.print(&period, end),
        }
    }

    fn describe(&self, start: u64, end: u64, usage: Option<Usage>) -> SlowPeriod {
        let ring = self.state.ring.borrow();
        let newest = ring.iter().flat_map(Ring::newest_first);
        let mut records: Vec<_> = newest
            .take_while(|record| record.end >= start)
            .copied()
            .collect();
        records.reverse();
        blame::slow_period(&records, (start, end), usage, &self.state.names.borrow())
    }

    fn print(&self, period: &SlowPeriod, now: u64) {
        let last = self.state.last_line.get();
        if last.is_none_or(|last| now.saturating_sub(last) >= BETWEEN_LINES) {
            self.state.last_line.set(Some(now));
            eprintln!("phaseloop: {period}");
        }
    }

    fn push(&self, record: Record) {
        let mut ring = self.state.ring.borrow_mut();
        let ring = ring.get_or_insert_with(|| Ring::new(self.state.capacity.get()));
        if ring.is_at_start() {
            // Once a round, names of tasks without a record in the ring are dropped.
            let mut names = self.state.names.borrow_mut();
            let polls = ring
                .newest_first()
                .filter(|record| record.what == What::Poll);
            let polled: HashSet<_> = polls.map(|record| record.id).collect();
            names.retain(|id, _| polled.contains(id));
        }
        ring.push(record);
    }
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

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
