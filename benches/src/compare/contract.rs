//! The cost contract: what each operation of ours may cost, checked in beside the suite. Counts
//! only, so that it holds on any machine; instructions depend on the compiler's version, which is
//! written down with them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::catalogue::{OURS, RUNTIMES, Workload};
use crate::compare::Failure;
use crate::compare::chart;
use crate::compare::environment::{Environment, absence};
use crate::compare::figure::{ALLOCATIONS, Figure, INSTRUCTIONS, SYSCALLS};
use crate::compare::measure::counting::{count_at_once, count_one, is_counted};
use crate::compare::options::Options;
use crate::compare::process::{Runner, Tool};
use crate::compare::progress::Progress;
use crate::compare::record::Record;

/// By how much a count may grow.
const ALLOWANCE: f64 = 0.05;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/contract.json");

/// What is counted, and for which workloads: those that the README speaks of, cheap enough for
/// every change, and whose counts do not depend on when their requests arrive, as those of HTTP do.
const WORKLOADS: [&str; 27] = [
    "spawn_join",
    "spawn_join/1000",
    "self_wake/1",
    "self_wake/recorded",
    "yield",
    "ping_pong",
    "remote_call_flood/25600",
    "mutex",
    "mutex_handover",
    "mpsc_ping_pong",
    "mpsc_burst/64",
    "oneshot",
    "join3",
    "select3",
    "immediates",
    "immediates/1000",
    "next_tick",
    "microtasks/1000",
    "set_timeout",
    "timer_drop/1000",
    "timer_drop_all/1000",
    "timer_replace/1000",
    "tcp_echo/1x64",
    "tcp_echo/50x64",
    "tcp_echo/50x16384",
    "udp_echo/50",
    "start_stop",
];

/// Figures and what counts them. System calls are counted by strace, not by perf: the server is
/// then slower than its client, every wait finds all messages, and the counts repeat.
const COUNTED: [(Figure, Tool); 3] = [
    (INSTRUCTIONS, Tool::Callgrind),
    (SYSCALLS, Tool::Strace),
    (ALLOCATIONS, Tool::Allocator),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Check,
    Renew,
    BesidePeers,
}

#[derive(Serialize, Deserialize)]
struct Contract {
    /// The compiler and machine of the figures.
    measured_with: String,
    costs: Costs,
}

/// Per operation, by workload and figure.
type Costs = BTreeMap<String, BTreeMap<String, f64>>;

/// `folder` is where the chart goes, if peers are counted.
pub(crate) fn run(
    runner: &Runner,
    options: &Options,
    task: Task,
    folder: &Path,
) -> Result<(), Failure> {
    if task == Task::BesidePeers {
        return beside_peers(runner, options, folder);
    }
    let costs = count(runner, &[OURS])?.remove(OURS).unwrap_or_default();
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
        Task::Check | Task::BesidePeers => check(&costs),
    }
}

/// The costs of each of the runtimes.
fn count(
    runner: &Runner,
    runtimes: &[&'static str],
) -> Result<BTreeMap<&'static str, Costs>, Failure> {
    let mut pairs = Vec::new();
    for name in WORKLOADS {
        let workload = Workload::find(name).ok_or_else(|| format!("there is no {name}"))?;
        let on = runtimes.iter().filter(|name| workload.exists_on(name));
        pairs.extend(on.map(|runtime| (workload, *runtime)));
    }
    let progress = Progress::new(pairs.len() as f64);
    let costs = Mutex::new(Ok(BTreeMap::<_, Costs>::new()));
    count_at_once(&pairs, |(workload, runtime)| {
        progress.step(&format!("{} on {runtime}", workload.name), 1.0);
        let row = count_row(runner, workload, runtime);
        let mut costs = costs.lock().expect("no holder of the lock panics");
        match (costs.as_mut(), row) {
            (Ok(costs), Ok(row)) => {
                let of_runtime = costs.entry(*runtime).or_default();
                of_runtime.insert(workload.name.to_owned(), row);
            }
            // A peer that cannot be counted leaves a gap.
            (_, Err(failure)) if *runtime != OURS => eprintln!("\n{failure}"),
            (Ok(_), Err(failure)) => *costs = Err(failure),
            (Err(_), _) => {}
        }
    });
    progress.end();
    costs.into_inner().expect("no holder of the lock panics")
}

fn count_row(
    runner: &Runner,
    workload: &Workload,
    runtime: &str,
) -> Result<BTreeMap<String, f64>, Failure> {
    let mut row = BTreeMap::new();
    for (figure, tool) in COUNTED {
        if !is_counted(figure, workload, runtime) {
            continue;
        }
        let counts = count_one(runner, tool, workload, runtime, workload.counted)?;
        for (figure, value) in counts.figures {
            row.insert(figure.name.to_owned(), (value * 1000.0).round() / 1000.0);
        }
    }
    Ok(row)
}

