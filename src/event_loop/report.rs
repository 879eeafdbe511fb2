//! Why a loop does not end, in words.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::rc::Rc;
use std::time::Duration;

use super::clock::NEVER;
use super::core::{Core, MAIN};
use super::handle::LoopHandle;
use super::handles::{Header, Stage};
use super::jobs::Asker;
use super::sources::Direction;
use super::timers::Payload;
use crate::executor::registry::{Info, TaskState};
use crate::executor::spawn::Message;
use crate::kinds::{Kind, Phase, Site};

/// The phases that something can be queued for.
const PHASES: [Phase; 6] = [
    Phase::Pending,
    Phase::Idle,
    Phase::Prepare,
    Phase::Poll,
    Phase::Check,
    Phase::Closing,
];

/// Of so many lines that say the same, and no more, each is printed.
const ALIKE: usize = 3;

/// How many lines each part of a report has at most.
const LINES: usize = 50;

/// What a loop waits for, who waits, and what keeps it alive: the answer to "why does it hang?".
///
/// Made by [`LoopHandle::report`], which has an example. It is a picture of that moment, in plain text, for people; it may
/// change. [`keepers`](LoopHandle::keepers), [`handles`](LoopHandle::handles) and [`tasks`](LoopHandle::tasks) are for
/// programs. `Debug` prints the same as `Display`.
///
/// Handles and tasks come in the order of their age, the oldest first; sleeps by when they are due. What was made by one
/// line and is in the same state, more than three times, is one line with a count.
///
/// # What it does not know
///
/// - Immediates and futures that wait for a phase have no line of their own, only a count: they are over within a turn.
/// - Jobs of the thread pool have the line of their `spawn_blocking`; those of files and names have the name of the
///   function and the task that called it.
/// - What a task waits for is known if it is on the loop: I/O, a sleep, a job, a signal, a child, a file watcher, a phase,
///   another task. Channels and locks are "something else", and so is all that is waited for through a waker of somebody
///   else's, as in a `FuturesUnordered`.
pub struct Report {
    keepers: Part,
    /// Handles that are not started, and what is unref'd.
    others: Part,
    /// The main future, and tasks.
    pending: Part,
    is_closed: bool,
}

/// One thing that waits, or could.
pub(crate) struct Waiting {
    pub(crate) kind: Kind,
    /// The line that made it, where it is known.
    pub(crate) site: Option<Site>,
    /// What it waits for, in words.
    pub(crate) state: String,
    /// How long it is until it is due, if it will be.
    pub(crate) due: Option<Due>,
    pub(crate) keeps_alive: bool,
    /// What the wakers of those who wait for it point to.
    pub(crate) wakers: Vec<*const ()>,
}

/// In how many nanoseconds something is due; [`NEVER`] stands for that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due(pub(crate) u64);

impl LoopHandle {
    /// What keeps the loop alive, what else is open on it, and which tasks have not ended, with names and lines: what to
    /// print when a program does not end, or does nothing.
    ///
    /// It costs time in proportion to all of that, and changes nothing. A program that waits can still be asked: by a
    /// signal, or by another thread, which calls `remote.call(|| eprintln!("{}", LoopHandle::current().report()))`.
    /// `examples/why_hang.rs` shows both. One whose callback or poll does not return cannot: look at its stack with a
    /// debugger.
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
    ///     assert!(report.contains("for task 1 \"sleeper\""), "{report}");
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
        let tasks = self.tasks.states();
        let found = self.all_that_waits(&tasks);
        let who = self.names(&tasks);
        let mut waits = Waits::new(&found, &tasks);
        for phase in PHASES {
            waits.add(&self.queue(phase).wakers(), &format!("the {phase} phase"));
        }
        let mut lines = Lines::default();

        self.add_root(&mut lines);
        for waiting in found.iter().filter(|waiting| waiting.keeps_alive) {
            lines.add_waiting(waiting, &who);
        }
        self.add_counted(&mut lines);
        let keepers = lines.take();

        for waiting in found.iter().filter(|waiting| !waiting.keeps_alive) {
            lines.add_waiting(waiting, &who);
        }
        let others = lines.take();

