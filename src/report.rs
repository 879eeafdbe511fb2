//! The report of a loop: what keeps it alive, and what its tasks wait for.

#[cfg(feature = "signal")]
pub(crate) mod on_signal;
pub(crate) mod tree;
pub(crate) mod waits;

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use self::waits::{State, Wait, Waits, Who, short_name, waits};
use crate::event_loop::core::Core;
use crate::event_loop::extension::{Due, Waiting};
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::site::Site;
use crate::task_info::Info;

/// More identical lines than this collapse into one with a count.
const ALIKE: usize = 3;

/// The maximum number of lines of each part of a report.
const LINES: usize = 50;

/// The maximum number of waits of one task that a line names.
const WAITS: usize = 8;

/// A description of what a loop waits for and what keeps it alive: the answer to "why does it
/// hang?".
///
/// [`LoopHandle::report`](crate::LoopHandle::report) creates it, and has an example. It is a
/// snapshot in plain text for people, and the text may change. Programs use
/// [`keepers`](crate::LoopHandle::keepers), [`handles`](crate::LoopHandle::handles) and
/// [`tasks`](crate::LoopHandle::tasks). `Debug` and `Display` print one text.
///
/// If tasks wait for each other in a circle, of locks and joins and nothing else, the report begins
/// with the circle. Handles and tasks are listed oldest first, sleeps by their deadlines. If more
/// than three items have one source line and one state, they share one line with a count.
///
/// # Limits
///
/// - Immediates and futures that wait for a phase are only counted: they complete within a turn.
/// - A job of the thread pool is listed with the line of its `spawn_blocking`. A job of the file
///   system or of name lookup is listed with the name of the function and the task that called it.
/// - What a task waits for is known if it is part of the loop: I/O, a sleep, a job, a signal, a
///   child, a file watcher, a phase, another task, a [`JoinSet`](crate::task::JoinSet), a
///   cancellation. With the crate `phaseloop-node` also a promise, an event, an abort signal, and
///   the end or the next chunk of a stream. Channels and
///   locks of other crates are "something else".
/// - A future in a `FuturesUnordered` is polled with another waker than the task's. It is listed as
///   one that wakes "a waker of task 7": the task that polled it last with a new waker.
///
/// # Examples
///
/// ```
/// use phaseloop::{LoopHandle, spawn};
///
/// #[phaseloop::main]
/// async fn main() {
///     spawn(std::future::pending::<()>()).detach();
///     println!("{}", LoopHandle::current().report()); // what waits, with its lines
/// }
/// ```
pub struct Report {
    /// The circles of waits.
    circles: Part,
    keepers: Part,
    /// Handles that are not started, and unref'd ones.
    others: Part,
    /// The main future and the tasks.
    pending: Part,
    is_closed: bool,
}

#[inline]
pub(crate) fn report(core: &Core) -> Report {
    let waits = waits(core);
    let mut lines = Lines::default();
    for circle in waits.circles() {
        lines.add(circle);
    }
    let circles = lines.take();

    add_main_future(core, &mut lines);
    for waiting in waits.found.iter().filter(|waiting| waiting.keeps_alive) {
        lines.add_waiting(waiting, &waits);
    }
    add_counted(core, &mut lines);
    let keepers = lines.take();

    for waiting in waits.found.iter().filter(|waiting| !waiting.keeps_alive) {
        lines.add_waiting(waiting, &waits);
    }
    let others = lines.take();

    if let Some(site) = waits.main {
        let (state, _) = waits.state_texts(Who::Main);
        lines.add(format!("the main future ({site}): {state}"));
    }
    for (place, task) in waits.tasks.iter().enumerate() {
        let (state, common) = waits.state_texts(Who::Task(place));
        lines.add_task(&task.info, &state, &common);
    }
    Report {
        circles,
        keepers,
        others,
        pending: lines.take(),
        is_closed: core.executor.is_closed(),
    }
}

/// Returns the pending tasks that meet a condition, each with what it waits for.
#[cfg(feature = "cluster")]
pub(crate) fn pending_tasks(core: &Core, is_meant: impl Fn(&Info) -> bool) -> Vec<String> {
    let (waits, mut lines) = (waits(core), Lines::default());
    for (place, task) in waits.tasks.iter().enumerate() {
        if is_meant(&task.info) {
            let (state, common) = waits.state_texts(Who::Task(place));
            lines.add_task(&task.info, &state, &common);
        }
    }
    lines.take().lines
}

/// Returns the report, with what the observers add to it.
#[cfg(any(feature = "signal", feature = "probe"))]
#[inline]
pub(crate) fn full_report(core: &Core) -> String {
    let mut text = report(core).to_string();
    core.executor.probe.add_to_report(&mut text);
    text
}

/// Returns the report of the current loop, with what its observers add to it.
#[cfg(feature = "probe")]
#[inline]
pub(crate) fn report_of_current() -> String {
    crate::event_loop::current::with(|core| core.map(full_report)).unwrap_or_default()
}

/// Adds the main future of `block_on`, which keeps the loop alive.
#[inline]
fn add_main_future(core: &Core, lines: &mut Lines) {
    if let (1.., Some(main)) = (
        core.ledger.count(Keeper::MainFuture),
        core.executor.main_info(),
    ) {
        lines.add(format!("{} ({})", Keeper::MainFuture, main.site));
    }
}