fn read() -> Result<Contract, Failure> {
    let text = fs::read_to_string(Path::new(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Counts the contract's operations on every runtime in one run, prints them side by side, and draws
/// the chart of README.
fn beside_peers(runner: &Runner, options: &Options, folder: &Path) -> Result<(), Failure> {
    let agreed = read()?;
    let mut runtimes = options.runtimes();
    runtimes.retain(|runtime| absence(runtime).is_none() && *runtime != "node");
    let costs = count(runner, &runtimes)?;
    println!("counted with {}", compiler());
    print!("{}", side_by_side(&agreed.costs, &costs));
    let record = record_of(&costs);
    fs::create_dir_all(folder)?;
    record.write(&folder.join("report.json"))?;
    if chart::write(&folder.join("results"), &record)? {
        let folder = folder.join("results");
        println!(
            "\nthe chart of these counts: {}/cost-*.svg",
            folder.display()
        );
    }
    Ok(())
}

/// The counts as the results of a run, from which `--report` makes the other pages.
fn record_of(costs: &BTreeMap<&'static str, Costs>) -> Record {
    let mut record = Record {
        environment: Environment::look(),
        ..Record::default()
    };
    for (runtime, costs) in costs {
        for (workload, row) in costs {
            let cell = record.cell_mut(workload, runtime);
            for (figure, value) in row {
                cell.figures.insert(figure.clone(), vec![*value]);
            }
        }
    }
    record
}

/// Tables in Markdown, one a figure: what is agreed, and what each runtime costs now.
fn side_by_side(agreed: &Costs, now: &BTreeMap<&'static str, Costs>) -> String {
    let mut text = String::new();
    let runtimes: Vec<_> = RUNTIMES
        .into_iter()
        .filter(|runtime| now.contains_key(runtime))
        .collect();
    for (figure, _) in COUNTED {
        let _ = write!(
            text,
            "\n| {} | agreed | {} |\n|---|---|{}\n",
            figure.title,
            runtimes.join(" | "),
            "---|".repeat(runtimes.len())
        );
        for name in WORKLOADS {
            let show = |costs: Option<&Costs>| {
                let cost = costs.and_then(|costs| costs.get(name)?.get(figure.name));
                cost.map_or("–".to_owned(), |cost| figure.show(*cost))
            };
            let cells: Vec<_> = runtimes.iter().map(|name| show(now.get(name))).collect();
            let _ = writeln!(
                text,
                "| {name} | {} | {} |",
                show(Some(agreed)),
                cells.join(" | ")
            );
        }
    }
    text
}

fn check(costs: &Costs) -> Result<(), Failure> {
    let contract = read()?;
    let mut broken = 0;
    println!("{:24}{:>14}{:>12}{:>12}", "", "", "agreed", "now");
    for (workload, row) in costs {
        for (figure, _) in COUNTED {
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
    let environment = Environment::look();
    let rustc = environment.get("rustc").unwrap_or("an unknown compiler");
    format!("{rustc}, {}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_may_grow_by_the_allowance_and_no_more() {
        assert_eq!(verdict(INSTRUCTIONS, 100.0, 105.0), "");
        assert_eq!(verdict(INSTRUCTIONS, 100.0, 105.1), "TOO MUCH");
        assert_eq!(
            verdict(INSTRUCTIONS, 100.0, 90.0),
            "less: renew the contract"
        );
        // One call in fifty operations is nothing.
        assert_eq!(verdict(SYSCALLS, 0.0, 0.02), "");
        assert_eq!(verdict(SYSCALLS, 0.0, 0.03), "TOO MUCH");
    }

    #[test]
    fn peers_stand_beside_what_is_agreed() {
        let costs = |value| {
            let row = BTreeMap::from([("instructions".to_owned(), value)]);
            Costs::from([("spawn_join".to_owned(), row)])
        };
        let now = BTreeMap::from([(OURS, costs(780.0)), ("tokio", costs(1972.0))]);
        let text = side_by_side(&costs(772.0), &now);
        assert!(text.contains("| agreed | phaseloop | tokio |"), "{text}");
        assert!(
            text.contains("| spawn_join | 772 | 780 | 1,972 |"),
            "{text}"
        );
        assert!(text.contains("| yield | – | – | – |"), "{text}");
    }

    #[test]
    fn the_counts_beside_peers_are_drawn() {
        let row = |value| BTreeMap::from([("instructions".to_owned(), value)]);
        let costs = |value| Costs::from([("tcp_echo/1x64".to_owned(), row(value))]);
        let record = record_of(&BTreeMap::from([
            (OURS, costs(599.0)),
            ("libuv", costs(710.0)),
        ]));
        assert!(chart::is_drawn(&record));
        let summary = record.summary("tcp_echo/1x64", "libuv", INSTRUCTIONS);
        assert_eq!(summary.map(|summary| summary.median), Some(710.0));
    }

    #[test]
    fn the_contract_has_every_workload_it_counts() {
        let contract = read().expect("it is checked in");
        for name in WORKLOADS {
            assert!(Workload::find(name).is_some(), "{name}");
            assert!(contract.costs.contains_key(name), "{name}");
        }
    }
}