        if let Some(main) = self.main.get() {
            let is_polled = self.polled.get() == MAIN;
            let state = waits.of(main.waker, is_polled, false);
            lines.add(format!("the main future ({}): {state}", main.site));
        }
        let scheduled = self.scheduled_tasks();
        for task in &tasks {
            let is_scheduled = scheduled.contains(&task.slot);
            let state = waits.of(task.waker, self.is_polled(task.slot), is_scheduled);
            lines.add_task(&task.info, state);
        }
        Report {
            keepers,
            others,
            pending: lines.take(),
            is_closed: self.is_closed(),
        }
    }

    /// Handles, sleeps and jobs.
    fn all_that_waits(&self, tasks: &[TaskState]) -> Vec<Waiting> {
        let mut found = Vec::new();
        let now = self.clock.read();
        let mut due_timers = HashMap::new();
        let mut sleeps = Vec::new();
        self.timers.each(|deadline, payload, referenced| {
            let due = Due::from(deadline, now);
            match payload {
                Payload::Timer(timer) => {
                    due_timers.insert(Rc::as_ptr(&timer.header), due);
                }
                Payload::Sleep { waker, site } => sleeps.push(Waiting {
                    due: Some(due),
                    keeps_alive: referenced,
                    wakers: vec![waker.data()],
                    ..Waiting::new(Kind::Sleep, Some(site))
                }),
            }
        });
        sleeps.sort_by_key(|sleep| sleep.due);
        let mut waits: HashMap<*const Header, _> = HashMap::new();
        for source in self.sources.list() {
            let header = Rc::as_ptr(&source.header);
            waits.insert(header, (source.waits(), source.has_request()));
        }
        for header in self.handles.headers() {
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
        found.extend(self.jobs.list().iter().map(|job| Waiting {
            state: format!("{} (class {:?})", job.purpose.operation, job.purpose.class),
            keeps_alive: true,
            wakers: Vec::from_iter(match job.asked_by {
                Asker::Task(id) => wakers.get(&id).copied(),
                Asker::Main => self.main.get().map(|main| main.waker),
                Asker::Callback => None,
            }),
            ..Waiting::new(Kind::Work, job.purpose.site)
        }));
        #[cfg(feature = "node")]
        if let Some(upper) = self.upper.get() {
            upper.report(&mut found);
        }
        found
    }

    /// The future of `block_on`, which keeps the loop alive.
    fn add_root(&self, lines: &mut Lines) {
        if let (1.., Some(main)) = (self.liveness.count(Kind::Root), self.main.get()) {
            lines.add(format!("{} ({})", Kind::Root, main.site));
        }
    }

    /// What is counted, and not listed.
    fn add_counted(&self, lines: &mut Lines) {
        for phase in PHASES {
            for _ in 0..self.queue(phase).referenced() {
                lines.add(format!("queued for the {phase} phase"));
            }
        }
        if self.has_unlisted() {
            lines.add("woken tasks or queued closures, whose turn comes next".to_owned());
        }
    }

    /// The slots of the tasks that were woken and wait for their turn.
    fn scheduled_tasks(&self) -> HashSet<u32> {
        let mut slots = HashSet::new();
        let mut add = |messages: &[Message]| {
            slots.extend(messages.iter().filter_map(|message| match message {
                Message::Wake(runnable) => Some(runnable.slot()),
                _ => None,
            }));
        };
        add(&self.messages.borrow());
        self.shared.inbox.look(add);
        self.lane.each_task(|runnable| {
            slots.insert(runnable.slot());
        });
        slots
    }

    /// The names of tasks, and of the root future, by what their wakers point to.
    fn names(&self, tasks: &[TaskState]) -> Names {
        let mut names: Names = tasks
            .iter()
            .map(|task| (task.waker, short_name(&task.info)))
            .collect();
        if let Some(main) = self.main.get() {
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
            // Nobody cares for more.
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
    pub(crate) fn new(kind: Kind, site: Option<Site>) -> Self {
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
        let words: Vec<_> = directions
            .iter()
            .map(|(direction, _)| direction.in_words())
            .collect();
        let mut state = if is_closing {
            "closed, to be reported in the closing phase".to_owned()
        } else if !words.is_empty() {
            format!("somebody waits {}", words.join(" and "))
        } else if active {
            String::new()
        } else if header.kind == Kind::Io {
            "nobody waits for it".to_owned()
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

    /// What it is, and where it was made.
    fn name(&self) -> String {
        match self.site {
            Some(site) => format!("{} ({site})", self.kind),
            None => self.kind.to_string(),
        }
    }
}

impl Direction {
    fn in_words(self) -> &'static str {
        match self {
            Self::Read => "to read",
            Self::Write => "to write",
            Self::Priority => "for urgent data",
            Self::HangUp => "for the peer's end",
        }
    }
}

/// What each task waits for, by what its wakers point to.
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

    /// Those with these wakers wait for `what`.
    fn add(&mut self, wakers: &[*const ()], what: &str) {
        for waker in wakers {
            let waits = self.by_waker.entry(*waker).or_default();
            waits.push(what.to_owned());
        }
    }

    /// To be put behind a name.
    fn of(&self, waker: *const (), is_polled: bool, is_scheduled: bool) -> String {
        if is_polled {
            return "runs now".to_owned();
        }
        if is_scheduled {
            return "was woken, its turn comes".to_owned();
        }
        match self.by_waker.get(&waker) {
            Some(waits) => format!("waits for {}", waits.join(", ")),
            None => "waits for something else (a channel, a lock, another thread)".to_owned(),
        }
    }
}

/// Lines on their way into a report; alike are those with the same key.
#[derive(Default)]
struct Lines {
    groups: Vec<Group>,
    by_key: HashMap<String, usize>,
}

struct Group {
    key: String,
    /// The first few of them, as they are printed one by one.
    lines: Vec<String>,
    count: usize,
    /// The earliest and the latest.
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
            let _ = write!(line, "{separator}for {}", who.join(", "));
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

    /// What to print, and how many they are.
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
