//! All cells, measured in all ways that were asked for.

pub(crate) mod counting;
mod timing;

use crate::catalogue::{Kind, Workload};
use crate::client;
use crate::compare::Failure;
use crate::compare::environment::{Environment, absence};
use crate::compare::estimate;
use crate::compare::figure::{ALLOCATIONS, INSTRUCTIONS, SIZE, SYSCALLS};
use crate::compare::options::{Options, Pass};
use crate::compare::process::{Runner, Tool};
use crate::compare::progress::{Progress, duration, is_shown};
use crate::compare::record::Record;
use crate::compare::size;
use counting::Counting;
use timing::Timing;

type Pair = (Workload, &'static str);

/// Calls `keep` after each pass, so that what was measured so far is not lost with the process.
pub(crate) fn all(
    runner: &Runner,
    options: &Options,
    keep: impl Fn(&Record) -> Result<(), Failure>,
) -> Result<Record, Failure> {
    let mut record = Record {
        environment: Environment::look(),
        seconds: 0.0,
        failures: Vec::new(),
        cells: Vec::new(),
    };
    let (sizes, processes): (Vec<_>, Vec<_>) = pairs(options)
        .into_iter()
        .partition(|(workload, _)| workload.kind == Kind::BinarySize);
    if options.makes(Pass::Instructions) {
        binary_sizes(&sizes, &mut record);
    }
    let counted: Vec<_> = [
        (Pass::Instructions, INSTRUCTIONS),
        (Pass::Syscalls, SYSCALLS),
        (Pass::Allocations, ALLOCATIONS),
    ]
    .into_iter()
    .filter(|(pass, _)| options.makes(*pass))
    .map(|(_, figure)| Counting::new(figure, options, &processes))
    .collect();
    let timing = options
        .makes(Pass::Time)
        .then(|| Timing::new(options, processes));
    let expected = timing.as_ref().map_or(0.0, Timing::seconds)
        + counted.iter().map(Counting::seconds).sum::<f64>();
    if is_shown() {
        eprintln!("about {}", duration(expected));
    }
    let progress = Progress::new(expected);
    if let Some(timing) = timing {
        timing.run(runner, &progress, &mut record);
        keep(&record)?;
    }
    for counting in counted {
        counting.run(runner, &progress, &mut record);
        keep(&record)?;
    }
    record.seconds = progress.end();
    record.environment.note_end();
    if record.cells.is_empty() {
        return Err("nothing was measured: no selected workload has such a figure".into());
    }
    Ok(record)
}

/// Runs each cell once with few operations: does it come to its end?
pub(crate) fn smoke(runner: &Runner, options: &Options) -> Result<(), Failure> {
    let mut pairs = pairs(options);
    pairs.retain(|(workload, _)| workload.kind != Kind::BinarySize);
    let each = |workload: &Workload| estimate::timed(workload, workload.few());
    let progress = Progress::new(pairs.iter().map(|(workload, _)| each(workload)).sum());
    let mut failures = 0;
    for (workload, runtime) in &pairs {
        let name = format!("{} on {runtime}", workload.name);
        progress.step(&name, each(workload));
        if let Err(failure) = runner.run(Tool::Nothing, workload, runtime, workload.few()) {
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
    let mut runtimes = options.runtimes();
    runtimes.retain(|runtime| absence(runtime).is_none());
    let workloads = options.workloads().into_iter();
    let all = workloads.flat_map(|workload| {
        let runtimes = runtimes.iter();
        runtimes.map(move |runtime| (workload, *runtime))
    });
    let can = |workload: &Workload| {
        !matches!(workload.kind, Kind::HttpWrk { .. }) || client::is_wrk_installed()
    };
    all.filter(|(workload, runtime)| workload.exists_on(runtime) && can(workload))
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
