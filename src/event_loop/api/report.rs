//! The report of a loop: what keeps it alive, and what its tasks wait for.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::rc::Rc;
use std::time::Duration;

use super::handle::{Header, Stage};
use super::loop_handle::LoopHandle;
use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::io::sources::Direction;
use crate::event_loop::ledger::jobs::Asker;
use crate::event_loop::phases::timers::Payload;
use crate::executor::registry::TaskState;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::task_info::Info;

/// The phases whose queues a report lists.
const PHASES: [Phase; 6] = [
    Phase::Pending,
    Phase::Idle,
    Phase::Prepare,
    Phase::Poll,
    Phase::Check,
    Phase::Closing,
];

/// More identical lines than this collapse into one with a count.
const ALIKE: usize = 3;

/// The maximum number of lines of each part of a report.
const LINES: usize = 50;

/// A description of what a loop waits for and what keeps it alive: the answer to "why does it
/// hang?".
///
/// [`LoopHandle::report`] creates it, and has an example. It is a snapshot in plain text for
/// people, and the text may change. Programs use [`keepers`](LoopHandle::keepers),
/// [`handles`](LoopHandle::handles) and [`tasks`](LoopHandle::tasks). `Debug` and `Display` print
/// one text.
///
/// Handles and tasks are listed oldest first, sleeps by their deadlines. If more than three items
/// have one source line and one state, they share one line with a count.
///
/// # What it does not know
///
/// - Immediates and futures that wait for a phase are only counted: they complete within a turn.
/// - A job of the thread pool is listed with the line of its `spawn_blocking`. A job of the file
///   system or of name lookup is listed with the name of the function and the task that called it.
/// - What a task waits for is known if it is part of the loop: I/O, a sleep, a job, a signal, a
///   child, a file watcher, a phase, another task. Channels and locks are "something else", and so
///   is everything that is polled with another waker than the task's, as in a `FuturesUnordered`.
pub struct Report {
    keepers: Part,
    /// Handles that are not started, and unref'd ones.
    others: Part,
    /// The main future and the tasks.
    pending: Part,
    is_closed: bool,
}

/// A handle, sleep or job of a report.
pub(crate) struct Waiting {
    pub(crate) kind: Keeper,
    /// The line that created it, if known.
    pub(crate) site: Option<Site>,
    /// Its state, as text.
    pub(crate) state: String,
    /// The time until it is due, if it has a deadline.
    pub(crate) due: Option<Due>,
    pub(crate) keeps_alive: bool,
    /// The data pointers of the wakers that wait for it.
    pub(crate) wakers: Vec<*const ()>,
}

/// The time until a deadline in nanoseconds, or [`NEVER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(pub(crate) u64);

impl LoopHandle {
    /// Returns a report of what keeps the loop alive, what else is open on it, and which tasks are
    /// pending, with names and source lines. Print it when a program hangs.
    ///
    /// The cost is proportional to the size of the report, and the loop is not changed. A loop that
    /// waits can print its report on a signal, or on the request of another thread: `remote.call(||
    /// eprintln!("{}", LoopHandle::current().report()))`. `examples/why_hang.rs` shows both. If a
    /// callback or poll does not return, the loop cannot report: inspect its stack with a debugger.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, task, time::sleep};
    ///
    /// phaseloop::block_on(async {
    ///     let task = task::Builder::new().name("sleeper").spawn(sleep(Duration::from_secs(3600)));
    ///     phaseloop::phase::check().await;
    ///     let report = LoopHandle::current().report().to_string();
    ///     assert!(report.contains("due in 3599."), "{report}");
    ///     assert!(report.contains("wakes task 1 \"sleeper\""), "{report}");
    ///     task.abort();
    /// });
    /// ```
    #[must_use]
    pub fn report(&self) -> Report {
        self.core().report()
    }
}

