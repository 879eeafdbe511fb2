//! The figures: what they are called, and which workloads have them.

use crate::catalogue::{Kind, Topic, Workload};
use crate::compare::record::Summary;

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
    /// From 0 to 1.
    Share,
}

/// The least count that is a number: what happens less often than in one of a hundred operations
/// happens once in a run.
const LEAST: f64 = 0.01;

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
pub(crate) const KERNEL: Figure = figure(
    "kernel",
    "the kernel's share of the CPU time",
    Unit::Share,
    false,
);
pub(crate) const WALL: Figure = figure("wall", "time per operation", Unit::Nanoseconds, false);
pub(crate) const P50: Figure = figure("p50", "latency, median", Unit::Nanoseconds, false);
pub(crate) const P99: Figure = figure("p99", "latency, 99 %", Unit::Nanoseconds, false);
pub(crate) const P999: Figure = figure("p99.9", "latency, 99.9 %", Unit::Nanoseconds, false);
pub(crate) const MAX: Figure = figure("max", "latency, worst", Unit::Nanoseconds, false);

/// In the order of the tables.
pub(crate) const FIGURES: [Figure; 14] = [
    INSTRUCTIONS,
    SYSCALLS,
    ALLOCATIONS,
    CPU,
    KERNEL,
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
            (Kind::HttpWrk { .. }, _) => &[CPU, KERNEL, WALL, SWITCHES],
            (_, Topic::Sockets | Topic::Pool) => &[
                INSTRUCTIONS,
                SYSCALLS,
                ALLOCATIONS,
                CPU,
                KERNEL,
                WALL,
                SWITCHES,
            ],
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
            Unit::Share => 0.02,
        }
    }

    /// Whether less of it is better, so that one number may be divided by another.
    pub(crate) fn is_cost(&self) -> bool {
        self.unit != Unit::Share
    }

    /// Whether there is enough of it to be shown as a number.
    pub(crate) fn is_visible(&self, value: f64) -> bool {
        value > 0.0 && (self.unit != Unit::Count || value >= LEAST)
    }

    /// A number of this kind, as short as it can be read.
    pub(crate) fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Nanoseconds => show_time(value),
            Unit::Bytes => thousands(value),
            Unit::Share => format!("{:.0} %", 100.0 * value),
            Unit::Count if value >= 20.0 => thousands(value),
            Unit::Count if value == 0.0 => "0".to_owned(),
            Unit::Count if value < LEAST => "–".to_owned(),
            Unit::Count => format!("{value:.2}"),
        }
    }
}

/// A time with its rounds: the median, and in brackets the best and the worst in the same unit.
impl Figure {
    pub(crate) fn show_range(&self, summary: Summary) -> String {
        let median = self.show(summary.median);
        if self.counted || self.unit != Unit::Nanoseconds || summary.least == summary.most {
            return median;
        }
        let (scale, digits) = scale_of(summary.median);
        let [least, most] = [summary.least, summary.most].map(|ns| ns / scale);
        format!("{median} ({least:.digits$}–{most:.digits$})")
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
    let (scale, digits) = scale_of(nanoseconds);
    let unit = match scale {
        1.0 => "ns",
        1e3 => "µs",
        _ => "ms",
    };
    format!("{:.digits$} {unit}", nanoseconds / scale)
}

/// The nanoseconds of the unit that such a time is shown in, and its decimals.
fn scale_of(nanoseconds: f64) -> (f64, usize) {
    match nanoseconds {
        ns if ns < 1e3 => (1.0, 0),
        ns if ns < 1e4 => (1e3, 2),
        ns if ns < 1e6 => (1e3, 1),
        ns if ns < 1e7 => (1e6, 2),
        _ => (1e6, 1),
    }
}
