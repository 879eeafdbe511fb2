//! The figures: what they are called, and which workloads have them.

use crate::catalogue::{Kind, Topic, Workload};

/// One kind of number about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    /// Its name in the results.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    unit: Unit,
    /// Whether it is counted: the same on a busy machine.
    pub(crate) counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Count,
    Nanoseconds,
    Bytes,
}

const fn figure(name: &'static str, title: &'static str, unit: Unit, counted: bool) -> Figure {
    Figure {
        name,
        title,
        unit,
        counted,
    }
}

pub(crate) const INSTRUCTIONS: Figure = figure(
    "instructions",
    "user instructions per operation",
    Unit::Count,
    true,
);
pub(crate) const SYSCALLS: Figure =
    figure("syscalls", "system calls per operation", Unit::Count, true);
pub(crate) const ALLOCATIONS: Figure = figure(
    "allocations",
    "allocations per operation",
    Unit::Count,
    true,
);
pub(crate) const LIVE: Figure = figure("live", "allocated bytes each", Unit::Bytes, true);
pub(crate) const RESIDENT: Figure = figure("resident", "resident bytes each", Unit::Bytes, false);
pub(crate) const SIZE: Figure = figure("size", "size of the program in bytes", Unit::Bytes, true);
pub(crate) const SWITCHES: Figure = figure(
    "switches",
    "waits per operation (voluntary context switches)",
    Unit::Count,
    false,
);
pub(crate) const CPU: Figure = figure("cpu", "CPU time per operation", Unit::Nanoseconds, false);
pub(crate) const WALL: Figure = figure("wall", "time per operation", Unit::Nanoseconds, false);
pub(crate) const P50: Figure = figure("p50", "latency, median", Unit::Nanoseconds, false);
pub(crate) const P99: Figure = figure("p99", "latency, 99 %", Unit::Nanoseconds, false);
pub(crate) const P999: Figure = figure("p99.9", "latency, 99.9 %", Unit::Nanoseconds, false);
pub(crate) const MAX: Figure = figure("max", "latency, worst", Unit::Nanoseconds, false);

/// In the order of the tables.
pub(crate) const FIGURES: [Figure; 13] = [
    INSTRUCTIONS,
    SYSCALLS,
    ALLOCATIONS,
    CPU,
    WALL,
    SWITCHES,
    RESIDENT,
    LIVE,
    SIZE,
    P50,
    P99,
    P999,
    MAX,
];

impl Figure {
    /// Whether this number says something about the workload.
    pub(crate) fn suits(&self, workload: &Workload) -> bool {
        let figures: &[Self] = match (workload.kind, workload.topic()) {
            (Kind::CrossThreadWake, _) => &[INSTRUCTIONS, SYSCALLS, ALLOCATIONS, WALL, SWITCHES],
            (Kind::ColdStart, _) => &[INSTRUCTIONS, SYSCALLS, WALL],
            (Kind::BinarySize, _) => &[SIZE],
            (Kind::Idle, _) => &[CPU, SWITCHES],
            (Kind::TimerFire { .. }, _) => &[INSTRUCTIONS, SYSCALLS, ALLOCATIONS, CPU, SWITCHES],
            (_, Topic::Lanes) => &[INSTRUCTIONS, SYSCALLS, ALLOCATIONS, CPU, WALL],
            (_, Topic::Tasks | Topic::Timers | Topic::Process) => {
                &[INSTRUCTIONS, SYSCALLS, ALLOCATIONS, CPU]
            }
            (_, Topic::Sockets | Topic::Pool) => {
                &[INSTRUCTIONS, SYSCALLS, ALLOCATIONS, CPU, WALL, SWITCHES]
            }
            (_, Topic::Memory) => &[RESIDENT, LIVE],
            (_, Topic::Latency) => &[P50, P99, P999, MAX],
            // Half of the naps of a victim may well be undisturbed.
            (_, Topic::Fairness) => &[P99, MAX],
            // The time until the last; the latencies are of the timer beside them.
            (_, Topic::Bursts) => &[WALL, P50, P99, MAX],
            (_, Topic::Growth) => &[INSTRUCTIONS, CPU],
        };
        figures.contains(self)
    }

    /// Differences below this mean nothing: one call or allocation more or less in fifty
    /// operations.
    pub(crate) fn grain(&self) -> f64 {
        match self.unit {
            Unit::Count if self.name == INSTRUCTIONS.name => 1.0,
            Unit::Count => 0.02,
            Unit::Nanoseconds | Unit::Bytes => 1.0,
        }
    }

    /// A number of this kind, as short as it can be read.
    pub(crate) fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => show_time(value),
            Unit::Bytes => thousands(value),
            Unit::Count if value >= 20.0 => thousands(value),
            Unit::Count if value == 0.0 => "0".to_owned(),
            Unit::Count => format!("{value:.2}"),
        }
    }
}

/// Without decimals, the digits in groups of three.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn show_time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e4 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e7 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.1} ms", ns / 1e6),
    }
}