impl Core {
    fn report(&self) -> Report {
        let tasks = self.task_states();
        let found = self.all_that_waits(&tasks);
        let who = self.names(&tasks);
        let mut waits = Waits::new(&found, &tasks);
        for phase in PHASES {
            waits.add(
                &self.phases.queue(phase).wakers(),
                &format!("the {phase} phase"),
            );
        }
        let mut lines = Lines::default();

        self.add_main_future(&mut lines);
        for waiting in found.iter().filter(|waiting| waiting.keeps_alive) {
            lines.add_waiting(waiting, &who);
        }
        self.add_counted(&mut lines);
        let keepers = lines.take();

        for waiting in found.iter().filter(|waiting| !waiting.keeps_alive) {
            lines.add_waiting(waiting, &who);
        }
        let others = lines.take();

        if let Some(main) = self.executor.main_info() {
            let is_polled = self.executor.polls_main_future();
            let state = waits.of(main.waker, is_polled, false);
            lines.add(format!("the main future ({}): {state}", main.site));
        }
        let scheduled = self.scheduled_tasks();
        for task in &tasks {
            let is_scheduled = task.slot.is_some_and(|slot| scheduled.contains(&slot));
            let is_polled = task.slot.is_some_and(|slot| self.executor.is_polled(slot));
            let state = waits.of(task.waker, is_polled, is_scheduled);
            lines.add_task(&task.info, state);
        }
        Report {
            keepers,
            others,
            pending: lines.take(),
            is_closed: self.is_closed(),
        }
    }

    /// Lists handles, sleeps and jobs.
    fn all_that_waits(&self, tasks: &[TaskState]) -> Vec<Waiting> {
        let mut found = Vec::new();
        let now = self.clock().read();
        let mut due_timers = HashMap::new();
        let mut sleeps = Vec::new();
        self.each_timer(|deadline, payload, referenced| {
            let due = Due::from(deadline, now);
            match payload {
                Payload::Timer(timer) => {
                    due_timers.insert(Rc::as_ptr(&timer.header), due);
                }
                Payload::Sleep { waker, site } => sleeps.push(Waiting {
                    due: Some(due),
                    keeps_alive: referenced,
                    wakers: vec![waker.data()],
                    ..Waiting::new(Keeper::Sleep, Some(site))
                }),
            }
        });
        sleeps.sort_by_key(|sleep| sleep.due);
        let mut waits: HashMap<*const Header, _> = HashMap::new();
        for source in self.io.sources() {
            let header = Rc::as_ptr(&source.header);
            waits.insert(header, (source.waits(), source.has_request()));
        }
        for header in self.ledger.headers() {
            let waits = waits.remove(&Rc::as_ptr(&header));
            let (directions, has_request) = waits.unwrap_or_default();
            found.push(Waiting::of_handle(
                &header,
                directions,
                has_request,
                due_timers.get(&Rc::as_ptr(&header)).copied(),
            ));
        }
        found.append(&mut sleeps);
        let wakers: HashMap<_, _> = tasks
            .iter()
            .map(|task| (task.info.id(), task.waker))
            .collect();
        found.extend(self.ledger.jobs().iter().map(|job| Waiting {
            state: format!("{} (class {:?})", job.purpose.operation, job.purpose.class),
            keeps_alive: true,
            wakers: Vec::from_iter(match &job.asked_by {
                Asker::Task(id) | Asker::Handle { id, .. } => wakers.get(id).copied(),
                Asker::MainFuture => self.executor.main_info().map(|main| main.waker),
                Asker::Callback => None,
            }),
            ..Waiting::new(Keeper::Work, job.purpose.site)
        }));
        if let Some(extension) = self.extension.get() {
            extension.report(&mut found);
        }
        found
    }

    /// Adds the main future of `block_on`, which keeps the loop alive.
    fn add_main_future(&self, lines: &mut Lines) {
        if let (1.., Some(main)) = (
            self.ledger.count(Keeper::MainFuture),
            self.executor.main_info(),
        ) {
            lines.add(format!("{} ({})", Keeper::MainFuture, main.site));
        }
    }

    /// Adds the keepers that are counted and not listed.
    fn add_counted(&self, lines: &mut Lines) {
        for phase in PHASES {
            for _ in 0..self.phases.queue(phase).referenced() {
                lines.add(format!("queued for the {phase} phase"));
            }
        }
        if self.has_unlisted() {
            lines.add("woken tasks or queued closures, which run next".to_owned());
        }
    }

