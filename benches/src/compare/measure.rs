//! All cells, measured in all ways that were asked for.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Failure;
use crate::environment::{Environment, node_version};
use crate::estimate;
use crate::figure::{
    ALLOCATIONS, CPU, FIGURES, Figure, INSTRUCTIONS, LIVE, MAX, P50, P99, P999, RESIDENT, SIZE,
    SWITCHES, SYSCALLS, WALL,
};
use crate::options::Options;
use crate::process::{Output, Programs, Tool};
use crate::progress::{Progress, duration};
use crate::record::Record;
use crate::size;
use phaseloop_benches::catalogue::{Kind, Topic, Workload};
use phaseloop_benches::latency::Latencies;

/// What is counted does not depend on what else runs, so several cells run at once.
const COUNTED_AT_ONCE: usize = 2;

type Pair = (Workload, &'static str);

pub(crate) fn all(programs: &Programs, options: &Options) -> Result<Record, Failure> {
    let mut record = Record {
        environment: Environment::look(),
        seconds: 0.0,
        failures: Vec::new(),
        cells: Vec::new(),
    };
    let (sizes, processes): (Vec<_>, Vec<_>) = pairs(options)
        .into_iter()
        .partition(|(workload, _)| workload.kind == Kind::BinarySize);
    if options.count {
        binary_sizes(&sizes, &mut record);
    }
    let counted: Vec<_> = [
        (options.count, INSTRUCTIONS),
        (options.syscalls, SYSCALLS),
        (options.allocs, ALLOCATIONS),
    ]
    .into_iter()
    .filter(|(wanted, _)| *wanted)
    .map(|(_, figure)| Counting::new(figure, options.quick, &processes))
    .collect();
    let timing = options.time.then(|| Timing::new(options, processes));
    let expected = timing.as_ref().map_or(0.0, Timing::seconds)
        + counted.iter().map(Counting::seconds).sum::<f64>();
    eprintln!("about {}", duration(expected));
    let progress = Progress::new(expected);
    if let Some(timing) = timing {
        timing.run(programs, &progress, &mut record);
    }
    for counting in counted {
        counting.run(programs, &progress, &mut record);
    }
    record.seconds = progress.end();
    Ok(record)
}

/// Runs each cell once with few operations: does it come to its end?
pub(crate) fn smoke(programs: &Programs, options: &Options) -> Result<(), Failure> {
    let mut pairs = pairs(options);
    pairs.retain(|(workload, _)| workload.kind != Kind::BinarySize);
    let each = |workload: &Workload| estimate::timed(workload, workload.few());
    let progress = Progress::new(pairs.iter().map(|(workload, _)| each(workload)).sum());
    let mut failures = 0;
    for (workload, runtime) in &pairs {
        let name = format!("{} on {runtime}", workload.name);
        progress.step(&name, each(workload));
        if let Err(failure) = programs.run(Tool::Nothing, workload, runtime, workload.few()) {
            eprintln!("\n{failure}");
            failures += 1;
        }
    }
    let seconds = progress.end();
    println!(
        "{} cells in {}, {failures} failed",
        pairs.len(),
        duration(seconds)
    );
    if failures > 0 {
        return Err("not every cell came to its end".into());
    }
    Ok(())
}

/// Every workload with every runtime that has it.
fn pairs(options: &Options) -> Vec<Pair> {
    let (workloads, runtimes) = (options.workloads(), options.runtimes());
    let node = node_version().is_some();
    let all = workloads.iter().flat_map(|workload| {
        let runtimes = runtimes.iter();
        runtimes.map(move |runtime| (*workload, *runtime))
    });
    all.filter(|(workload, runtime)| workload.exists_on(runtime))
        .filter(|(_, runtime)| node || *runtime != "node")
        .collect()
}

fn binary_sizes(pairs: &[Pair], record: &mut Record) {
    let runtimes: Vec<_> = pairs.iter().map(|(_, runtime)| *runtime).collect();
    if runtimes.is_empty() {
        return;
    }
    if let Err(failure) = size::build(&runtimes) {
        record.note(Err(failure));
        return;
    }
    for (workload, runtime) in pairs {
        let size = size::of_echo_server(runtime);
        let kept = size.map(|size| record.cell_mut(workload.name, runtime).push(SIZE, size));
        record.note(kept);
    }
}

/// The cells that are timed, in several rounds.
struct Timing {
    rounds: usize,
    quick: bool,
    pairs: Vec<Pair>,
}

impl Timing {
    fn new(options: &Options, pairs: Vec<Pair>) -> Self {
        let rounds = if options.quick { 2 } else { 5 };
        Self {
            rounds: options.rounds.unwrap_or(rounds),
            quick: options.quick,
            pairs,
        }
    }

    fn seconds(&self) -> f64 {
        let each = self
            .pairs
            .iter()
            .map(|(workload, _)| self.seconds_of(workload));
        self.rounds as f64 * each.sum::<f64>()
    }

    fn seconds_of(&self, workload: &Workload) -> f64 {
        estimate::timed(workload, operations(workload, self.quick))
    }

    fn run(mut self, programs: &Programs, progress: &Progress, record: &mut Record) {
        let mut shuffle = Shuffle::new();
        let mut latencies = BTreeMap::<_, Latencies>::new();
        for round in 1..=self.rounds {
            shuffle.apply(&mut self.pairs);
            for (workload, runtime) in &self.pairs {
                let name = format!(
                    "round {round} of {}, {} on {runtime}",
                    self.rounds, workload.name
                );
                progress.step(&name, self.seconds_of(workload));
                let n = operations(workload, self.quick);
                let kept = programs
                    .run(Tool::Nothing, workload, runtime, n)
                    .and_then(|output| {
                        let all = latencies.entry((workload.name, *runtime)).or_default();
                        all.add(&output.latencies);
                        keep_times(record, workload, runtime, n, &output)
                    });
                record.note(kept);
            }
        }
        for ((workload, runtime), latencies) in latencies {
            if latencies.count() > 0 {
                record.cell_mut(workload, runtime).keep_curve(&latencies);
            }
        }
    }
}

/// Fewer if there is little time; but memory is made in pages, so that few things would look too
/// large.
fn operations(workload: &Workload, quick: bool) -> u64 {
    let shorter = match workload.topic() {
        _ if !quick => 1,
        Topic::Memory => 1,
        Topic::Fairness => 5,
        _ => 10,
    };
    workload.round_up(workload.timed / shorter)
}

fn keep_times(
    record: &mut Record,
    workload: &Workload,
    runtime: &str,
    n: u64,
    output: &Output,
) -> Result<(), Failure> {
    let cell = record.cell_mut(workload.name, runtime);
    for figure in [CPU, WALL, SWITCHES, RESIDENT, P50, P99, P999, MAX] {
        if !figure.suits(workload) {
            continue;
        }
        let value = match figure {
            P50 => output.latencies.at(0.5),
            P99 => output.latencies.at(0.99),
            P999 => output.latencies.at(0.999),
            MAX => output.latencies.max(),
            WALL if workload.kind == Kind::ColdStart => output.lifetime,
            figure => output.get(figure.name)? / n as f64,
        };
        cell.push(figure, value);
    }
    Ok(())
}

/// The cells in which one figure is counted.
struct Counting {
    figure: Figure,
    /// By how much fewer operations than usual are counted.
    shorter: u64,
    pairs: Vec<Pair>,
}

impl Counting {
    fn new(figure: Figure, quick: bool, pairs: &[Pair]) -> Self {
        let mut pairs = pairs.to_vec();
        pairs.retain(|(workload, runtime)| is_counted(figure, workload, runtime));
        if quick {
            pairs.retain(|(workload, runtime)| is_counted_quickly(figure, workload, runtime));
        }
        // A traced system call is slow, and hundreds tell as much as thousands.
        let shorter = match (figure, quick) {
            (SYSCALLS, true) => 10,
            (SYSCALLS, false) | (_, true) => 4,
            (_, false) => 1,
        };
        Self {
            figure,
            shorter,
            pairs,
        }
    }

    fn seconds(&self) -> f64 {
        let each = self
            .pairs
            .iter()
            .map(|(workload, _)| self.seconds_of(workload));
        each.sum()
    }

    /// Several run at once.
    fn seconds_of(&self, workload: &Workload) -> f64 {
        let n = workload.counted / self.shorter;
        let seconds = match self.figure {
            INSTRUCTIONS => estimate::under_callgrind(workload, n),
            SYSCALLS => estimate::under_strace(workload, n),
            _ => estimate::timed(workload, n),
        };
        seconds / COUNTED_AT_ONCE as f64
    }

    fn run(self, programs: &Programs, progress: &Progress, record: &mut Record) {
        let record = Mutex::new(record);
        count_at_once(&self.pairs, |(workload, runtime)| {
            let name = format!("{}, {} on {runtime}", self.figure.name, workload.name);
            progress.step(&name, self.seconds_of(workload));
            let n = workload.counted / self.shorter;
            let counts = count_one(programs, self.figure, workload, runtime, n);
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

/// Calls `count` for each item, several at once.
pub(crate) fn count_at_once<T: Sync>(items: &[T], count: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..COUNTED_AT_ONCE {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    count(item);
                }
            });
        }
    });
}

