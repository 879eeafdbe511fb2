//! What does each operation cost, compared with tokio and smol in the same run?
//!
//! `cargo bench --manifest-path benches/Cargo.toml` prints time and memory; with `-- <options>`:
//!
//! | option | prints, for one operation |
//! |---|---|
//! | `--time` | CPU time (of `cross_thread_wake`: wall time), and resident memory per idle task; this is the default |
//! | `--count` | instructions in user space, counted by callgrind |
//! | `--syscalls` | system calls by name, counted by strace |
//! | `--allocs` | allocations |
//! | `--quick` | the same with fewer rounds and without the largest workloads |
//! | `--only <text>` | only workloads with this in their name |
//!
//! Each workload runs on each runtime in a process of its own. Times are the median of several rounds, each in an
//! order of its own; `±` is half the distance between the fastest and the slowest. Instructions and system calls are
//! the difference between a run and one of twice the length, so what happens once does not count. Under callgrind the
//! clock is read by a system call, which is not counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::process::{Command, ExitCode, Output};

use phaseloop_benches::catalogue::{Kind, RUNTIMES, WORKLOADS, Workload};

const COSTS: &str = env!("CARGO_BIN_EXE_costs");
const ALLOCS: &str = env!("CARGO_BIN_EXE_allocs");

/// The peer that all others are divided by.
const PEER: &str = "tokio";

/// How much slower a process is when every instruction or system call is watched.
const SLOWDOWN: u32 = 12;

/// Workloads with this many sleeps or more are left out by `--quick`.
const LARGE: &str = "/1000000";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = Options::parse(std::env::args().skip(1)).and_then(|options| compare(&options));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("compare: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    time: bool,
    count: bool,
    syscalls: bool,
    allocs: bool,
    quick: bool,
    only: Option<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--time" => options.time = true,
                "--count" => options.count = true,
                "--syscalls" => options.syscalls = true,
                "--allocs" => options.allocs = true,
                "--quick" => options.quick = true,
                "--only" => options.only = Some(arguments.next().ok_or("--only what?")?),
                // Cargo adds this one.
                "--bench" => {}
                other => return Err(format!("unknown option {other}").into()),
            }
        }
        options.time |= !(options.count || options.syscalls || options.allocs);
        Ok(options)
    }

    fn workloads(&self) -> Vec<Workload> {
        let only = self.only.as_deref().unwrap_or_default();
        WORKLOADS
            .into_iter()
            .filter(|workload| workload.name.contains(only))
            .filter(|workload| !(self.quick && workload.name.ends_with(LARGE)))
            .collect()
    }
}

fn compare(options: &Options) -> Result<(), Failure> {
    if options.time {
        time(options)?;
    }
    if options.count {
        count(options)?;
    }
    if options.syscalls {
        syscalls(options)?;
    }
    if options.allocs {
        allocs(options)?;
    }
    Ok(())
}

/// Every workload with every runtime that has it.
fn pairs(workloads: &[Workload]) -> Vec<(Workload, &'static str)> {
    let all = workloads.iter().flat_map(|workload| {
        let runtimes = RUNTIMES.into_iter();
        runtimes.map(move |runtime| (*workload, runtime))
    });
    all.filter(|(workload, runtime)| workload.exists_on(runtime))
        .collect()
}

