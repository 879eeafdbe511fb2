//! Runs the tests on the paused clock under many seeds.
//!
//! ```text
//!   PHASELOOP_SEEDS=100 cargo test --test orders                   seeds 0 to 99
//!   PHASELOOP_SEED=17 cargo test --test orders                     seed 17
//! ```
//!
//! Each seed runs the test binaries of [`BINARIES`] once more, with every loop on a paused clock
//! shuffled. `tests/ORDERS.md` lists the tests that leave kinds of questions out or are not run, each
//! with its reason. Without one of the variables there is nothing to do: a run of the whole takes
//! minutes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The binaries whose tests run on the paused clock.
const BINARIES: [&str; 2] = ["loop", "time"];

/// What the table writes for tests that are not run.
const NOT_RUN: &str = "not run";

fn main() -> ExitCode {
    let Some(seeds) = seeds() else {
        println!("skipped: PHASELOOP_SEEDS=100 runs the tests on the paused clock under 100 seeds");
        return ExitCode::SUCCESS;
    };
    let table = Table::read();
    let start = Instant::now();
    let (mut tests, mut faults) = (0, Vec::new());
    for binary in BINARIES {
        let path = executable(binary);
        let groups = table.groups(binary, &names(&path));
        tests += groups.values().map(Vec::len).sum::<usize>();
        for seed in seeds.clone() {
            for (without, names) in &groups {
                faults.extend(run(&path, seed, without, names));
            }
        }
    }
    faults.extend(table.unused());
    for fault in &faults {
        eprintln!("{fault}");
    }
    let (count, time) = (seeds.end - seeds.start, start.elapsed().as_secs());
    println!(
        "{tests} tests under {count} seeds, in {time} s: {} faults",
        faults.len()
    );
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The seeds that the environment asks for.
fn seeds() -> Option<std::ops::Range<u64>> {
    let number = |name| {
        let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
        Some(
            text.parse::<u64>()
                .unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        )
    };
    match number("PHASELOOP_SEED") {
        Some(seed) => Some(seed..seed + 1),
        None => Some(0..number("PHASELOOP_SEEDS")?),
    }
}

/// Builds a test binary and returns its path.
fn executable(name: &str) -> String {
    let build = Command::new(env!("CARGO"))
        .args([
            "test",
            "--quiet",
            "--no-run",
            "--message-format=json",
            "--test",
            name,
        ])
        .output()
        .expect("cargo starts");
    let messages = String::from_utf8(build.stdout).expect("cargo writes UTF-8");
    let path = messages.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split('"').next()
    });
    match path {
        Some(path) => path.to_owned(),
        None => panic!(
            "{name} was not built: {}",
            String::from_utf8_lossy(&build.stderr)
        ),
    }
}

/// Returns the names of the tests of a binary.
fn names(path: &str) -> Vec<String> {
    let list = Command::new(path)
        .arg("--list")
        .output()
        .expect("the binary starts");
    let list = String::from_utf8(list.stdout).expect("names are UTF-8");
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_owned).collect()
}

/// Runs tests under a seed. Returns what has failed.
fn run(path: &str, seed: u64, without: &str, names: &[String]) -> Option<String> {
    let output = Command::new(path)
        .arg("--exact")
        .args(names)
        .env("PHASELOOP_SHUFFLE", seed.to_string())
        .env("PHASELOOP_WITHOUT", without)
        .env_remove("PHASELOOP_SEED")
        .env_remove("PHASELOOP_SEEDS")
        .output()
        .expect("the binary starts");
    if output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.ends_with("FAILED"))
        .collect();
    let again = format!("PHASELOOP_SHUFFLE={seed} PHASELOOP_WITHOUT={without} {path} --exact");
    Some(format!(
        "seed {seed}: {failed:#?}\nagain: {again} …\n{text}"
    ))
}

/// The rows of `tests/ORDERS.md`.
struct Table(Vec<Row>);

struct Row {
    binary: String,
    /// The beginning of the names of the tests.
    tests: String,
    without: String,
    is_used: std::cell::Cell<bool>,
}

impl Table {
    fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ORDERS.md");
        let text = fs::read_to_string(file).expect("tests/ORDERS.md");
        let rows = text.lines().filter(|line| line.starts_with("| `"));
        let row = |line: &str| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [binary, tests, without, why] = cells[..] else {
                panic!("a row has four cells: {line}");
            };
            assert!(!why.is_empty(), "a row has a reason: {line}");
            Row {
                binary: binary.trim_matches('`').to_owned(),
                tests: tests.trim_matches('`').to_owned(),
                without: without.replace(' ', ""),
                is_used: std::cell::Cell::new(false),
            }
        };
        Self(rows.map(row).collect())
    }

    /// Returns the tests that run, by the kinds of questions that they leave out.
    fn groups(&self, binary: &str, names: &[String]) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in names {
            let rows = self.0.iter().filter(|row| row.binary == binary);
            let rows = rows.filter(|row| name.starts_with(&row.tests));
            let row = rows.max_by_key(|row| row.tests.len());
            if let Some(row) = row {
                row.is_used.set(true);
            }
            let without = row.map_or("", |row| row.without.as_str());
            if without != NOT_RUN.replace(' ', "") {
                groups
                    .entry(without.to_owned())
                    .or_default()
                    .push(name.clone());
            }
        }
        groups
    }

    /// Names the rows of tests that do not exist.
    fn unused(&self) -> impl Iterator<Item = String> {
        let unused = self.0.iter().filter(|row| !row.is_used.get());
        unused.map(|row| format!("tests/ORDERS.md: no test is called {}", row.tests))
    }
}
