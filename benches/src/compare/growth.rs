//! Does one of a million cost more than one of a thousand?

use std::fmt::Write;

use crate::catalogue::{Kind, OURS, RUNTIMES, Thing, WORKLOADS, Workload};
use crate::compare::Failure;
use crate::compare::figure::{CPU, Figure, INSTRUCTIONS};
use crate::compare::record::Record;

/// What is looked at.
pub(crate) const GROWING: [Figure; 2] = [INSTRUCTIONS, CPU];

/// By how much the instructions of one may exceed what is expected: a table that has just doubled
/// is paid for by those in it.
const SLACK: f64 = 0.2;

/// How much more time one of the most may take than one of the fewest, what is expected apart. A
/// thousand things are in the caches of the processor and a million are not, so each access takes
/// some ten times as long; a cost that is proportional to the number would be a thousand times as
/// high.
const COLDER: f64 = 12.0;

/// The cost of a thing on one runtime, by how many there are at once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) thing: Thing,
    pub(crate) runtime: &'static str,
    pub(crate) figure: Figure,
    /// How many there are, and what one costs.
    pub(crate) points: Vec<(u64, f64)>,
}

/// All that were measured at two sizes or more.
pub(crate) fn lines(record: &Record) -> Vec<Line> {
    let mut lines = Vec::new();
    for thing in Thing::ALL {
        for figure in GROWING {
            for runtime in RUNTIMES {
                let points = points(record, thing, runtime, figure);
                if points.len() > 1 {
                    lines.push(Line {
                        thing,
                        runtime,
                        figure,
                        points,
                    });
                }
            }
        }
    }
    lines
}

fn points(record: &Record, thing: Thing, runtime: &str, figure: Figure) -> Vec<(u64, f64)> {
    let size = |workload: &Workload| match workload.kind {
        Kind::Grow(of, size) if of == thing => Some(size),
        _ => None,
    };
    let cost = |workload: &Workload| record.summary(workload.name, runtime, figure);
    let points = WORKLOADS.iter();
    let points = points.filter_map(|workload| Some((size(workload)?, cost(workload)?.median)));
    points.collect()
}

impl Line {
    /// How much more one of `size` may cost than one of the fewest: a heap of timers is as deep as
    /// the logarithm of its size. All else must not depend on it.
    fn expected(&self, fewest: u64, size: u64) -> f64 {
        match self.thing {
            Thing::Timer => (size as f64).ln() / (fewest as f64).ln(),
            _ => 1.0,
        }
    }

    /// The first size at which one costs too much, in words.
    ///
    /// # Errors
    ///
    /// There is such a size.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some((&(fewest, first), rest)) = self.points.split_first() else {
            return Ok(());
        };
        let slack = if self.figure.counted {
            1.0 + SLACK
        } else {
            COLDER
        };
        for &(size, cost) in rest {
            let most = first * self.expected(fewest, size) * slack;
            if cost > most {
                return Err(format!(
                    "a {} costs {} {} at {fewest} and {} at {size}, more than {}",
                    self.thing.name(),
                    self.figure.show(first),
                    self.figure.name,
                    self.figure.show(cost),
                    self.figure.show(most)
                ));
            }
        }
        Ok(())
    }
}

/// Fails if a cost of ours grows faster than it may.
pub(crate) fn check(record: &Record) -> Result<(), Failure> {
    let lines = lines(record).into_iter();
    let ours: Vec<_> = lines.filter(|line| line.runtime == OURS).collect();
    if ours.is_empty() {
        return Err("no growth of phaseloop was measured".into());
    }
    let steep: Vec<_> = ours.iter().filter_map(|line| line.check().err()).collect();
    if steep.is_empty() {
        println!(
            "\ngrowth: {} costs of phaseloop, none too steep",
            ours.len()
        );
        return Ok(());
    }
    Err(format!("superlinear growth\n{}", steep.join("\n")).into())
}

/// A table a figure: a row a thing and a runtime, a column a size.
pub(crate) fn markdown(record: &Record) -> String {
    let mut text = String::new();
    let lines = lines(record);
    for figure in GROWING {
        let rows: Vec<_> = lines.iter().filter(|line| line.figure == figure).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n| growth: {} | | fewest | | | most | × |\n|---|---|---|---|---|---|---|\n",
            figure.title
        );
        for line in rows {
            let _ = writeln!(text, "| {} |", cells(line).join(" | "));
        }
    }
    text
}