fn time(options: &Options) -> Result<(), Failure> {
    let workloads = options.workloads();
    let (rounds, shorter) = if options.quick { (3, 5) } else { (7, 1) };
    let mut pairs = pairs(&workloads);
    let mut times = BTreeMap::<_, Vec<f64>>::new();
    let mut resident = BTreeMap::<_, Vec<f64>>::new();
    let mut shuffle = Shuffle::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        shuffle.apply(&mut pairs);
        for (workload, runtime) in &pairs {
            let n = workload.round_up(workload.timed / shorter);
            let reading = Reading::take(COSTS, workload, runtime, n)?;
            let key = (workload.name, *runtime);
            times
                .entry(key)
                .or_default()
                .push(reading.nanoseconds / n as f64);
            if workload.kind == Kind::IdleTask {
                let bytes = reading.resident_bytes / n as f64;
                resident.entry(key).or_default().push(bytes);
            }
        }
    }
    let mut table = Table::new("ns per operation (× tokio's)", &workloads);
    table.fill(|key| Some(Cell::of(times.get(&key)?, times.get(&(key.0, PEER)))));
    table.print();
    let mut table = Table::new("resident bytes per idle task (× tokio's)", &workloads);
    table.fill(|key| Some(Cell::of(resident.get(&key)?, resident.get(&(key.0, PEER)))));
    table.print();
    Ok(())
}

fn count(options: &Options) -> Result<(), Failure> {
    let workloads = options.workloads();
    let mut counts = BTreeMap::new();
    for (workload, runtime) in pairs(&workloads) {
        eprintln!("callgrind: {} on {runtime}", workload.name);
        let instructions = |n| {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", COSTS]);
            let output = run(&mut valgrind, "valgrind", &workload, runtime, n, SLOWDOWN)?;
            collected(&output.stderr)
        };
        let n = workload.counted;
        let per_op = (instructions(2 * n)? - instructions(n)?) / n as f64;
        counts.insert((workload.name, runtime), vec![per_op]);
    }
    let title = "user instructions per operation (× tokio's)";
    let mut table = Table::new(title, &workloads);
    table.fill(|key| Some(Cell::of(counts.get(&key)?, counts.get(&(key.0, PEER)))));
    table.print();
    Ok(())
}

/// The total that callgrind prints at its end.
fn collected(stderr: &[u8]) -> Result<f64, Failure> {
    let text = String::from_utf8_lossy(stderr);
    let total = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, total) = total.ok_or("callgrind printed no total")?;
    Ok(total.trim().parse()?)
}

fn syscalls(options: &Options) -> Result<(), Failure> {
    println!("\nsystem calls per operation");
    for (workload, runtime) in pairs(&options.workloads()) {
        let calls = |n| {
            let mut strace = Command::new("strace");
            strace.args(["-f", "-c", COSTS]);
            let output = run(&mut strace, "strace", &workload, runtime, n, SLOWDOWN)?;
            Ok::<_, Failure>(summary(&output.stderr))
        };
        let n = workload.counted;
        let (short, long) = (calls(n)?, calls(2 * n)?);
        let mut line = format!("{:24}{runtime:16}", workload.name);
        let mut none = true;
        for (name, &many) in &long {
            let few = short.get(name).copied().unwrap_or(0.0);
            let per_op = (many - few) / n as f64;
            if per_op >= 0.000_5 {
                write!(line, " {name} {per_op:.3}")?;
                none = false;
            }
        }
        println!("{line}{}", if none { " none" } else { "" });
    }
    Ok(())
}

/// The table that strace prints at its end: how often each call was made.
fn summary(stderr: &[u8]) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(stderr);
    let rows = text.lines().filter_map(|line| {
        // % time, seconds, usecs/call, calls, errors (or nothing), name
        let columns: Vec<_> = line.split_whitespace().collect();
        let (calls, name) = (columns.get(3)?, columns.last()?);
        let calls = calls.parse().ok()?;
        (columns.len() >= 5 && *name != "total").then(|| ((*name).to_owned(), calls))
    });
    rows.collect()
}

fn allocs(options: &Options) -> Result<(), Failure> {
    let workloads = options.workloads();
    let mut allocations = BTreeMap::new();
    let mut live = BTreeMap::new();
    for (workload, runtime) in pairs(&workloads) {
        let n = workload.counted;
        let reading = Reading::take(ALLOCS, &workload, runtime, n)?;
        let key = (workload.name, runtime);
        allocations.insert(key, reading.allocations / n as f64);
        if workload.kind == Kind::IdleTask {
            live.insert(key, reading.live_bytes / n as f64);
        }
    }
    let mut table = Table::new("allocations per operation", &workloads);
    table.fill(|key| Some(Cell::plain(*allocations.get(&key)?, 3)));
    table.print();
    let mut table = Table::new("allocated bytes per idle task", &workloads);
    table.fill(|key| Some(Cell::plain(*live.get(&key)?, 0)));
    table.print();
    Ok(())
}

