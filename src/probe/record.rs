//! Records: what a recorder keeps of a loop.

use std::fmt;

use crate::keeper::Keeper;
use crate::numbered::NumberedMap;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::task_info::Info;

/// What a [`Record`] describes.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Recorder, What};
/// use phaseloop::{Builder, spawn, task::yield_now};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new();
///     let event_loop = Builder::new().record(recorder.clone()).build()?;
///     event_loop.block_on(async { spawn(yield_now()).await.unwrap() });
///     let records = recorder.records();
///     let polls = records.iter().filter(|record| record.what == What::Poll);
///     for poll in polls {
///         println!("task {} ran for {} ns", poll.id, poll.end - poll.start);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// A wait for events. `id` is the number of events.
    Wait,
    /// A turn of the loop. `id` is the number of tasks at its end.
    Turn,
    /// The body of a callback, without the drain after it.
    Callback,
    /// A poll of a task. `id` is the task's number.
    Poll,
    /// A poll of the main future.
    Main,
    /// A tick.
    Tick,
    /// A microtask closure.
    Microtask,
    /// A timer that fired late: from its deadline to its call.
    Late,
    /// A wake. `id` is the number of the woken task.
    Wake,
    /// A busy period that was longer than the recorder's threshold.
    Slow,
    /// A message to another loop was sent. `id` is its number.
    Sent,
    /// A message was received. `id` is its number.
    Received,
}

impl What {
    /// Returns whether it is a piece of user code.
    pub(crate) fn is_activity(self) -> bool {
        matches!(
            self,
            Self::Callback | Self::Poll | Self::Main | Self::Tick | Self::Microtask
        )
    }
}

/// One entry of a [`Recorder`](super::Recorder): 32 bytes of plain data.
///
/// A record is written at the end of what it describes. Times are nanoseconds on the loop's clock.
///
/// # Examples
///
/// ```
/// use phaseloop::observe::{Recorder, What};
/// use phaseloop::{Builder, spawn, task::yield_now};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new();
///     let event_loop = Builder::new().record(recorder.clone()).build()?;
///     event_loop.block_on(async { spawn(yield_now()).await.unwrap() });
///     let records = recorder.records();
///     let polls = records.iter().filter(|record| record.what == What::Poll);
///     for poll in polls {
///         println!("task {} ran for {} ns", poll.id, poll.end - poll.start);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// When it began: the end of the record before it at the same depth.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The line of the program that created it, if known.
    pub site: Option<Site>,
    /// A number whose meaning depends on [`what`](Self::what).
    pub id: u32,
    /// What the record describes.
    pub what: What,
    /// The phase of a callback.
    pub phase: Option<Phase>,
    /// The kind of handle or request whose callback it is, if known.
    pub kind: Option<Keeper>,
    /// How many activities surround it: a task that is polled inside its spawner has a depth of 1.
    pub depth: u8,
}

impl Record {
    pub(crate) fn new(what: What, start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            site: None,
            id: 0,
            what,
            phase: None,
            kind: None,
            depth: 0,
        }
    }

    pub(crate) fn took(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The names and sites of the tasks in a trace, by number.
pub(crate) type Names = NumberedMap<u32, Info>;

/// Who used the time of a loop.
///
/// Subjects print as `task 3 "reader" (src/main.rs:12:5)`, `timers callback of a sleep
/// (src/main.rs:9:5)`, `tick (src/main.rs:20:5)`.
///
/// # Examples
///
/// ```
/// use std::{thread, time::Duration};
/// use phaseloop::{Builder, observe::{Recorder, Subject}};
///
/// fn main() -> std::io::Result<()> {
///     let recorder = Recorder::new().on_slow(|period| {
///         for suspect in &period.suspects {
///             match &suspect.who {
///                 Subject::Task(task) => println!("task {:?}", task.name()),
///                 other => println!("{other} at {:?}", other.site()),
///             }
///         }
///     });
///     let event_loop = Builder::new().record(recorder).build()?;
///     event_loop.block_on(async { thread::sleep(Duration::from_millis(15)) });
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Subject {
    /// A task.
    Task(Info),
    /// The callbacks of one kind that were created in one line.
    Callback {
        /// The phase that ran them.
        phase: Phase,
        /// What kind of handle or request they belong to, if known.
        kind: Option<Keeper>,
        /// The line that created the handle or request, if known.
        site: Option<Site>,
    },
    /// The ticks that were queued in one line.
    Tick(Option<Site>),
    /// The microtask closures that were queued in one line.
    Microtask(Option<Site>),
    /// The main future.
    Main(Option<Site>),
    /// The loop itself, or the rest of a list.
    Loop,
    /// The machine, or its operating system: it woke the loop late.
    Machine,
}

/// Equality of subjects, cheap to compare and to hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubjectKey {
    what: What,
    id: u32,
    phase: Option<Phase>,
    kind: Option<Keeper>,
    site: Option<Site>,
}