    /// Returns the slots of the tasks that were woken and are not polled yet.
    fn scheduled_tasks(&self) -> HashSet<u32> {
        let mut slots = HashSet::new();
        let mut add = |runnable: &Runnable| _ = slots.insert(runnable.slot());
        self.io.each_woken(&mut add);
        self.executor.each_woken(add);
        slots
    }

    /// Returns the names of the tasks and of the main future, by the data pointers of their wakers.
    fn names(&self, tasks: &[TaskState]) -> Names {
        let mut names: Names = tasks
            .iter()
            .map(|task| (task.waker, short_name(&task.info)))
            .collect();
        if let Some(main) = self.executor.main_info() {
            names.insert(main.waker, "the main future".to_owned());
        }
        names
    }
}

type Names = HashMap<*const (), String>;

fn short_name(info: &Info) -> String {
    match info.name() {
        Some(name) => format!("task {} {name:?}", info.id()),
        None => format!("task {}", info.id()),
    }
}

impl Due {
    pub(crate) fn from(deadline: u64, now: u64) -> Self {
        Self(if deadline == NEVER {
            NEVER
        } else {
            deadline.saturating_sub(now)
        })
    }
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            NEVER => f.write_str("never due"),
            0 => f.write_str("due now"),
            // Milliseconds are precise enough for a reader.
            nanoseconds if nanoseconds > 1_000_000 => {
                write!(
                    f,
                    "due in {:?}",
                    Duration::from_millis(nanoseconds / 1_000_000)
                )
            }
            nanoseconds => write!(f, "due in {:?}", Duration::from_nanos(nanoseconds)),
        }
    }
}

impl Waiting {
    pub(crate) fn new(kind: Keeper, site: Option<Site>) -> Self {
        Self {
            kind,
            site,
            state: String::new(),
            due: None,
            keeps_alive: false,
            wakers: Vec::new(),
        }
    }

    fn of_handle(
        header: &Header,
        directions: Vec<(Direction, Vec<*const ()>)>,
        has_request: bool,
        due: Option<Due>,
    ) -> Self {
        let (active, referenced) = (header.active.get(), header.referenced.get());
        let is_closing = header.stage.get() != Stage::Open;
        let waiters: Vec<_> = directions
            .iter()
            .map(|(direction, _)| direction.waiter())
            .collect();
        let mut state = if is_closing {
            "closed, completes in the closing phase".to_owned()
        } else if !waiters.is_empty() {
            let verb = if waiters.len() == 1 { "is" } else { "are" };
            format!("{} {verb} waiting", waiters.join(" and "))
        } else if active {
            String::new()
        } else if header.kind == Keeper::Io {
            "no task is waiting".to_owned()
        } else {
            "not started".to_owned()
        };
        if !referenced {
            state += if state.is_empty() {
                "unref'd"
            } else {
                ", unref'd"
            };
        }
        Self {
            state,
            due: due.filter(|_| active),
            keeps_alive: is_closing || active && referenced || has_request,
            wakers: directions
                .into_iter()
                .flat_map(|(_, who)| who)
                .chain(header.wakers())
                .collect(),
            ..Self::new(header.kind, Some(header.site()))
        }
    }

    /// Returns the kind and the line of its creation.
    fn name(&self) -> String {
        match self.site {
            Some(site) => format!("{} ({site})", self.kind),
            None => self.kind.to_string(),
        }
    }
}

impl Direction {
    fn waiter(self) -> &'static str {
        match self {
            Self::Read => "a reader",
            Self::Write => "a writer",
            Self::Priority => "a reader of urgent data",
            Self::HangUp => "a task for the peer's hang-up",
        }
    }
}

/// What each task waits for, by the data pointer of its wakers.
struct Waits {
    by_waker: HashMap<*const (), Vec<String>>,
}

impl Waits {
    fn new(found: &[Waiting], tasks: &[TaskState]) -> Self {
        let mut waits = Self {
            by_waker: HashMap::new(),
        };
        for waiting in found {
            waits.add(&waiting.wakers, &waiting.name());
        }
        for task in tasks {
            if let Some(awaiter) = task.awaiter {
                waits.add(&[awaiter], &short_name(&task.info));
            }
        }
        waits
    }

