//! Runs the tests on the paused clock under many seeds.
//!
//! ```text
//!   PHASELOOP_SEEDS=100 cargo test --test orders                   seeds 0 to 99
//!   PHASELOOP_SEED=17 cargo test --test orders                     seed 17
//! ```
//!
//! Each seed runs the test binaries of [`BINARIES`] once more, with every loop on a paused clock
//! shuffled. Tests without such a loop run under the first seed only. `tests/ORDERS.md` lists the
//! tests that leave kinds of questions out or are not run, each with its reason. Without one of the
//! variables there is nothing to do: a run of the whole takes minutes.

mod table;

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use table::{Groups, Table};

/// The binaries with tests on the paused clock, of all packages of the workspace.
const BINARIES: [&str; 5] = ["bridges", "loop", "net", "node", "time"];

/// How many processes run at once, for each core: some tests wait in real time.
const PROCESSES_PER_CORE: usize = 3;

fn main() -> ExitCode {
    let Some(seeds) = seeds() else {
        println!("skipped: PHASELOOP_SEEDS=100 runs the tests on the paused clock under 100 seeds");
        return ExitCode::SUCCESS;
    };
    let table = Table::read();
    let start = Instant::now();
    let binaries = BINARIES.map(|name| Binary::build(name, &table));
    let faults = Mutex::new(Vec::new());
    let note = |fault: Option<String>| faults.lock().unwrap().extend(fault);

    // The first seed shows which tests have a shuffled loop.
    let first = all_runs(&binaries, seeds.start..seeds.start + 1);
    let shuffled = Mutex::new(BTreeSet::new());
    in_parallel(&first, |run| {
        let output = run.start();
        let names = shuffled_tests(&output).map(|test| (run.binary.name, test));
        shuffled.lock().unwrap().extend(names);
        note(run.fault(&output));
    });
    let shuffled = shuffled.into_inner().unwrap();
    let binaries = binaries.map(|binary| binary.only(&shuffled));
    let rest = all_runs(&binaries, seeds.start + 1..seeds.end);
    in_parallel(&rest, |run| note(run.fault(&run.start())));

    table.unused().map(Some).for_each(note);
    let faults = faults.into_inner().unwrap();
    for fault in &faults {
        eprintln!("{fault}");
    }
    let (tests, count) = (shuffled.len(), seeds.end - seeds.start);
    let (time, faults) = (start.elapsed().as_secs(), faults.len());
    println!("{tests} tests under {count} seeds, in {time} s: {faults} faults");
    ExitCode::from(u8::from(faults > 0))
}

/// The seeds that the environment asks for.
fn seeds() -> Option<Range<u64>> {
    let number = |name| {
        let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
        Some(
            text.parse::<u64>()
                .unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        )
    };
    match number("PHASELOOP_SEED") {
        Some(seed) => Some(seed..seed + 1),
        None => number("PHASELOOP_SEEDS").map(|count| 0..count),
    }
}

/// Calls `work` for each of `list`, on several threads.
fn in_parallel<T: Sync>(list: &[T], work: impl Fn(&T) + Sync) {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..cores * PROCESSES_PER_CORE {
            scope.spawn(|| {
                while let Some(one) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(one);
                }
            });
        }
    });
}

/// A test binary, and those of its tests that run.
struct Binary {
    name: &'static str,
    path: String,
    groups: Groups,
}

impl Binary {
    fn build(name: &'static str, table: &Table) -> Self {
        let path = executable(name);
        let groups = table.groups(name, &names(&path));
        Self { name, path, groups }
    }

    /// Keeps these tests.
    fn only(mut self, kept: &BTreeSet<(&'static str, String)>) -> Self {
        for group in self.groups.values_mut() {
            group.retain(|test| kept.contains(&(self.name, test.clone())));
        }
        self.groups.retain(|_, group| !group.is_empty());
        self
    }
}

/// One process: a group of tests under a seed.
struct Run<'a> {
    binary: &'a Binary,
    without: &'a str,
    tests: &'a [String],
    seed: u64,
}

fn all_runs(binaries: &[Binary], seeds: Range<u64>) -> Vec<Run<'_>> {
    let runs = seeds.flat_map(|seed| {
        binaries.iter().flat_map(move |binary| {
            binary.groups.iter().map(move |(without, tests)| Run {
                binary,
                without,
                tests,
                seed,
            })
        })
    });
    runs.collect()
}

impl Run<'_> {
    fn start(&self) -> Output {
        // With one thread the harness would run the tests on its own, which has another name.
        let threads = thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
        Command::new(&self.binary.path)
            .args(["--test-threads", &threads.to_string(), "--exact"])
            .args(self.tests)
            .env("PHASELOOP_SHUFFLE", self.seed.to_string())
            .env("PHASELOOP_WITHOUT", self.without)
            .env_remove("PHASELOOP_SEED")
            .env_remove("PHASELOOP_SEEDS")
            .output()
            .expect("the binary starts")
    }

    /// Says what has failed.
    fn fault(&self, output: &Output) -> Option<String> {
        if output.status.success() {
            return None;
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = text.lines().filter(|line| line.ends_with("FAILED"));
        let failed: Vec<_> = failed.collect();
        let (seed, without, path) = (self.seed, self.without, &self.binary.path);
        let reasons = text
            .split_once("\nfailures:\n")
            .map_or("", |(_, rest)| rest);
        let again =
            format!("PHASELOOP_SHUFFLE={seed} PHASELOOP_WITHOUT={without} {path} --exact …");
        Some(format!(
            "seed {seed}: {failed:#?}\nagain: {again}\n{reasons}"
        ))
    }
}

/// Returns the tests of which a line on standard error names a loop that was shuffled.
fn shuffled_tests(output: &Output) -> impl Iterator<Item = String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let threads = text.lines().filter_map(|line| {
        let (_, thread) = line.split_once(" shuffles a loop of the thread ")?;
        Some(thread.to_owned())
    });
    threads.collect::<Vec<_>>().into_iter()
}

/// Builds a test binary and returns its path. With the features of the whole workspace, so that what
/// `cargo test --workspace` has built is not built again.
fn executable(name: &str) -> String {
    let build = Command::new(env!("CARGO"))
        .args([
            "test",
            "--quiet",
            "--no-run",
            "--message-format=json",
            "--workspace",
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
