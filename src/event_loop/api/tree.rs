//! The tree of tasks: which task waits for which, down to what the loop waits for.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;

use super::loop_handle::LoopHandle;
use super::report::ALIKE;
use super::waits::{State, Wait, Waiting, Waits, Who};

/// A task that is deeper than this begins a tree of its own: its indentation would be wider than a
/// terminal.
const DEEPEST: usize = 64;

/// The tasks of a loop and what they wait for, as a tree in plain text.
///
/// [`LoopHandle::task_tree`] creates it, and has an example. The main future comes first, then the
/// tasks that no other task awaits, oldest first. Under each of them stands what it waits for. A
/// task that is awaited twice, or awaits itself through others, is printed in full once; elsewhere
/// it ends in `(above)`. A tree that is too deep for a terminal goes on `(below)`. If more than
/// three branches of a level differ in numbers and addresses only, they share one branch with a
/// count. The text is for people and may change.
pub struct TaskTree {
    lines: Vec<String>,
}

impl LoopHandle {
    /// Returns the tree of tasks: who waits for whom, down to the socket, sleep or job that the
    /// loop waits for.
    ///
    /// [`report`](Self::report) lists the same facts by what keeps the loop alive. The cost is
    /// proportional to the number of tasks and handles, and the loop is not changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, phase, spawn, task, time::sleep};
    ///
    /// phaseloop::block_on(async {
    ///     let inner = spawn(sleep(Duration::from_secs(3600)));
    ///     let outer = task::Builder::new().name("outer").spawn(inner);
    ///     phase::check().await;
    ///     let tree = LoopHandle::current().task_tree().to_string();
    ///     // the main future (src/main.rs:4:12): is being polled
    ///     // task 2 "outer" (src/main.rs:6:54)
    ///     // └ task 1 (src/main.rs:5:17)
    ///     //   └ sleep (src/main.rs:5:23): due in 3599.999s
    ///     let lines: Vec<_> = tree.lines().collect();
    ///     assert!(lines[1].starts_with("task 2 \"outer\" ("));
    ///     assert!(lines[2].starts_with("└ task 1 ("));
    ///     assert!(lines[3].starts_with("  └ sleep ("));
    ///     outer.abort();
    /// });
    /// ```
    #[must_use]
    pub fn task_tree(&self) -> TaskTree {
        let waits = self.core().waits();
        let mut branches = Branches {
            waits: &waits,
            done: vec![false; waits.tasks.len()],
            later: VecDeque::new(),
        };
        let mut lines = Vec::new();
        print(&branches.roots(), "", true, &mut lines);
        TaskTree { lines }
    }
}

impl fmt::Display for TaskTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.lines.iter();
        lines.try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Debug for TaskTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A line and the branches below it.
#[derive(Clone)]
struct Branch {
    line: String,
    /// The line without what tells it apart from similar ones.
    common: String,
    below: Vec<Self>,
}

impl Branch {
    fn leaf(line: impl Into<String>) -> Self {
        let line = line.into();
        Self {
            common: line.clone(),
            line,
            below: Vec::new(),
        }
    }

    /// Returns the branch without what tells it apart from similar ones.
    fn in_common(&self) -> Self {
        Self {
            line: self.common.clone(),
            common: self.common.clone(),
            below: self.below.iter().map(Self::in_common).collect(),
        }
    }

    /// Returns a text that branches share if they differ in numbers and addresses only.
    fn key(&self) -> String {
        let below: Vec<_> = self.below.iter().map(Self::key).collect();
        format!("{}[{}]", self.common, below.join(","))
    }
}

/// Makes the branches. Each task has one of its own, and is referred to elsewhere.
struct Branches<'a> {
    waits: &'a Waits,
    /// The tasks that have their branch.
    done: Vec<bool>,
    /// The tasks that were too deep for their place.
    later: VecDeque<usize>,
}

