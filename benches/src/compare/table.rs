//! The tables on the terminal: a row a workload, a column a runtime, each number with its ratio to
//! the best peer's.

use crate::catalogue::RUNTIMES;
use crate::compare::caution::cautions;
use crate::compare::figure::{FIGURES, Figure, SYSCALLS};
use crate::compare::record::Record;
use crate::compare::verdict::best_peer;

pub(crate) fn print(record: &Record) {
    for (name, value) in &record.environment.0 {
        println!("{name:18} {value}");
    }
    for caution in cautions(record) {
        println!("{caution}");
    }
    println!("\nbehind a number: how many times the best peer's it is");
    for figure in FIGURES {
        print_figure(record, figure);
    }
    print_calls(record);
    if !record.failures.is_empty() {
        println!("\nnot measured");
        for failure in &record.failures {
            println!("{failure}");
        }
    }
}

fn print_figure(record: &Record, figure: Figure) {
    let workloads = record.workloads_with(figure);
    if workloads.is_empty() {
        return;
    }
    let runtimes = record.runtimes_with(figure, &workloads);
    println!("\n{}", figure.title);
    print!("{:24}", "");
    for runtime in &runtimes {
        print!("{runtime:>22}");
    }
    println!();
    for workload in workloads {
        print!("{:24}", workload.name);
        for runtime in &runtimes {
            let text = cell(record, workload.name, runtime, figure);
            print!("{:>22}", text.as_deref().unwrap_or("–"));
        }
        println!();
    }
}

/// The median with its spread, and the ratio to the peer's.
fn cell(record: &Record, workload: &str, runtime: &str, figure: Figure) -> Option<String> {
    let summary = record.summary(workload, runtime, figure)?;
    let mut text = figure.show(summary.median);
    if !figure.counted {
        text.push_str(&format!(" ±{:.0}%", 100.0 * summary.spread()));
    }
    match best_peer(record, workload, figure) {
        Some((_, best)) if figure.is_cost() && best.median > 0.0 => {
            text.push_str(&format!(" ({:.2}×)", summary.median / best.median));
        }
        _ => {}
    }
    Some(text)
}

fn print_calls(record: &Record) {
    let workloads = record.workloads_with(SYSCALLS);
    if workloads.is_empty() {
        return;
    }
    println!("\nsystem calls per operation, by name");
    for workload in workloads {
        for runtime in RUNTIMES {
            let Some(cell) = record.cell(workload.name, runtime) else {
                continue;
            };
            if !cell.figures.contains_key(SYSCALLS.name) {
                continue;
            }
            println!("{:24}{runtime:18}{}", workload.name, calls(&cell.calls));
        }
    }
}

/// `name count` for each, the most frequent first.
pub(crate) fn calls(calls: &std::collections::BTreeMap<String, f64>) -> String {
    if calls.is_empty() {
        return "none".to_owned();
    }
    let mut sorted: Vec<_> = calls.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(a.1));
    let texts: Vec<_> = sorted
        .into_iter()
        .map(|(name, count)| format!("{name} {count:.3}"))
        .collect();
    texts.join(", ")
}