/// Node compiles while it runs, and has an allocator of its own, as has libuv: these are not
/// counted.
fn is_counted(figure: Figure, workload: &Workload, runtime: &str) -> bool {
    let suits = match figure {
        ALLOCATIONS => ALLOCATIONS.suits(workload) || LIVE.suits(workload),
        figure => figure.suits(workload),
    };
    let blind = match figure {
        INSTRUCTIONS => runtime == "node",
        ALLOCATIONS => runtime == "node" || runtime == "libuv",
        _ => false,
    };
    suits && !blind && workload.counted > 0
}

/// To count takes most of the time: `--quick` does it for one runtime of each kind, and times all.
/// What the pool does is mostly the kernel's work.
fn is_counted_quickly(figure: Figure, workload: &Workload, runtime: &str) -> bool {
    const RUNTIMES: [&str; 5] = ["phaseloop", "tokio", "smol", "libuv", "raw-epoll"];
    let telling = figure == SYSCALLS || workload.topic() != Topic::Pool;
    telling && RUNTIMES.contains(&runtime)
}

/// What was counted per operation.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) figures: Vec<(Figure, f64)>,
    calls: BTreeMap<String, f64>,
}

pub(crate) fn count_one(
    programs: &Programs,
    figure: Figure,
    workload: &Workload,
    runtime: &str,
    operations: u64,
) -> Result<Counts, Failure> {
    let n = workload.round_up(operations);
    match figure {
        INSTRUCTIONS => {
            let run = |n| {
                let output = programs.run(Tool::Callgrind, workload, runtime, n)?;
                output.instructions()
            };
            Ok(Counts {
                figures: vec![(INSTRUCTIONS, slope(workload, n, run)?)],
                ..Counts::default()
            })
        }
        SYSCALLS => count_calls(programs, workload, runtime, n),
        _ => {
            let output = programs.run(Tool::Allocator, workload, runtime, n)?;
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
/// is all that happens once, and only that.
fn slope(
    workload: &Workload,
    n: u64,
    run: impl Fn(u64) -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    if workload.kind == Kind::ColdStart {
        return run(1);
    }
    Ok((run(2 * n)? - run(n)?) / n as f64)
}

fn count_calls(
    programs: &Programs,
    workload: &Workload,
    runtime: &str,
    n: u64,
) -> Result<Counts, Failure> {
    let run = |n| Ok::<_, Failure>(programs.run(Tool::Strace, workload, runtime, n)?.calls());
    let (short, long, n) = match workload.kind {
        Kind::ColdStart => (BTreeMap::new(), run(1)?, 1),
        _ => (run(n)?, run(2 * n)?, n),
    };
    let calls: BTreeMap<_, _> = long
        .into_iter()
        .map(|(name, many)| {
            let few = short.get(&name).copied().unwrap_or(0.0);
            (name, (many - few) / n as f64)
        })
        .filter(|(_, per_operation)| *per_operation >= 0.000_5)
        .collect();
    Ok(Counts {
        figures: vec![(SYSCALLS, calls.values().fold(0.0, |sum, calls| sum + calls))],
        calls,
    })
}

/// Another order in every round, so that no runtime always runs in the wake of the same other.
struct Shuffle(u64);

impl Shuffle {
    fn new() -> Self {
        Self(u64::from(std::process::id()))
    }

    fn apply<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            items.swap(last, (self.0 >> 33) as usize % (last + 1));
        }
    }
}