/// Adds the keepers that are counted and not listed.
#[inline]
fn add_counted(core: &Core, lines: &mut Lines) {
    for phase in Phase::ALL {
        for _ in 0..core.phases.queue(phase).referenced() {
            lines.add(format!("queued for the {phase} phase"));
        }
    }
    if let Some(hook) = core.waits.hook() {
        let name = hook.name();
        for _ in 0..hook.task_count() {
            lines.add(format!("task of {name}"));
        }
        if core.executor.main_info().is_some() || core.executor.tasks.len() > 0 {
            lines.add(format!(
                "pending tasks, which may wait for something of {name}"
            ));
        }
    }
    if core.has_unlisted() {
        lines.add("woken tasks or queued closures, which run next".to_owned());
    }
}

/// Describes what is pending when a run ends: the main future and the oldest tasks, each with its
/// line and what it waits for, as far as that is known, and the circles of waits.
pub(crate) fn pending(core: &Core, main: Site) -> Box<str> {
    const MOST: usize = 8;
    let waits = waits(core);
    let mut text = format!("the main future ({main}){}", waits.known_wait(Who::Main));
    for (place, task) in waits.tasks.iter().enumerate().take(MOST) {
        let wait = waits.known_wait(Who::Task(place));
        text += &format!(", {}{wait}", task.info);
    }
    if waits.tasks.len() > MOST {
        text += &format!(" and {} more tasks", waits.tasks.len() - MOST);
    }
    for circle in waits.circles() {
        text += &format!(". {circle}");
    }
    text.into()
}

impl Waits {
    /// Returns what a task waits for as text that follows its name, if it is known.
    fn known_wait(&self, who: Who) -> String {
        match self.state(who) {
            State::WaitsFor(_) => format!(" that {}", self.state_texts(who).0),
            _ => String::new(),
        }
    }

    /// Returns what a report says of a wait that it does not know.
    fn something_else(&self) -> String {
        let of_runtime = self.runtime.map(|name| format!("something of {name}, or "));
        let of_runtime = of_runtime.unwrap_or_default();
        format!("{of_runtime}something else (another crate's channel or lock, another thread)")
    }

    /// Returns the state of a task as text that follows its name, and the text without what
    /// distinguishes its waits from those of others.
    #[inline]
    fn state_texts(&self, who: Who) -> (String, String) {
        let alike = |text: &str| (text.to_owned(), text.to_owned());
        match self.state(who) {
            State::IsPolled => alike("is being polled"),
            State::IsWoken => alike("was woken, will be polled"),
            State::Unknown => alike(&format!("waits for {}", self.something_else())),
            State::WaitsFor(waits) => {
                type LockText = fn(&Waits, usize, usize) -> String;
                let text = |name: fn(&Waiting) -> String, lock: LockText| {
                    let waits = waits.iter().map(|wait| match *wait {
                        Wait::Found(place) => name(&self.found[place]),
                        Wait::Named(place) => {
                            let named = &self.named[place].0;
                            let colon = if named.state.is_empty() { "" } else { ": " };
                            format!("{}{colon}{}", name(named), named.state)
                        }
                        Wait::Task(place) => short_name(&self.tasks[place].info),
                        Wait::Phase(phase) => format!("the {phase} phase"),
                        Wait::Lock(place, number) => lock(self, place, number),
                    });
                    let some = waits.clone().take(WAITS).collect::<Vec<_>>().join(", ");
                    match waits.count().saturating_sub(WAITS) {
                        0 => format!("waits for {some}"),
                        more => format!("waits for {some} and {more} more"),
                    }
                };
                let common: LockText = |waits, place, _| waits.lock_common(place);
                (
                    text(Waiting::name, Self::lock_text),
                    text(Waiting::common_name, common),
                )
            }
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
    #[inline]
    fn add(&mut self, line: String) {
        self.add_to(line.clone(), line, None);
    }

    #[inline]
    fn add_waiting(&mut self, waiting: &Waiting, waits: &Waits) {
        let (mut key, mut line) = (waiting.common_name(), waiting.name());
        if !waiting.state.is_empty() {
            let _ = write!(key, ": {}", waiting.state);
            let _ = write!(line, ": {}", waiting.state);
        }
        let mut separator = if waiting.state.is_empty() { ": " } else { ", " };
        if let Some(due) = waiting.due {
            let _ = write!(line, "{separator}{due}");
            separator = ", ";
        }
        let wakers = waiting.wakers.iter();
        let who: Vec<_> = wakers.filter_map(|waker| waits.owner_of(*waker)).collect();
        if !who.is_empty() {
            let _ = write!(line, "{separator}wakes {}", who.join(", "));
        }
        self.add_to(key, line, waiting.due);
    }

    #[inline]
    fn add_task(&mut self, info: &Info, state: &str, common: &str) {
        let key = format!("task spawned at {}: {common}", info.spawned_at());
        self.add_to(key, format!("{info}: {state}"), None);
    }

    #[inline]
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
    #[inline]
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
        for circle in &self.circles.lines {
            writeln!(f, "{circle}")?;
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