/// What `costs` and `allocs` print.
struct Reading {
    nanoseconds: f64,
    allocations: f64,
    live_bytes: f64,
    resident_bytes: f64,
}

impl Reading {
    fn take(binary: &str, workload: &Workload, runtime: &str, n: u64) -> Result<Self, Failure> {
        let output = run(&mut Command::new(binary), binary, workload, runtime, n, 1)?;
        let text = String::from_utf8(output.stdout)?;
        let value = |name: &str| {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(name));
            let value = value.ok_or_else(|| format!("{binary} printed no {name}"))?;
            Ok::<f64, Failure>(value.trim().parse()?)
        };
        Ok(Self {
            nanoseconds: value("nanoseconds")?,
            allocations: value("allocations")?,
            live_bytes: value("live-bytes")?,
            resident_bytes: value("resident-bytes")?,
        })
    }
}

/// Runs one workload on one runtime under `tool`.
fn run(
    command: &mut Command,
    tool: &str,
    workload: &Workload,
    runtime: &str,
    n: u64,
    slowdown: u32,
) -> Result<Output, Failure> {
    command.args([
        workload.name,
        runtime,
        &n.to_string(),
        &slowdown.to_string(),
    ]);
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("`{tool}` is missing: install the package `{tool}`"),
        _ => format!("cannot run {tool}: {error}"),
    })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        return Err(format!("{tool}: {} on {runtime}: {status}\n{stderr}", workload.name).into());
    }
    Ok(output)
}

/// One row a workload, one column a runtime.
struct Table {
    title: &'static str,
    rows: Vec<(&'static str, Vec<Option<Cell>>)>,
}

impl Table {
    fn new(title: &'static str, workloads: &[Workload]) -> Self {
        let rows = workloads.iter().map(|workload| (workload.name, Vec::new()));
        Self {
            title,
            rows: rows.collect(),
        }
    }

    fn fill(&mut self, cell: impl Fn((&'static str, &'static str)) -> Option<Cell>) {
        for (name, cells) in &mut self.rows {
            cells.extend(RUNTIMES.map(|runtime| cell((*name, runtime))));
        }
        self.rows
            .retain(|(_, cells)| cells.iter().any(Option::is_some));
    }

    fn print(&self) {
        if self.rows.is_empty() {
            return;
        }
        println!("\n{}", self.title);
        print!("{:24}", "");
        for runtime in RUNTIMES {
            print!("{runtime:>24}");
        }
        println!();
        for (name, cells) in &self.rows {
            print!("{name:24}");
            for cell in cells {
                print!("{:>24}", cell.as_ref().map_or("–", |cell| &cell.text));
            }
            println!();
        }
    }
}

struct Cell {
    text: String,
}

impl Cell {
    fn plain(value: f64, digits: usize) -> Self {
        Self {
            text: format!("{value:.digits$}"),
        }
    }

    /// The median with its spread, and the ratio to the peer's.
    fn of(values: &[f64], peer: Option<&Vec<f64>>) -> Self {
        let (median, spread) = median_and_spread(values);
        let mut text = format!("{median:.0}");
        if values.len() > 1 {
            let _ = write!(text, " ±{:.0}%", 100.0 * spread / median);
        }
        if let Some(peer) = peer {
            let _ = write!(text, " ({:.2}×)", median / median_and_spread(peer).0);
        }
        Self { text }
    }
}

fn median_and_spread(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let spread = (sorted[sorted.len() - 1] - sorted[0]) / 2.0;
    (sorted[half], spread)
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
