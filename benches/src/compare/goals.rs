//! What phaseloop set out to cost: each goal with the cell that shows it, what was measured, the
//! best peer, and whether it is met.

mod list;

use std::fmt::Write;

use crate::catalogue::{OURS, RUNTIMES, Workload};
use crate::compare::figure::{Figure, SYSCALLS};
use crate::compare::record::Record;
use crate::compare::verdict::{EVEN, is_peer};
use list::{GOALS, RING};

/// One goal.
#[derive(Clone, Copy)]
struct Goal {
    workload: &'static str,
    /// The runtime whose cell it is about.
    runtime: &'static str,
    measure: Measure,
    bound: Bound,
}

/// What of the cell is looked at.
#[derive(Clone, Copy)]
enum Measure {
    Figure(Figure),
    /// System calls of these names together, and what they do.
    Calls(&'static str, &'static [&'static str]),
}

#[derive(Clone, Copy)]
enum Bound {
    AtMost(f64),
    /// At most 5 % more than any of these peers has.
    NotBehind(&'static [&'static str]),
    /// At most so many times what this one has.
    Times(f64, &'static str),
    /// At most so many more than this workload has.
    Above(&'static str, f64),
    /// Not more than any peer has.
    FirstOfAll,
}

use Bound::{Above, AtMost, FirstOfAll, NotBehind, Times};

/// Whether any goal is about the workload.
pub(crate) fn has_goal(workload: &str) -> bool {
    GOALS.iter().any(|goal| goal.speaks_of(workload))
}

/// Whether a goal needs this figure of the workload.
pub(crate) fn asks_for(workload: &str, figure: Figure) -> bool {
    GOALS
        .iter()
        .any(|goal| goal.speaks_of(workload) && goal.measure.figure() == figure)
}

/// What became of a goal.
pub(crate) struct Outcome {
    pub(crate) workload: &'static str,
    /// The operation in words.
    pub(crate) about: String,
    /// What is measured.
    pub(crate) what: &'static str,
    pub(crate) wanted: String,
    pub(crate) ours: String,
    /// Who has the least of the peers, and how much.
    pub(crate) best_peer: Option<String>,
    /// `name value` of each, the floors among them.
    pub(crate) others: Vec<String>,
    /// `None` if a peer is missing that the goal speaks of.
    pub(crate) met: Option<bool>,
}

/// The goals whose cells were measured.
pub(crate) fn outcomes(record: &Record) -> Vec<Outcome> {
    GOALS
        .iter()
        .filter_map(|goal| goal.outcome(record))
        .collect()
}

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Self::Figure(figure) => figure.name,
            Self::Calls(what, _) => what,
        }
    }

    fn figure(self) -> Figure {
        match self {
            Self::Figure(figure) => figure,
            Self::Calls(..) => SYSCALLS,
        }
    }

    fn value(self, record: &Record, workload: &str, runtime: &str) -> Option<f64> {
        let measured = record.summary(workload, runtime, self.figure())?;
        match self {
            Self::Figure(_) => Some(measured.median),
            Self::Calls(_, names) => {
                let calls = &record.cell(workload, runtime)?.calls;
                // Its reads and writes are no calls, and cannot be compared.
                if calls.contains_key(RING) && !names.contains(&RING) {
                    return None;
                }
                Some(names.iter().filter_map(|name| calls.get(*name)).sum())
            }
        }
    }
}

impl Goal {
    fn speaks_of(&self, workload: &str) -> bool {
        self.workload == workload || matches!(self.bound, Above(other, _) if other == workload)
    }

    fn outcome(&self, record: &Record) -> Option<Outcome> {
        let figure = self.measure.figure();
        let ours = self.measure.value(record, self.workload, self.runtime)?;
        let others = RUNTIMES
            .into_iter()
            .filter(|runtime| *runtime != self.runtime);
        let others = others.filter_map(|runtime| Some((runtime, self.value(record, runtime)?)));
        let show = |(runtime, value): (&str, f64)| format!("{runtime} {}", figure.show(value));
        Some(Outcome {
            workload: self.workload,
            about: Workload::find(self.workload)?.about(),
            what: self.measure.title(),
            wanted: self.wanted(figure),
            ours: match self.runtime {
                OURS => figure.show(ours),
                runtime => show((runtime, ours)),
            },
            best_peer: self.best_peer(record).map(show),
            others: others.map(show).collect(),
            met: self.met(record, ours),
        })
    }