impl Branches<'_> {
    /// Returns the main future, the tasks that no other awaits, and the first of each circle of
    /// tasks.
    fn roots(&mut self) -> Vec<Branch> {
        let mut roots = Vec::new();
        if self.waits.main.is_some() {
            roots.push(self.of(Who::Main, 0));
        }
        let awaited = self.waits.awaited_tasks();
        let tasks = 0..self.waits.tasks.len();
        let free = tasks.clone().filter(|&place| !awaited[place]);
        for place in free.chain(tasks) {
            self.later.push_back(place);
            while let Some(place) = self.later.pop_front() {
                if !self.done[place] {
                    roots.push(self.of(Who::Task(place), 0));
                }
            }
        }
        roots
    }

    fn of(&mut self, who: Who, depth: usize) -> Branch {
        let (line, common) = match who {
            Who::Main => {
                let site = self.waits.main.map(|site| format!(" ({site})"));
                let line = format!("the main future{}", site.unwrap_or_default());
                (line.clone(), line)
            }
            Who::Task(place) => {
                let info = &self.waits.tasks[place].info;
                let line = info.to_string();
                if std::mem::replace(&mut self.done[place], true) {
                    return Branch::leaf(format!("{line} (above)"));
                }
                (line, format!("task spawned at {}", info.spawned_at()))
            }
        };
        let ends = |state: &str| Branch {
            line: format!("{line}: {state}"),
            common: format!("{common}: {state}"),
            below: Vec::new(),
        };
        let below = match self.waits.state(who) {
            State::IsPolled => return ends("is being polled"),
            State::IsWoken => return ends("was woken, will be polled"),
            State::Unknown => vec![Branch::leaf(self.waits.something_else())],
            State::WaitsFor(waits) => {
                let waits = waits.iter();
                waits
                    .map(|wait| self.waited_for(*wait, depth + 1))
                    .collect()
            }
        };
        Branch {
            line,
            common,
            below,
        }
    }

    fn waited_for(&mut self, wait: Wait, depth: usize) -> Branch {
        match wait {
            Wait::Task(place) if depth > DEEPEST && !self.done[place] => {
                self.later.push_back(place);
                Branch::leaf(format!("{} (below)", self.waits.tasks[place].info))
            }
            Wait::Task(place) => self.of(Who::Task(place), depth),
            Wait::Phase(phase) => Branch::leaf(format!("the {phase} phase")),
            Wait::Found(place) => Branch::of_waiting(&self.waits.found[place]),
        }
    }
}

impl Branch {
    fn of_waiting(waiting: &Waiting) -> Self {
        let due = waiting.due.map(|due| due.to_string());
        let states = [Some(waiting.state.clone()), due];
        let states = states.into_iter().flatten();
        let states: Vec<_> = states.filter(|state| !state.is_empty()).collect();
        let mut line = waiting.name();
        if !states.is_empty() {
            line = format!("{line}: {}", states.join(", "));
        }
        Self {
            line,
            common: waiting.common_name(),
            below: Vec::new(),
        }
    }
}

/// Adds the lines of branches side by side. Roots have no sign before them.
fn print(branches: &[Branch], indent: &str, are_roots: bool, lines: &mut Vec<String>) {
    let mut groups: Vec<Vec<&Branch>> = Vec::new();
    let mut by_key = HashMap::new();
    for branch in branches {
        let place = *by_key.entry(branch.key()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(branch),
            None => groups.push(vec![branch]),
        }
    }
    let mut shown: Vec<(String, Cow<'_, [Branch]>)> = Vec::new();
    for group in &groups {
        if group.len() > ALIKE {
            let line = format!("{} × {}", group.len(), group[0].common);
            let below = group[0].below.iter().map(Branch::in_common);
            shown.push((line, below.collect()));
        } else {
            let whole = group
                .iter()
                .map(|one| (one.line.clone(), (&*one.below).into()));
            shown.extend(whole);
        }
    }
    let last = shown.len().saturating_sub(1);
    for (place, (line, below)) in shown.into_iter().enumerate() {
        let (sign, rest) = match (are_roots, place == last) {
            (true, _) => ("", ""),
            (false, true) => ("└ ", "  "),
            (false, false) => ("├ ", "│ "),
        };
        lines.push(format!("{indent}{sign}{line}"));
        print(&below, &format!("{indent}{rest}"), false, lines);
    }
}
