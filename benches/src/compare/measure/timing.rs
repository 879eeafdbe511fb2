//! The cells that are timed, in several rounds.

use std::collections::BTreeMap;

use super::Pair;
use crate::catalogue::{Kind, Topic, Workload};
use crate::compare::Failure;
use crate::compare::estimate;
use crate::compare::figure::{CPU, Figure, KERNEL, MAX, P50, P99, P999, RESIDENT, SWITCHES, WALL};
use crate::compare::options::Options;
use crate::compare::process::{Output, Runner, Tool};
use crate::compare::progress::Progress;
use crate::compare::record::Record;
use crate::latency::Latencies;

/// What one run of a cell gives.
const TIMED: [Figure; 9] = [CPU, KERNEL, WALL, SWITCHES, RESIDENT, P50, P99, P999, MAX];

pub(super) struct Timing {
    rounds: usize,
    quick: bool,
    pairs: Vec<Pair>,
}

impl Timing {
    pub(super) fn new(options: &Options, mut pairs: Vec<Pair>) -> Self {
        let is_wanted = |workload: &Workload, figure: &Figure| {
            figure.suits(workload) && options.wants(workload, *figure)
        };
        pairs.retain(|(workload, _)| TIMED.iter().any(|figure| is_wanted(workload, figure)));
        Self {
            rounds: options.rounds(),
            quick: options.quick,
            pairs,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        let each = self
            .pairs
            .iter()
            .map(|(workload, _)| self.seconds_of(workload));
        self.rounds as f64 * each.sum::<f64>()
    }

    fn seconds_of(&self, workload: &Workload) -> f64 {
        estimate::timed(workload, operations(workload, self.quick))
    }

    pub(super) fn run(mut self, runner: &Runner, progress: &Progress, record: &mut Record) {
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
                let kept = runner
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
        Topic::Memory | Topic::Growth => 1,
        Topic::Fairness | Topic::Bursts => 5,
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
    for figure in TIMED {
        if !figure.suits(workload) {
            continue;
        }
        let value = match figure {
            P50 => output.latencies.at(0.5),
            P99 => output.latencies.at(0.99),
            P999 => output.latencies.at(0.999),
            MAX => output.latencies.max(),
            WALL if workload.kind == Kind::ColdStart => output.lifetime,
            KERNEL => output.get(KERNEL.name)?,
            figure => output.get(figure.name)? / output.operations(n),
        };
        cell.push(figure, value);
    }
    Ok(())
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
