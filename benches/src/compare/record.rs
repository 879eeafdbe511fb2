//! The results of a run, as they are written to the JSON file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::catalogue::{RUNTIMES, WORKLOADS, Workload};
use crate::compare::Failure;
use crate::compare::environment::Environment;
use crate::compare::figure::Figure;
use crate::latency::Latencies;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) environment: Environment,
    /// How long it took to measure, the build apart.
    #[serde(default)]
    pub(crate) seconds: f64,
    /// What could not be measured, and why.
    #[serde(default)]
    pub(crate) failures: Vec<String>,
    pub(crate) cells: Vec<Cell>,
}

/// One workload on one runtime.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) workload: String,
    pub(crate) runtime: String,
    /// By the figure's name: one value a round, or one that was counted.
    pub(crate) figures: BTreeMap<String, Vec<f64>>,
    /// System calls per operation, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) calls: BTreeMap<String, f64>,
    /// Latencies of all rounds: share of the operations, nanoseconds that they stayed below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) curve: Vec<(f64, f64)>,
}

impl Cell {
    pub(crate) fn push(&mut self, figure: Figure, value: f64) {
        let values = self.figures.entry(figure.name.to_owned()).or_default();
        values.push(value);
    }

    pub(crate) fn keep_curve(&mut self, latencies: &Latencies) {
        let shares = (0..=40).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / 10.0));
        let reachable = shares.filter(|share| (1.0 - share) * latencies.count() as f64 >= 1.0);
        self.curve = reachable
            .map(|share| (share, latencies.at(share)))
            .collect();
        self.curve.push((1.0, latencies.max()));
    }
}

/// The values of several rounds in short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Summary {
    fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            median: *sorted.get(sorted.len() / 2)?,
            least: *sorted.first()?,
            most: *sorted.last()?,
        })
    }

    /// Half of the distance between the least and the most, against the median.
    pub(crate) fn spread(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        (self.most - self.least) / 2.0 / self.median
    }
}

impl Record {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_reader(BufReader::new(file))?)
    }

    /// Several runs as one: of a figure that two of them have, the later counts.
    pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut all = Self::default();
        for path in paths {
            all.add(Self::read(path)?);
        }
        Ok(all)
    }

    fn add(&mut self, later: Self) {
        self.environment.add(later.environment);
        self.seconds += later.seconds;
        self.failures.extend(later.failures);
        for cell in later.cells {
            let kept = self.cell_mut(&cell.workload, &cell.runtime);
            kept.figures.extend(cell.figures);
            if !cell.calls.is_empty() {
                kept.calls = cell.calls;
            }
            if !cell.curve.is_empty() {
                kept.curve = cell.curve;
            }
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut file = BufWriter::new(File::create(path)?);
        serde_json::to_writer_pretty(&mut file, self)?;
        file.flush()?;
        Ok(())
    }

    /// A cell that fails leaves a gap and a note; the others go on.
    pub(crate) fn note(&mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            eprintln!("\n{failure}");
            self.failures.push(failure.to_string());
        }
    }

    pub(crate) fn cell_mut(&mut self, workload: &str, runtime: &str) -> &mut Cell {
        let found = self.position(workload, runtime);
        let index = found.unwrap_or_else(|| {
            self.cells.push(Cell {
                workload: workload.to_owned(),
                runtime: runtime.to_owned(),
                ..Cell::default()
            });
            self.cells.len() - 1
        });
        &mut self.cells[index]
    }

    pub(crate) fn cell(&self, workload: &str, runtime: &str) -> Option<&Cell> {
        Some(&self.cells[self.position(workload, runtime)?])
    }

    fn position(&self, workload: &str, runtime: &str) -> Option<usize> {
        self.cells
            .iter()
            .position(|cell| cell.workload == workload && cell.runtime == runtime)
    }

    pub(crate) fn summary(&self, workload: &str, runtime: &str, figure: Figure) -> Option<Summary> {
        Summary::of(self.cell(workload, runtime)?.figures.get(figure.name)?)
    }

    /// The workloads that have this figure on any runtime, in the catalogue's order.
    pub(crate) fn workloads_with(&self, figure: Figure) -> Vec<Workload> {
        let has = |workload: &Workload| {
            RUNTIMES
                .iter()
                .any(|runtime| self.summary(workload.name, runtime, figure).is_some())
        };
        WORKLOADS.into_iter().filter(has).collect()
    }

    /// The runtimes with any of these workloads and this figure, in the catalogue's order.
    pub(crate) fn runtimes_with(
        &self,
        figure: Figure,
        workloads: &[Workload],
    ) -> Vec<&'static str> {
        let has = |runtime: &&str| {
            workloads
                .iter()
                .any(|workload| self.summary(workload.name, runtime, figure).is_some())
        };
        RUNTIMES.into_iter().filter(has).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figure::{CPU, INSTRUCTIONS};

    #[test]
    fn several_runs_become_one() {
        let mut counted = Record::default();
        counted.environment.0 = vec![
            ("date".to_owned(), "Monday".to_owned()),
            ("rustc".to_owned(), "1.95".to_owned()),
        ];
        let cell = counted.cell_mut("spawn_join", "phaseloop");
        cell.push(INSTRUCTIONS, 700.0);
        cell.push(CPU, 1.0);
        let mut timed = Record::default();
        timed.environment.0 = vec![
            ("date".to_owned(), "Tuesday".to_owned()),
            ("rustc".to_owned(), "1.95".to_owned()),
        ];
        timed.cell_mut("spawn_join", "phaseloop").push(CPU, 2.0);
        timed.cell_mut("yield", "tokio").push(CPU, 3.0);
        counted.add(timed);
        let median = |workload, runtime, figure| {
            let summary = counted.summary(workload, runtime, figure);
            summary.map(|summary| summary.median)
        };
        assert_eq!(median("spawn_join", "phaseloop", INSTRUCTIONS), Some(700.0));
        assert_eq!(median("spawn_join", "phaseloop", CPU), Some(2.0));
        assert_eq!(median("yield", "tokio", CPU), Some(3.0));
        assert_eq!(counted.environment.get("date"), Some("Monday; Tuesday"));
        assert_eq!(counted.environment.get("rustc"), Some("1.95"));
    }
}
