//! The cost contract: what each operation of ours may cost, checked in beside the suite. Counts
//! only, so that it holds on any machine; instructions depend on the compiler's version, which is
//! written down with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::figure::{ALLOCATIONS, Figure, INSTRUCTIONS, SYSCALLS};
use crate::measure::{count_at_once, count_one};
use crate::process::Programs;
use crate::progress::Progress;
use phaseloop_benches::catalogue::{OURS, Workload};

/// By how much a count may grow.
const ALLOWANCE: f64 = 0.05;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contract.json");

/// What is counted, and for which workloads: those that the README speaks of, cheap enough for
/// every change, and whose counts do not depend on when their requests arrive, as those of HTTP do.
const WORKLOADS: [&str; 16] = [
    "spawn_join",
    "self_wake/1",
    "yield",
    "ping_pong",
    "immediates",
    "immediates/1000",
    "next_tick",
    "microtasks/1000",
    "set_timeout",
    "timer_drop/1000",
    "timer_drop_all/1000",
    "tcp_echo/1x64",
    "tcp_echo/50x64",
    "tcp_echo/50x16384",
    "udp_echo/50",
    "start_stop",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Check,
    Renew,
}

#[derive(Serialize, Deserialize)]
struct Contract {
    /// The compiler and machine of the figures.
    measured_with: String,
    costs: Costs,
}

/// Per operation, by workload and figure.
type Costs = BTreeMap<String, BTreeMap<String, f64>>;

pub(crate) fn run(programs: &Programs, task: Task) -> Result<(), Failure> {
    let costs = count(programs)?;
    match task {
        Task::Renew => {
            let contract = Contract {
                measured_with: compiler(),
                costs,
            };
            let mut text = serde_json::to_string_pretty(&contract)?;
            text.push('\n');
            fs::write(FILE, text)?;
            println!("wrote {FILE}");
            Ok(())
        }
        Task::Check => check(&costs),
    }
}

fn count(programs: &Programs) -> Result<Costs, Failure> {
    let progress = Progress::new(WORKLOADS.len() as f64);
    let costs = Mutex::new(Ok(Costs::new()));
    count_at_once(&WORKLOADS, |name| {
        progress.step(name, 1.0);
        let row = count_row(programs, name);
        let mut costs = costs.lock().expect("no holder of the lock panics");
        match (costs.as_mut(), row) {
            (Ok(costs), Ok(row)) => {
                costs.insert((*name).to_owned(), row);
            }
            (Ok(_), Err(failure)) => *costs = Err(failure),
            (Err(_), _) => {}
        }
    });
    progress.end();
    costs.into_inner().expect("no holder of the lock panics")
}

fn count_row(programs: &Programs, name: &str) -> Result<BTreeMap<String, f64>, Failure> {
    let workload = Workload::find(name).ok_or("no such workload")?;
    let mut row = BTreeMap::new();
    for figure in [INSTRUCTIONS, SYSCALLS, ALLOCATIONS] {
        let counts = count_one(programs, figure, &workload, OURS, workload.counted)?;
        for (figure, value) in counts.figures {
            row.insert(figure.name.to_owned(), (value * 1000.0).round() / 1000.0);
        }
    }
    Ok(row)
}

fn check(costs: &Costs) -> Result<(), Failure> {
    let text = fs::read_to_string(Path::new(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let contract: Contract = serde_json::from_str(&text)?;
    let mut broken = 0;
    println!("{:24}{:>14}{:>12}{:>12}", "", "", "agreed", "now");
    for (workload, row) in costs {
        for figure in [INSTRUCTIONS, SYSCALLS, ALLOCATIONS] {
            let agreed = contract.costs.get(workload);
            let agreed = agreed.and_then(|row| row.get(figure.name));
            let Some((agreed, now)) = agreed.zip(row.get(figure.name)) else {
                return Err(format!("{workload}: the contract has no {}", figure.name).into());
            };
            let verdict = verdict(figure, *agreed, *now);
            broken += usize::from(verdict == "TOO MUCH");
            let (agreed, now) = (figure.show(*agreed), figure.show(*now));
            println!(
                "{workload:24}{:>14}{agreed:>12}{now:>12}  {verdict}",
                figure.name
            );
        }
    }
    if broken == 0 {
        return Ok(());
    }
    if contract.measured_with != compiler() {
        let (then, now) = (contract.measured_with, compiler());
        return Err(format!("{broken} costs have grown; agreed with {then}, now {now}").into());
    }
    Err(format!(
        "{broken} costs have grown by more than {:.0} %; if that is worth it, --renew-contract",
        100.0 * ALLOWANCE
    )
    .into())
}

fn verdict(figure: Figure, agreed: f64, now: f64) -> &'static str {
    let slack = (agreed * ALLOWANCE).max(figure.grain());
    if now > agreed + slack {
        "TOO MUCH"
    } else if now < agreed - slack {
        "less: renew the contract"
    } else {
        ""
    }
}

fn compiler() -> String {
    let environment = crate::environment::Environment::look();
    let rustc = environment.get("rustc").unwrap_or("an unknown compiler");
    format!("{rustc}, {}", std::env::consts::ARCH)
}
