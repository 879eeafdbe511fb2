//! What changed since an earlier run.

use crate::catalogue::OURS;
use crate::compare::figure::{FIGURES, Figure};
use crate::compare::record::{Record, Summary};

/// Counts that differ by less are the same.
const SAME_COUNT: f64 = 0.01;
/// Times that differ by less, or whose spreads overlap, are the same.
const SAME_TIME: f64 = 0.05;

/// One number of ours that is not what it was.
pub(crate) struct Change {
    pub(crate) workload: &'static str,
    pub(crate) figure: Figure,
    pub(crate) before: f64,
    pub(crate) now: f64,
}

impl Change {
    pub(crate) fn is_worse(&self) -> bool {
        self.now > self.before
    }

    pub(crate) fn percent(&self) -> String {
        if self.before == 0.0 {
            return "was none".to_owned();
        }
        format!("{:+.1} %", 100.0 * (self.now / self.before - 1.0))
    }
}

pub(crate) fn changes(before: &Record, now: &Record) -> Vec<Change> {
    let mut changes = Vec::new();
    for figure in FIGURES {
        for workload in now.workloads_with(figure) {
            let was = before.summary(workload.name, OURS, figure);
            let is = now.summary(workload.name, OURS, figure);
            let Some((was, is)) = was.zip(is) else {
                continue;
            };
            if differ(figure, was, is) {
                changes.push(Change {
                    workload: workload.name,
                    figure,
                    before: was.median,
                    now: is.median,
                });
            }
        }
    }
    changes
}

fn differ(figure: Figure, was: Summary, is: Summary) -> bool {
    let moved = (is.median - was.median).abs();
    if figure.counted {
        return moved > SAME_COUNT * was.median;
    }
    let apart = is.least > was.most || is.most < was.least;
    apart && moved > SAME_TIME * was.median
}

pub(crate) fn print(before: &Record, now: &Record) {
    println!(
        "\nphaseloop since {}",
        before.environment.get("date").unwrap_or("an unknown day")
    );
    let changes = changes(before, now);
    if changes.is_empty() {
        println!("nothing changed");
    }
    for change in changes {
        let (before, now) = (
            change.figure.show(change.before),
            change.figure.show(change.now),
        );
        let verdict = if change.is_worse() { "WORSE" } else { "better" };
        println!(
            "{verdict:8}{:24}{:44}{before:>12} -> {now:>12}  {}",
            change.workload,
            change.figure.title,
            change.percent()
        );
    }
}
