//! The tree of tasks: which task waits for which, down to what the loop waits for.

#[cfg(feature = "stacks")]
mod stacks;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::rc::{Rc, Weak};

use super::ALIKE;
use super::waits::{State, Wait, Waits, Who, waits};
use crate::event_loop::core::Core;
use crate::event_loop::extension::Waiting;
use crate::executor::notes::Polled;

/// A task that is deeper than this begins a tree of its own: its indentation would be wider than a
/// terminal.
const DEEPEST: usize = 64;

/// The tasks of a loop and what they wait for, as a tree in plain text.
///
/// [`LoopHandle::task_tree`](crate::LoopHandle::task_tree) creates it, and has an example. The
/// main future comes first, then the tasks that no other task awaits, oldest first. Under each
/// of them stands what it waits for. A task that is awaited twice, or awaits itself through
/// others, is printed in full once; elsewhere it ends in `(above)`. A tree that is too deep for
/// a terminal goes on `(below)`. If more than three branches of a level differ in numbers and
/// addresses only, they share one branch with a count. The text is for people and may change.
///
/// With the feature `stacks`, `with_stacks` adds the async functions between a task and what it
/// waits for.
///
/// # Examples
///
/// ```
/// use phaseloop::{LoopHandle, spawn, task::yield_now, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let _task = spawn(sleep(std::time::Duration::from_secs(60)));
///     yield_now().await;
///     println!("{}", LoopHandle::current().task_tree());
/// }
/// ```
pub struct TaskTree {
    lines: Vec<String>,
    #[cfg_attr(
        not(feature = "stacks"),
        expect(dead_code, reason = "asked for stacks")
    )]
    core: Weak<Core>,
}

impl TaskTree {
    #[inline]
    pub(crate) fn of(core: &Rc<Core>) -> Self {
        Self {
            lines: lines_of(&waits(core), &Stacks::default()),
            core: Rc::downgrade(core),
        }
    }
}

/// Returns the lines of the tree.
#[inline]
fn lines_of(waits: &Waits, stacks: &Stacks) -> Vec<String> {
    let mut branches = Branches {
        waits,
        stacks,
        done: vec![false; waits.tasks.len()],
        later: VecDeque::new(),
    };
    let mut lines = Vec::new();
    print(&branches.roots(), "", true, &mut lines);
    lines
}

/// Which functions of the tasks wait.
#[derive(Default)]
struct Stacks(Vec<Stack>);

/// The functions between a task and a place that waits.
struct Stack {
    who: Polled,
    /// The data pointer of the waker that the place has.
    waker: *const (),
    /// Outermost first.
    functions: Vec<String>,
}

impl Stacks {
    /// Returns those of one task.
    fn of(&self, who: Polled) -> impl Iterator<Item = &Stack> {
        // They are in the order of the tasks.
        let of_task = self.0.iter().skip_while(move |stack| stack.who != who);
        of_task.take_while(move |stack| stack.who == who)
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
    /// The line without what distinguishes it from similar ones.
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

    /// Returns the branch without what distinguishes it from similar ones.
    #[inline]
    fn in_common(&self) -> Self {
        Self {
            line: self.common.clone(),
            common: self.common.clone(),
            below: self.below.iter().map(Self::in_common).collect(),
        }
    }

    /// Returns a text that branches share if they differ in numbers and addresses only.
    #[inline]
    fn key(&self) -> String {
        let below: Vec<_> = self.below.iter().map(Self::key).collect();
        format!("{}[{}]", self.common, below.join(","))
    }
}

/// Makes the branches. Each task has one of its own, and is referred to elsewhere.
struct Branches<'a> {
    waits: &'a Waits,
    stacks: &'a Stacks,
    /// The tasks that have their branch.
    done: Vec<bool>,
    /// The tasks that were too deep for their place.
    later: VecDeque<usize>,
}

impl Branches<'_> {
    /// Returns the main future, the tasks that no other awaits, and the first of each circle of
    /// tasks.
    #[inline]
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

    #[inline]
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
            State::Unknown => self.under_functions(who, Vec::new()),
            State::WaitsFor(waits) => {
                let waits = waits.iter();
                let below = waits.map(|wait| self.waited_for(*wait, depth + 1));
                let below = below.collect();
                self.under_functions(who, below)
            }
        };
        Branch {
            line,
            common,
            below,
        }
    }

    /// Puts what a task waits for under the functions that wait, as far as they are known.
    #[inline]
    fn under_functions(&self, who: Who, below: Vec<Branch>) -> Vec<Branch> {
        let polled = match who {
            Who::Main => Polled::MainFuture,
            Who::Task(place) => Polled::Task(self.waits.tasks[place].info.id()),
        };
        let something_else = || Branch::leaf(self.waits.something_else());
        let wakers = self.waits.wakers(who);
        let (mut tree, mut rest) = (Vec::new(), Vec::new());
        for (branch, &waker) in below.into_iter().zip(wakers) {
            match self.stacks.of(polled).find(|stack| stack.waker == waker) {
                Some(stack) => branch.put_under(&stack.functions, &mut tree),
                None => rest.push(branch),
            }
        }
        let others = self.stacks.of(polled);
        for stack in others.filter(|stack| !wakers.contains(&stack.waker)) {
            // A library that polls with wakers of its own, such as `FuturesUnordered`, keeps one of
            // the task: what has the library's wakers is below the first such place.
            let mut under = std::mem::take(&mut rest);
            if under.is_empty() {
                under.push(something_else());
            }
            for branch in under {
                branch.put_under(&stack.functions, &mut tree);
            }
        }
        tree.extend(rest);
        if tree.is_empty() {
            tree.push(something_else());
        }
        tree
    }

    #[inline]
    fn waited_for(&mut self, wait: Wait, depth: usize) -> Branch {
        match wait {
            Wait::Task(place) if depth > DEEPEST && !self.done[place] => {
                self.later.push_back(place);
                Branch::leaf(format!("{} (below)", self.waits.tasks[place].info))
            }
            Wait::Task(place) => self.of(Who::Task(place), depth),
            Wait::Phase(phase) => Branch::leaf(format!("the {phase} phase")),
            Wait::Found(place) => Branch::of_waiting(&self.waits.found[place]),
            Wait::Named(place) => Branch::of_waiting(&self.waits.named[place].0),
            Wait::Lock(place, number) => self.lock(place, number, depth),
        }
    }
}

/// Locks.
impl Branches<'_> {
    /// Returns a lock or channel, with the branch of the task that has it.
    #[inline]
    fn lock(&mut self, place: usize, number: usize, depth: usize) -> Branch {
        let holder = match self.waits.holder(place) {
            Some(Who::Task(place)) => Some(self.waited_for(Wait::Task(place), depth + 1)),
            // It is at the top of the tree.
            Some(Who::Main) | None => None,
        };
        Branch {
            line: self.waits.lock_text(place, number),
            common: self.waits.lock_common(place),
            below: holder.into_iter().collect(),
        }
    }
}

impl Branch {
    /// Adds this branch to a tree of functions.
    #[inline]
    fn put_under(self, functions: &[String], tree: &mut Vec<Self>) {
        let Some((function, inner)) = functions.split_first() else {
            return tree.push(self);
        };
        let known = tree.iter().position(|branch| branch.line == *function);
        let place = known.unwrap_or_else(|| {
            tree.push(Self::leaf(function.clone()));
            tree.len() - 1
        });
        self.put_under(inner, &mut tree[place].below);
    }

    #[inline]
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
#[inline]
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