    fn value(&self, record: &Record, runtime: &str) -> Option<f64> {
        self.measure.value(record, self.workload, runtime)
    }

    fn best_peer(&self, record: &Record) -> Option<(&'static str, f64)> {
        let peers = RUNTIMES.into_iter().filter(|runtime| is_peer(runtime));
        let values = peers.filter_map(|runtime| Some((runtime, self.value(record, runtime)?)));
        values.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn wanted(&self, figure: Figure) -> String {
        match self.bound {
            AtMost(most) => format!("≤ {}", figure.show(most)),
            NotBehind(peers) => format!("not behind {}", peers.join(", ")),
            Times(factor, peer) => format!("≤ {factor} × {peer}'s"),
            Above(workload, more) => format!("≤ {workload} + {}", figure.show(more)),
            FirstOfAll => "first of all".to_owned(),
        }
    }

    fn met(&self, record: &Record, ours: f64) -> Option<bool> {
        let figure = self.measure.figure();
        match self.bound {
            AtMost(most) if figure == SYSCALLS => Some(ours <= most + figure.grain()),
            // Compared as printed, so that 400 of 400 is not a miss.
            AtMost(most) => Some(ours.round() <= most),
            NotBehind(peers) => {
                let theirs = peers.iter().map(|peer| self.value(record, peer));
                let least = theirs.collect::<Option<Vec<_>>>()?;
                let least = least.into_iter().fold(f64::INFINITY, f64::min);
                Some(ours <= (1.0 + EVEN) * least)
            }
            Times(factor, peer) => Some(ours <= factor * self.value(record, peer)?),
            Above(workload, more) => {
                let other = self.measure.value(record, workload, self.runtime)?;
                Some(ours.round() <= other.round() + more)
            }
            FirstOfAll => Some(ours <= self.best_peer(record)?.1),
        }
    }
}

/// `met of all`.
pub(crate) fn score(outcomes: &[Outcome]) -> String {
    let met = outcomes.iter().filter(|outcome| outcome.met == Some(true));
    format!("{} of {} met", met.count(), outcomes.len())
}

pub(crate) fn print(record: &Record) {
    let outcomes = outcomes(record);
    if outcomes.is_empty() {
        return;
    }
    println!("\ngoals: {}", score(&outcomes));
    println!(
        "{:8}{:22}{:14}{:>12}{:>22}{:>24}",
        "", "", "", "now", "best peer", "goal"
    );
    for outcome in outcomes {
        println!(
            "{:8}{:22}{:14}{:>12}{:>22}{:>24}",
            word(outcome.met),
            outcome.workload,
            outcome.what,
            outcome.ours,
            outcome.best_peer.as_deref().unwrap_or("–"),
            outcome.wanted,
        );
    }
}

/// The table of `summary.md`.
pub(crate) fn markdown(record: &Record) -> String {
    let outcomes = outcomes(record);
    if outcomes.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nGoals: {}.\n\n| operation | measured | now | best peer | goal | |\n|---|---|---|---|---|---|\n",
        score(&outcomes)
    );
    for outcome in outcomes {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            outcome.about,
            outcome.what,
            outcome.ours,
            outcome.best_peer.as_deref().unwrap_or("–"),
            outcome.wanted,
            word(outcome.met).to_lowercase()
        );
    }
    text
}