impl SubjectKey {
    pub(crate) fn of(record: &Record) -> Self {
        let mut key = Self {
            what: record.what,
            id: 0,
            phase: None,
            kind: None,
            site: None,
        };
        match record.what {
            What::Poll => key.id = record.id,
            What::Callback => {
                (key.phase, key.kind, key.site) = (record.phase, record.kind, record.site);
            }
            _ => key.site = record.site,
        }
        key
    }

    pub(crate) fn is_wait(&self) -> bool {
        self.what == What::Wait
    }

    pub(crate) fn subject(&self, names: &Names) -> Subject {
        match self.what {
            What::Poll => names
                .get(&self.id)
                .map_or(Subject::Loop, |info| Subject::Task(info.clone())),
            What::Callback => Subject::Callback {
                phase: self.phase.unwrap_or(Phase::Poll),
                kind: self.kind,
                site: self.site,
            },
            What::Tick => Subject::Tick(self.site),
            What::Microtask => Subject::Microtask(self.site),
            What::Main => Subject::Main(self.site),
            What::Wait => Subject::Machine,
            _ => Subject::Loop,
        }
    }
}

impl Subject {
    /// Returns the line of the program, if known.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use phaseloop::{Builder, observe::{Recorder, Subject}};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let recorder = Recorder::new().on_slow(|period| {
    ///         for suspect in &period.suspects {
    ///             match &suspect.who {
    ///                 Subject::Task(task) => println!("task {:?}", task.name()),
    ///                 other => println!("{other} at {:?}", other.site()),
    ///             }
    ///         }
    ///     });
    ///     let event_loop = Builder::new().record(recorder).build()?;
    ///     event_loop.block_on(async { thread::sleep(Duration::from_millis(15)) });
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn site(&self) -> Option<Site> {
        match self {
            Self::Task(info) => Some(info.spawned_at()),
            Self::Callback { site, .. }
            | Self::Tick(site)
            | Self::Microtask(site)
            | Self::Main(site) => *site,
            Self::Loop | Self::Machine => None,
        }
    }

    /// What the subject does several times: "polls", "callbacks".
    pub(crate) fn unit(&self, times: u64) -> &'static str {
        match (self, times) {
            (Self::Task(_) | Self::Main(_), 1) => "poll",
            (Self::Task(_) | Self::Main(_), _) => "polls",
            (Self::Loop, 1) => "other",
            (Self::Loop, _) => "others",
            (_, 1) => "call",
            (_, _) => "calls",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(info) => return info.fmt(f),
            Self::Callback {
                kind: Some(kind), ..
            } => kind.fmt(f)?,
            Self::Callback { phase, .. } => write!(f, "{phase} callback")?,
            Self::Tick(_) => f.write_str("tick")?,
            Self::Microtask(_) => f.write_str("microtask")?,
            Self::Main(_) => f.write_str("the main future")?,
            Self::Loop => f.write_str("the loop")?,
            Self::Machine => f.write_str("the machine (it woke the loop late)")?,
        }
        match self.site() {
            Some(site) => write!(f, " ({site})"),
            None => Ok(()),
        }
    }
}
