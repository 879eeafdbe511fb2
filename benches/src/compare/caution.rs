//! What a reader must know before the first number: a build that is not the one that counts, a
//! single round, a machine with other work.

use crate::compare::figure::FIGURES;
use crate::compare::record::Record;

/// More load than this before the first process is other work.
const IDLE: f64 = 0.5;

/// One sentence each.
pub(crate) fn cautions(record: &Record) -> Vec<String> {
    let mut cautions = Vec::new();
    let profile = record.environment.get("profile");
    if let Some(profile) = profile.filter(|name| !name.starts_with("release")) {
        cautions.push(format!(
            "The profile is {profile}: compare these numbers with each other only."
        ));
    }
    if rounds(record) == 1 {
        cautions.push("Each time is of a single round: its spread is unknown.".to_owned());
    }
    let load = record.environment.get("load at the start");
    let busiest = load.and_then(busiest).filter(|load| *load > IDLE);
    if let Some(load) = busiest {
        cautions.push(format!(
            "The machine had other work (load {load:.2} at the start): counts hold, times may not."
        ));
    }
    cautions
}

/// The most rounds that a time has; 0 if nothing was timed.
fn rounds(record: &Record) -> usize {
    let timed = FIGURES.into_iter().filter(|figure| !figure.counted);
    let timed: Vec<_> = timed.map(|figure| figure.name).collect();
    let figures = record.cells.iter().flat_map(|cell| &cell.figures);
    let rounds = figures.filter(|(name, _)| timed.contains(&name.as_str()));
    rounds.map(|(_, values)| values.len()).max().unwrap_or(0)
}

/// The load of the last minute, of several runs the highest.
fn busiest(loads: &str) -> Option<f64> {
    let runs = loads.split(';');
    let loads = runs.filter_map(|run| run.split(',').next()?.trim().parse::<f64>().ok());
    loads.fold(None, |most, load| {
        Some(most.map_or(load, |most: f64| most.max(load)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figure::CPU;

    fn record(profile: &str, load: &str, rounds: usize) -> Record {
        let mut record = Record::default();
        for (name, value) in [("profile", profile), ("load at the start", load)] {
            let fact = (name.to_owned(), value.to_owned());
            record.environment.0.push(fact);
        }
        for _ in 0..rounds {
            record.cell_mut("spawn_join", "phaseloop").push(CPU, 1.0);
        }
        record
    }

    #[test]
    fn a_reader_learns_of_what_spoils_the_numbers() {
        let good = record("release, fat LTO", "0.10, 3.00, 3.00", 5);
        assert!(cautions(&good).is_empty());
        let bad = record("debug", "0.10, 0, 0; 3.20, 1, 1", 1);
        let cautions = cautions(&bad).join(" ");
        assert!(cautions.contains("profile is debug"), "{cautions}");
        assert!(cautions.contains("single round"), "{cautions}");
        assert!(cautions.contains("load 3.20"), "{cautions}");
    }
}