pub(crate) fn word(met: Option<bool>) -> &'static str {
    match met {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "–",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figure::{CPU, INSTRUCTIONS, P99};

    fn record(cells: &[(&str, &str, Figure, f64)]) -> Record {
        let mut record = Record::default();
        for (workload, runtime, figure, value) in cells {
            record.cell_mut(workload, runtime).push(*figure, *value);
        }
        record
    }

    fn met(record: &Record, workload: &str, what: &str) -> Vec<Option<bool>> {
        let outcomes = outcomes(record).into_iter();
        let of_cell = outcomes.filter(|o| o.workload == workload && o.what == what);
        of_cell.map(|outcome| outcome.met).collect()
    }

    #[test]
    fn every_goal_is_about_a_workload_that_has_its_figure() {
        for goal in GOALS {
            let workload = Workload::find(goal.workload);
            let workload = workload.unwrap_or_else(|| panic!("there is no {}", goal.workload));
            assert!(
                goal.measure.figure().suits(&workload),
                "{} has no {}",
                goal.workload,
                goal.measure.title()
            );
        }
    }

    #[test]
    fn a_bound_is_met_as_it_is_printed() {
        let cells = [("spawn_join/1000", OURS, INSTRUCTIONS, 590.4)];
        assert_eq!(
            met(&record(&cells), "spawn_join/1000", "instructions"),
            [Some(true), Some(true)]
        );
        let cells = [("spawn_join/1000", OURS, INSTRUCTIONS, 600.0)];
        assert_eq!(
            met(&record(&cells), "spawn_join/1000", "instructions"),
            [Some(true), Some(false)]
        );
    }

    #[test]
    fn a_goal_against_a_peer_has_no_verdict_without_it() {
        let cells = [("http/50", OURS, CPU, 94.0)];
        assert_eq!(met(&record(&cells), "http/50", "cpu"), [None]);
        let cells = [
            ("http/50", OURS, CPU, 94.0),
            ("http/50", "tokio", CPU, 100.0),
        ];
        assert_eq!(met(&record(&cells), "http/50", "cpu"), [Some(true)]);
    }

    #[test]
    fn a_goal_above_another_workload_is_measured_from_that() {
        let cells = [
            ("self_wake/recorded", OURS, INSTRUCTIONS, 216.0),
            ("self_wake/1", OURS, INSTRUCTIONS, 130.0),
        ];
        let met = |cells| met(&record(cells), "self_wake/recorded", "instructions");
        assert_eq!(met(&cells), [Some(false)]);
        assert_eq!(met(&cells[..1]), [None]);
        let nearer = [cells[1], ("self_wake/recorded", OURS, INSTRUCTIONS, 215.0)];
        assert_eq!(met(&nearer), [Some(true)]);
        assert!(has_goal("yield_immediate") && asks_for("yield_immediate", INSTRUCTIONS));
    }

    #[test]
    fn the_first_of_all_is_ahead_of_peers_and_not_of_floors() {
        let tail = "tcp_rate/1000x20000";
        let mut cells = vec![
            (tail, OURS, P99, 10.0),
            (tail, "tokio", P99, 20.0),
            (tail, "raw-epoll", P99, 5.0),
        ];
        let outcome = &outcomes(&record(&cells))[0];
        assert_eq!(outcome.met, Some(true));
        assert_eq!(outcome.best_peer.as_deref(), Some("tokio 20 ns"));
        cells.push((tail, "libuv", P99, 9.0));
        assert_eq!(met(&record(&cells), tail, "p99"), [Some(false)]);
    }

    #[test]
    fn reads_of_a_ring_are_not_compared_with_calls() {
        let echo = "tcp_echo/1x64";
        let mut record = record(&[(echo, OURS, SYSCALLS, 3.0), (echo, "monoio", SYSCALLS, 1.0)]);
        let ours = &mut record.cell_mut(echo, OURS).calls;
        ours.insert("recvfrom".to_owned(), 1.0);
        let theirs = &mut record.cell_mut(echo, "monoio").calls;
        theirs.insert(RING.to_owned(), 1.0);
        let outcomes = outcomes(&record);
        let of = |what| outcomes.iter().find(|o| o.what == what).expect(what);
        assert_eq!(of("reads").best_peer, None);
        assert_eq!(of("waits").best_peer.as_deref(), Some("monoio 1.00"));
    }

    #[test]
    fn the_table_says_now_best_peer_goal_and_verdict() {
        let cells = [
            ("udp_echo/1", OURS, INSTRUCTIONS, 1384.0),
            ("udp_echo/1", "libuv", INSTRUCTIONS, 898.0),
        ];
        let table = markdown(&record(&cells));
        assert!(
            table.contains("| instructions | 1,384 | libuv 898 | ≤ 850 | missed |"),
            "{table}"
        );
    }
}
