//! All cells, measured in all ways that were asked for.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Failure;
use crate::environment::{Environment, node_version};
use crate::figure::{
    ALLOCATIONS, CPU, FIGURES, Figure, INSTRUCTIONS, LIVE, MAX, P50, P99, P999, RESIDENT, SIZE,
    SWITCHES, SYSCALLS, WALL,
};
use crate::options::Options;
use crate::process::{Output, Programs, Tool};
use crate::progress::Progress;
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
        failures: Vec::new(),
        cells: Vec::new(),
    };
    let pairs = pairs(options);
    if options.count {
        binary_sizes(&pairs, &mut record);
    }
    let processes = pairs.into_iter();
    let pairs: Vec<_> = processes
        .filter(|(workload, _)| workload.kind != Kind::BinarySize)
        .collect();
    if options.time {
        time(programs, options, pairs.clone(), &mut record);
    }
    if options.count {
        count(programs, options, INSTRUCTIONS, &pairs, &mut record);
    }
    if options.syscalls {
        count(programs, options, SYSCALLS, &pairs, &mut record);
    }
    if options.allocs {
        count(programs, options, ALLOCATIONS, &pairs, &mut record);
    }
    Ok(record)
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
    for (workload, runtime) in pairs {
        if workload.kind == Kind::BinarySize {
            let size = size::of_echo_server(runtime);
            let kept = size.map(|size| record.cell_mut(workload.name, runtime).push(SIZE, size));
            record.note(kept);
        }
    }
}

fn time(programs: &Programs, options: &Options, mut pairs: Vec<Pair>, record: &mut Record) {
    let rounds = options.rounds.unwrap_or(if options.quick { 2 } else { 5 });
    let progress = Progress::new("times", rounds * pairs.len());
    let mut shuffle = Shuffle::new();
    let mut latencies = BTreeMap::<_, Latencies>::new();
    for _ in 0..rounds {
        shuffle.apply(&mut pairs);
        for (workload, runtime) in &pairs {
            progress.step(&format!("{} on {runtime}", workload.name));
            let n = operations(workload, options.quick);
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

/// Fewer if there is little time; but memory is made in pages, so that few things would look too large.
fn operations(workload: &Workload, quick: bool) -> u64 {
    let shorter = match workload.topic() {
        Topic::Memory => 1,
        _ if quick => 5,
        _ => 1,
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

fn count(
    programs: &Programs,
    options: &Options,
    figure: Figure,
    pairs: &[Pair],
    record: &mut Record,
) {
    // A traced system call is slow, and a few hundred tell as much as thousands.
    let shorter = if options.quick && figure == SYSCALLS {
        4
    } else {
        1
    };
    let countable = |(workload, runtime): &&Pair| is_counted(figure, workload, runtime);
    let pairs: Vec<_> = pairs.iter().filter(countable).collect();
    let progress = Progress::new(figure.name, pairs.len());
    let next = AtomicUsize::new(0);
    let record = Mutex::new(record);
    thread::scope(|scope| {
        for _ in 0..COUNTED_AT_ONCE {
            scope.spawn(|| {
                while let Some((workload, runtime)) =
                    pairs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    progress.step(&format!("{} on {runtime}", workload.name));
                    let counts = count_one(
                        programs,
                        figure,
                        workload,
                        runtime,
                        workload.counted / shorter,
                    );
                    let mut record = record.lock().expect("nobody panics under it");
                    let kept = counts.map(|counts| {
                        let cell = record.cell_mut(workload.name, runtime);
                        for (figure, value) in counts.figures {
                            cell.push(figure, value);
                        }
                        cell.calls.extend(counts.calls);
                    });
                    record.note(kept);
                }
            });
        }
    });
}

/// Node compiles while it runs, and has an allocator of its own, as has libuv: these are not counted.
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
    suits && !blind
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

/// What each of the last `n` of `2 n` operations costs: what happens once does not count. A start is all that happens
/// once, and only that.
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