    /// Notes that the tasks with these wakers wait for `what`.
    fn add(&mut self, wakers: &[*const ()], what: &str) {
        for waker in wakers {
            let waits = self.by_waker.entry(*waker).or_default();
            waits.push(what.to_owned());
        }
    }

    /// Returns the state of a task, as text that follows its name.
    fn of(&self, waker: *const (), is_polled: bool, is_scheduled: bool) -> String {
        if is_polled {
            return "is being polled".to_owned();
        }
        if is_scheduled {
            return "was woken, will be polled".to_owned();
        }
        match self.by_waker.get(&waker) {
            Some(waits) => format!("waits for {}", waits.join(", ")),
            None => "waits for something else (a channel, a lock, another thread)".to_owned(),
        }
    }
}

/// Collects the lines of a report. Lines with equal keys form a group.
#[derive(Default)]
struct Lines {
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
}

struct Group {
    key: String,
    /// The first lines, which are printed if there are no more.
    lines: Vec<String>,
    count: usize,
    /// The earliest and the latest deadline.
    due: Option<(Due, Due)>,
}

impl Lines {
    fn add(&mut self, line: String) {
        self.add_to(line.clone(), line, None);
    }

    fn add_waiting(&mut self, waiting: &Waiting, names: &Names) {
        let mut key = waiting.name();
        if !waiting.state.is_empty() {
            let _ = write!(key, ": {}", waiting.state);
        }
        let mut line = key.clone();
        let mut separator = if waiting.state.is_empty() { ": " } else { ", " };
        if let Some(due) = waiting.due {
            let _ = write!(line, "{separator}{due}");
            separator = ", ";
        }
        let who = waiting.wakers.iter().filter_map(|waker| names.get(waker));
        let who: Vec<_> = who.map(String::as_str).collect();
        if !who.is_empty() {
            let _ = write!(line, "{separator}wakes {}", who.join(", "));
        }
        self.add_to(key, line, waiting.due);
    }

    fn add_task(&mut self, info: &Info, state: String) {
        let key = format!("task spawned at {}: {state}", info.spawned_at());
        self.add_to(key, format!("{info}: {state}"), None);
    }

    fn add_to(&mut self, key: String, line: String, due: Option<Due>) {
        let next = self.groups.len();
        let place = *self.by_key.entry(key.clone()).or_insert(next);
        if place == next {
            self.groups.push(Group {
                key,
                lines: Vec::new(),
                count: 0,
                due: due.map(|due| (due, due)),
            });
        }
        let group = &mut self.groups[place];
        group.count += 1;
        if group.lines.len() < ALIKE {
            group.lines.push(line);
        }
        if let (Some((first, last)), Some(due)) = (&mut group.due, due) {
            *first = due.min(*first);
            *last = due.max(*last);
        }
    }

    /// Takes the lines to print, and the number of items.
    fn take(&mut self) -> Part {
        let groups = std::mem::take(self).groups;
        let count = groups.iter().map(|group| group.count).sum();
        let mut lines = Vec::new();
        let mut printed = 0;
        for group in groups {
            if lines.len() >= LINES {
                lines.push(format!("and {} more", count - printed));
                break;
            }
            printed += group.count;
            if group.count <= ALIKE {
                lines.extend(group.lines);
                continue;
            }
            let mut line = format!("{} × {}", group.count, group.key);
            if let Some((first, last)) = group.due {
                let _ = write!(line, ", the first {first}, the last {last}");
            }
            lines.push(line);
        }
        Part { count, lines }
    }
}

/// A part of a report.
struct Part {
    count: usize,
    lines: Vec<String>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.lines.iter();
        lines.try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_closed {
            return f.write_str("The loop has been dropped.\n");
        }
        match self.keepers.count {
            0 => f.write_str("Nothing keeps the loop alive.\n")?,
            count => write!(f, "What keeps the loop alive ({count}):\n{}", self.keepers)?,
        }
        if self.others.count > 0 {
            let Part { count, .. } = self.others;
            write!(
                f,
                "Open, without keeping it alive ({count}):\n{}",
                self.others
            )?;
        }
        match self.pending.count {
            0 => f.write_str("No task is pending.\n"),
            count => write!(f, "Pending ({count}):\n{}", self.pending),
        }
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