/// Thing, runtime, up to four costs with their sizes, and the ratio of the last to the first.
fn cells(line: &Line) -> Vec<String> {
    let mut cells = vec![line.thing.name().to_owned(), line.runtime.to_owned()];
    let show =
        |(size, cost): &(u64, f64)| format!("{} at {}", line.figure.show(*cost), short(*size));
    let (last, before) = line.points.split_last().expect("a line has points");
    cells.extend(before.iter().map(show));
    cells.resize(5, String::new());
    cells.push(show(last));
    cells.push(format!("{:.2}", last.1 / line.points[0].1));
    cells
}

/// `1k` for a thousand.
pub(crate) fn short(size: u64) -> String {
    match size {
        0..1000 => size.to_string(),
        1000..1_000_000 => format!("{}k", size / 1000),
        _ => format!("{}M", size / 1_000_000),
    }
}

pub(crate) fn print(record: &Record) {
    let lines = lines(record);
    for figure in GROWING {
        let rows: Vec<_> = lines.iter().filter(|line| line.figure == figure).collect();
        if rows.is_empty() {
            continue;
        }
        println!("\ngrowth: {}, by how many there are at once", figure.title);
        for line in rows {
            let cells = cells(line);
            print!("{:12}{:18}", cells[0], cells[1]);
            for cell in &cells[2..] {
                print!("{cell:>18}");
            }
            println!();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(thing: Thing, figure: Figure, points: &[(u64, f64)]) -> Line {
        Line {
            thing,
            runtime: OURS,
            figure,
            points: points.to_vec(),
        }
    }

    #[test]
    fn a_constant_cost_passes() {
        let points = [(1000, 500.0), (10_000, 510.0), (1_000_000, 560.0)];
        assert_eq!(line(Thing::Task, INSTRUCTIONS, &points).check(), Ok(()));
    }

    #[test]
    fn a_cost_that_grows_with_the_number_fails() {
        let points = [(1000, 500.0), (10_000, 510.0), (1_000_000, 700.0)];
        let steep = line(Thing::Task, INSTRUCTIONS, &points).check();
        let steep = steep.expect_err("it grows");
        assert!(steep.contains("at 1000000"), "{steep}");
    }

    #[test]
    fn a_heap_may_grow_with_its_depth_and_no_faster() {
        let deep = [(1000, 1000.0), (1_000_000, 2000.0)];
        assert_eq!(line(Thing::Timer, INSTRUCTIONS, &deep).check(), Ok(()));
        assert!(line(Thing::Waiter, INSTRUCTIONS, &deep).check().is_err());
        let deeper = [(1000, 1000.0), (1_000_000, 2500.0)];
        assert!(line(Thing::Timer, INSTRUCTIONS, &deeper).check().is_err());
    }

    #[test]
    fn time_may_grow_as_caches_do_and_no_faster() {
        let colder = [(1000, 100.0), (1_000_000, 1000.0)];
        assert_eq!(line(Thing::Job, CPU, &colder).check(), Ok(()));
        let quadratic = [(1000, 100.0), (10_000, 1000.0), (100_000, 10_000.0)];
        assert!(line(Thing::Job, CPU, &quadratic).check().is_err());
    }

    #[test]
    fn a_record_is_checked_by_ours_alone() {
        let mut record = Record::default();
        let mut keep = |workload: &str, runtime: &str, cost: f64| {
            record.cell_mut(workload, runtime).push(INSTRUCTIONS, cost);
        };
        keep("grow_task/1000", OURS, 100.0);
        keep("grow_task/10000", OURS, 105.0);
        keep("grow_task/1000", "tokio", 100.0);
        keep("grow_task/10000", "tokio", 900.0);
        assert!(check(&record).is_ok());
        record
            .cell_mut("grow_task/100000", OURS)
            .push(INSTRUCTIONS, 200.0);
        assert!(check(&record).is_err());
    }

    #[test]
    fn no_growth_of_ours_is_a_failure_too() {
        assert!(check(&Record::default()).is_err());
    }

    #[test]
    fn the_table_has_every_size_and_the_ratio() {
        let points = [(1000, 100.0), (9000, 110.0), (18_000, 120.0)];
        let cells = cells(&line(Thing::Connection, INSTRUCTIONS, &points));
        assert_eq!(cells[2], "100 at 1k");
        assert_eq!(cells[5], "120 at 18k");
        assert_eq!(cells[6], "1.20");
    }
}
