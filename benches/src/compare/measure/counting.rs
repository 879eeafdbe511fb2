//! The cells in which something is counted: instructions, system calls, allocations.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Pair;
use crate::catalogue::{Kind, OURS, Topic, Workload};
use crate::compare::Failure;
use crate::compare::estimate;
use crate::compare::figure::{ALLOCATIONS, FIGURES, Figure, INSTRUCTIONS, LIVE, SYSCALLS};
use crate::compare::options::Options;
use crate::compare::perf;
use crate::compare::process::{Runner, Tool};
use crate::compare::progress::Progress;
use crate::compare::record::Record;

/// So many cells are counted at once where nothing depends on what else runs.
const COUNTED_AT_ONCE: usize = 2;

/// With more than so many things only ours is counted: to count a million takes a minute.
const COUNTED_FOR_ALL: u64 = 100_000;

/// The cells in which one figure is counted.
pub(super) struct Counting {
    figure: Figure,
    tool: Tool,
    /// By how much fewer operations than usual are counted.
    shorter: u64,
    pairs: Vec<Pair>,
}

impl Counting {
    pub(super) fn new(figure: Figure, options: &Options, pairs: &[Pair]) -> Self {
        let mut pairs = pairs.to_vec();
        pairs.retain(|(workload, runtime)| {
            is_counted(figure, workload, runtime)
                && (options.wants(workload, figure)
                    || figure == ALLOCATIONS && options.wants(workload, LIVE))
        });
        if options.quick {
            pairs.retain(|(workload, runtime)| is_counted_quickly(figure, workload, runtime));
        }
        let tool = tool_for(figure);
        // A traced system call is slow, and hundreds show as much as thousands.
        let shorter = match (tool, options.quick) {
            (Tool::Strace, true) => 10,
            (Tool::Strace, false) | (_, true) => 4,
            (_, false) => 1,
        };
        Self {
            figure,
            tool,
            shorter,
            pairs,
        }
    }

    /// Threads of two cells that run at once would wait for each other's cores, and make other
    /// calls.
    fn at_once(&self) -> usize {
        match self.tool {
            Tool::Perf => 1,
            _ => COUNTED_AT_ONCE,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        let each = self
            .pairs
            .iter()
            .map(|(workload, _)| self.seconds_of(workload));
        each.sum()
    }

    fn operations(&self, workload: &Workload) -> u64 {
        match workload.topic() {
            Topic::Growth => workload.counted,
            _ => workload.counted / self.shorter,
        }
    }

    fn seconds_of(&self, workload: &Workload) -> f64 {
        let n = self.operations(workload);
        let seconds = match self.tool {
            Tool::Callgrind => estimate::under_callgrind(workload, n),
            Tool::Perf => estimate::under_perf(workload, n),
            Tool::Strace => estimate::under_strace(workload, n),
            _ => estimate::timed(workload, n),
        };
        seconds / self.at_once() as f64
    }

    pub(super) fn run(self, runner: &Runner, progress: &Progress, record: &mut Record) {
        let record = Mutex::new(record);
        for_each(self.at_once(), &self.pairs, |(workload, runtime)| {
            let name = format!("{}, {} on {runtime}", self.figure.name, workload.name);
            progress.step(&name, self.seconds_of(workload));
            let n = self.operations(workload);
            let counts = count_one(runner, self.tool, workload, runtime, n);
            let mut record = record.lock().expect("no holder of the lock panics");
            let kept = counts.map(|counts| {
                let cell = record.cell_mut(workload.name, runtime);
                for (figure, value) in counts.figures {
                    cell.push(figure, value);
                }
                cell.calls.extend(counts.calls);
            });
            record.note(kept);
        });
    }
}

/// What counts this figure here.
fn tool_for(figure: Figure) -> Tool {
    match figure {
        INSTRUCTIONS => Tool::Callgrind,
        SYSCALLS if perf::is_usable() => Tool::Perf,
        SYSCALLS => Tool::Strace,
        _ => Tool::Allocator,
    }
}

/// Calls `count` for each item, several at once: what is counted does not depend on what else runs.
pub(crate) fn count_at_once<T: Sync>(items: &[T], count: impl Fn(&T) + Sync) {
    for_each(COUNTED_AT_ONCE, items, count);
}

fn for_each<T: Sync>(at_once: usize, items: &[T], call: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    call(item);
                }
            });
        }
    });
}

