//! The flight recorder of a loop: the newest records, and the line of each slow period.

mod events;
mod fast;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::blame::{self, Blame, SlowPeriod};
use super::record::{Names, Record};
use super::ring::Ring;
use super::trace::Trace;
use super::{chrome, html};
use crate::clock::nanoseconds;
use crate::numbered::NumberedSet;
use crate::sys::usage::Usage;
use crate::task_info::Id;

pub(super) use fast::Recorders;

/// The default capacity: 2 MiB.
const CAPACITY: usize = 65_536;

/// The default threshold of a slow period.
const SLOW: Duration = Duration::from_millis(10);

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
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().on_slow(|period| println!("{period}"));
///     let mut event_loop = Builder::new().record(recorder.clone()).build()?;
///     event_loop.block_on(async {
///         let hash = task::Builder::new().name("hash").spawn(async {
///             thread::sleep(Duration::from_millis(30)); // blocks the loop
///         });
///         sleep(Duration::from_millis(5)).await;
///         hash.await.unwrap();
///     });
///     let blame = recorder.blame();
///     assert!(blame.culprits[0].who.to_string().contains("\"hash\""), "{blame}");
///     Ok(())
/// }
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
    /// The index of the loop among several of one program.
    index: Cell<Option<u32>>,
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
    /// An activity that began before this time is ended by `Recorder::end_cold`: it may have
    /// begun before the recorder was attached, or in the last round of the ring.
    rare_before: Cell<u64>,
    /// When the turn began.
    turn: Cell<u64>,
    /// The end of the last record of depth 0.
    last_end: Cell<u64>,
    depth: Cell<u8>,
    /// The starts and depths of the activities in progress that did not take the short way.
    open: RefCell<Vec<(u64, u8)>>,
    /// The last reading of what the thread had used, and the busy time since.
    usage: Cell<Option<Usage>>,
    busy_since_usage: Cell<u64>,
    last_line: Cell<Option<u64>>,
}

type SlowListener = dyn FnMut(&SlowPeriod);

/// The places of [`State::named`], a power of two.
const NAMED: usize = 256;

impl Recorder {
    /// Creates a recorder for 65,536 records (2 MiB) and slow periods of 10 ms.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new()
    ///         .capacity(1 << 12)
    ///         .slow(Duration::from_millis(5))
    ///         .on_slow(|period| eprintln!("{period}"));
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Rc::new(State {
                capacity: Cell::new(CAPACITY),
                slow: Cell::new(nanoseconds(SLOW)),
                on_slow: RefCell::default(),
                prints_each: Cell::new(false),
                number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
                index: Cell::new(None),
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
                open: RefCell::default(),
                usage: Cell::default(),
                busy_since_usage: Cell::new(0),
                last_line: Cell::default(),
            }),
        }
    }

    /// Sets the number of records that are kept, rounded up to a power of two. It has an effect
    /// before the first record only.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new()
    ///         .capacity(1 << 12)
    ///         .slow(Duration::from_millis(5))
    ///         .on_slow(|period| eprintln!("{period}"));
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn capacity(self, records: usize) -> Self {
        self.state.capacity.set(records);
        self
    }

    /// Sets how long a busy period must be to be called slow.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new()
    ///         .capacity(1 << 12)
    ///         .slow(Duration::from_millis(5))
    ///         .on_slow(|period| eprintln!("{period}"));
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn slow(self, threshold: Duration) -> Self {
        self.state.slow.set(nanoseconds(threshold));
        self
    }

    /// Calls `f` at the end of each slow period, in place of the line on standard error.
    ///
    /// `f` runs on the owner thread, before the loop waits. It must not run the loop.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new()
    ///         .capacity(1 << 12)
    ///         .slow(Duration::from_millis(5))
    ///         .on_slow(|period| eprintln!("{period}"));
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
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

    /// Sets the index of the loop among several of one program.
    pub(crate) fn set_index(&self, index: Option<u32>) {
        self.state.index.set(index);
    }

    /// Calls `f` with the trace, whose times are so many nanoseconds later.
    #[cfg(feature = "cluster")]
    pub(super) fn with_trace<R>(&self, later: u64, f: impl FnOnce(&Trace<'_>) -> R) -> R {
        let (mut records, names) = (self.records(), self.state.names.borrow());
        for record in &mut records {
            record.start += later;
            record.end += later;
        }
        f(&self.trace(&records, &names))
    }

    /// Returns the records, oldest first.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new();
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{} records", recorder.records().len());
    ///     let (mut page, mut trace) = (Vec::new(), Vec::new());
    ///     recorder.write_html(&mut page)?; // a timeline for a browser
    ///     recorder.write_chrome(&mut trace)?; // for Perfetto
    ///     assert!(!page.is_empty() && !trace.is_empty());
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.state.ring.get().map(Ring::to_vec).unwrap_or_default()
    }

    /// Returns who made timers late, over the records that are kept.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new()
    ///         .capacity(1 << 12)
    ///         .slow(Duration::from_millis(5))
    ///         .on_slow(|period| eprintln!("{period}"));
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{}", recorder.blame());
    ///     Ok(())
    /// }
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new();
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{} records", recorder.records().len());
    ///     let (mut page, mut trace) = (Vec::new(), Vec::new());
    ///     recorder.write_html(&mut page)?; // a timeline for a browser
    ///     recorder.write_chrome(&mut trace)?; // for Perfetto
    ///     assert!(!page.is_empty() && !trace.is_empty());
    ///     Ok(())
    /// }
    /// ```
    pub fn write_chrome(&self, mut out: impl io::Write) -> io::Result<()> {
        let (records, names) = (self.records(), self.state.names.borrow());
        chrome::write(&self.trace(&records, &names), &mut out)?;
        out.flush()
    }

    /// Writes the records as a page with a timeline. The page needs no network.
    ///
    /// # Errors
    ///
    /// Any error of `out`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{Builder, observe::Recorder};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new();
    ///     let event_loop = Builder::new().record(recorder.clone()).build()?;
    ///     event_loop.block_on(async {});
    ///     println!("{} records", recorder.records().len());
    ///     let (mut page, mut trace) = (Vec::new(), Vec::new());
    ///     recorder.write_html(&mut page)?; // a timeline for a browser
    ///     recorder.write_chrome(&mut trace)?; // for Perfetto
    ///     assert!(!page.is_empty() && !trace.is_empty());
    ///     Ok(())
    /// }
    /// ```
    pub fn write_html(&self, mut out: impl io::Write) -> io::Result<()> {
        let (records, names) = (self.records(), self.state.names.borrow());
        html::write(&self.trace(&records, &names), &mut out)?;
        out.flush()
    }

    fn trace<'a>(&self, records: &'a [Record], names: &'a Names) -> Trace<'a> {
        Trace {
            index: self.state.index.get(),
            ..Trace::new(records, names, self.state.number)
        }
    }
}

/// Returns the number of a task in a record. Numbers start at 1 and wrap after 2^32 tasks.
#[expect(clippy::cast_possible_truncation, reason = "it wraps")]
fn number_of(id: Id) -> u32 {
    id.0 as u32
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