/// Node compiles while it runs, and has an allocator of its own, as has libuv: these are not
/// counted.
pub(crate) fn is_counted(figure: Figure, workload: &Workload, runtime: &str) -> bool {
    let suits = match figure {
        ALLOCATIONS => ALLOCATIONS.suits(workload) || LIVE.suits(workload),
        figure => figure.suits(workload),
    };
    let blind = match figure {
        INSTRUCTIONS => runtime == "node",
        ALLOCATIONS => runtime == "node" || runtime == "libuv",
        _ => false,
    };
    let too_many = match workload.kind {
        Kind::Grow(_, many) | Kind::TimerDrop { live: many } => {
            many > COUNTED_FOR_ALL && runtime != OURS
        }
        _ => false,
    };
    suits && !blind && !too_many && workload.counted > 0
}

/// To count takes most of the time: `--quick` does it for one runtime of each kind, and times all.
/// What the pool does is mostly the kernel's work.
fn is_counted_quickly(figure: Figure, workload: &Workload, runtime: &str) -> bool {
    const RUNTIMES: [&str; 5] = ["phaseloop", "tokio", "smol", "libuv", "raw-epoll"];
    let is_comparable = figure == SYSCALLS || workload.topic() != Topic::Pool;
    is_comparable && RUNTIMES.contains(&runtime)
}

/// What was counted per operation.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) figures: Vec<(Figure, f64)>,
    calls: BTreeMap<String, f64>,
}

/// Counts what the tool counts.
pub(crate) fn count_one(
    runner: &Runner,
    tool: Tool,
    workload: &Workload,
    runtime: &str,
    operations: u64,
) -> Result<Counts, Failure> {
    let n = workload.round_up(operations);
    match tool {
        Tool::Callgrind => {
            let run = |n| {
                let output = runner.run(Tool::Callgrind, workload, runtime, n)?;
                Ok(BTreeMap::from([(String::new(), output.instructions()?)]))
            };
            let counts = per_operation(workload, n, run)?;
            let instructions = counts.values().sum();
            Ok(Counts {
                figures: vec![(INSTRUCTIONS, instructions)],
                ..Counts::default()
            })
        }
        Tool::Perf | Tool::Strace => {
            let run = |n| Ok(runner.run(tool, workload, runtime, n)?.calls(tool));
            let mut calls = per_operation(workload, n, run)?;
            calls.retain(|_, calls| *calls >= 0.000_5);
            Ok(Counts {
                figures: vec![(SYSCALLS, calls.values().fold(0.0, |sum, calls| sum + calls))],
                calls,
            })
        }
        _ => {
            let output = runner.run(Tool::Allocator, workload, runtime, n)?;
            let figures = FIGURES
                .into_iter()
                .filter(|figure| [ALLOCATIONS, LIVE].contains(figure) && figure.suits(workload));
            let figures = figures.map(|figure| Ok((figure, output.get(figure.name)? / n as f64)));
            Ok(Counts {
                figures: figures.collect::<Result<_, Failure>>()?,
                ..Counts::default()
            })
        }
    }
}

/// What each of the last `n` of `2 n` operations costs: what happens once does not count. A start
/// is all that happens once, and only that. Of things that grow in number, the first `n` count:
/// what they leave behind, the next would use again.
fn per_operation(
    workload: &Workload,
    n: u64,
    run: impl Fn(u64) -> Result<BTreeMap<String, f64>, Failure>,
) -> Result<BTreeMap<String, f64>, Failure> {
    let (few, many, n) = match workload.kind {
        Kind::ColdStart => (BTreeMap::new(), run(1)?, 1),
        Kind::Grow(..) => (run(1)?, run(n)?, n - 1),
        _ => (run(n)?, run(2 * n)?, n),
    };
    let counts = many.into_iter().map(|(name, many)| {
        let few = few.get(&name).copied().unwrap_or(0.0);
        (name, (many - few) / n as f64)
    });
    Ok(counts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, n: u64, run: impl Fn(u64) -> f64) -> f64 {
        let workload = Workload::find(name).expect("it is in the catalogue");
        let run = |n| Ok(BTreeMap::from([("all".to_owned(), run(n))]));
        per_operation(&workload, n, run).expect("it runs")["all"]
    }

    #[test]
    fn what_happens_once_does_not_count() {
        assert_eq!(count("spawn_join", 10, |n| 1000.0 + 7.0 * n as f64), 7.0);
    }

    #[test]
    fn a_cold_start_is_counted_whole() {
        assert_eq!(count("cold_start", 1, |n| 1000.0 * n as f64), 1000.0);
    }

    #[test]
    fn growth_counts_the_first_of_many() {
        // The second thousand would be free.
        let cost = |n: u64| 500.0 + 3.0 * n.min(1000) as f64;
        assert_eq!(count("grow_task/1000", 1000, cost), 3.0);
    }
}
