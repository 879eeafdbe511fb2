//! The results in Markdown: `RESULTS.md`, which is one page, and the long tables beside it.

use std::fmt::Write;

use crate::catalogue::{OURS, RUNTIMES, Workload, title};
use crate::compare::caution::cautions;
use crate::compare::chart;
use crate::compare::figure::{
    ALLOCATIONS, CPU, FIGURES, Figure, INSTRUCTIONS, KERNEL, MAX, P50, P99, RESIDENT, SYSCALLS,
    WALL,
};
use crate::compare::goals;
use crate::compare::growth;
use crate::compare::progress::duration;
use crate::compare::record::Record;
use crate::compare::table;
use crate::compare::verdict::{self, Loss};

/// The operations of the page. Each has a line with its instructions, one with its CPU time, and,
/// where the kernel takes part in it, one with the kernel's share.
const COSTS: [&str; 18] = [
    "spawn_join",
    "spawn_join/1000",
    "ping_pong",
    "immediates",
    "timer_drop/1000",
    "timer_replace/1000",
    "timer_fire/10000",
    "tcp_echo/1x64",
    "tcp_echo/50x64",
    "tcp_echo/500x64",
    "udp_echo/1",
    "udp_echo/50",
    "http/50",
    "http_wrk/50",
    "axum/50",
    "blocking/1000",
    "read_pages/1",
    "read_pages/64",
];

/// What of them README shows, and on which runtimes.
const README: [&str; 6] = [
    "spawn_join",
    "ping_pong",
    "timer_drop/1000",
    "tcp_echo/1x64",
    "tcp_echo/50x64",
    "udp_echo/50",
];
const README_RUNTIMES: [&str; 5] = [OURS, "tokio", "smol", "monoio", "libuv"];

/// The figures of an operation, one under the other.
const LINES: [(Figure, &str); 3] = [
    (INSTRUCTIONS, "instructions"),
    (CPU, "CPU time"),
    (KERNEL, "the kernel's share"),
];

/// What users wait for, and what they pay for when nothing happens.
const OTHERS: [(&str, Figure); 12] = [
    ("tcp_rate/1000x20000", P50),
    ("tcp_rate/1000x20000", P99),
    ("victim/short", P50),
    ("read_pages/1", WALL),
    ("read_pages/64", WALL),
    ("burst/sleeps", WALL),
    ("burst/jobs", WALL),
    ("cross_thread_wake", WALL),
    ("idle_task", RESIDENT),
    ("idle_sleeper", RESIDENT),
    ("idle_connection", RESIDENT),
    ("idle_http", RESIDENT),
];

/// So many losses are on the page; all are in a table of their own.
const LOSSES: usize = 10;

/// Whether `--results` measures the workload.
pub(crate) fn shows(workload: &str) -> bool {
    COSTS.contains(&workload) || OTHERS.iter().any(|(other, _)| *other == workload)
}

/// `RESULTS.md`.
pub(crate) fn page(record: &Record) -> String {
    let mut text = "# Results\n\nWhat one operation costs on phaseloop and on its peers, all of them in one run. \
                    Less is better. `METHOD.md` says how it\nis measured, how to refute it, and why phaseloop is \
                    behind where it is. The driver wrote this page and the tables\nunder `results/`.\n\n"
        .to_owned();
    for (name, value) in &record.environment.0 {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = writeln!(text, "- measured in {}", duration(record.seconds));
    for caution in cautions(record) {
        let _ = write!(text, "\n**{caution}**\n");
    }
    text.push_str(&costs(record));
    text.push_str(&note_on_async_task(record));
    text.push_str(NOTES);
    text.push_str(&others(record));
    text.push_str(&losses(
        verdict::losses(record),
        LOSSES,
        "\n## Where phaseloop is behind\n",
    ));
    if !record.failures.is_empty() {
        text.push_str("\n## What was not measured to its end\n\n");
        for failure in &record.failures {
            // The first line: what follows is what the process has printed.
            let _ = writeln!(text, "- {}", failure.lines().next().unwrap_or_default());
        }
    }
    text.push_str("\n## More\n\n");
    for (file, about) in FILES {
        let _ = writeln!(text, "- [`results/{file}`](results/{file}): {about}");
    }
    text
}

/// What a reader would ask about the table.
const NOTES: &str = "
- **tokio** has a column for each kind. Servers are written for `current_thread` with `tokio::spawn`. What a join costs \
tokio\n  depends on where it stands and which drivers the runtime has; `METHOD.md` has the range and its program.
- **The kernel's share** is what the kernel takes of the CPU time above it. What is left of a server on sockets is small, \
so\n  half the instructions are no half of the time.
- **HTTP asked by `wrk`** is the same server under a second client. Node compiles a request's way while it answers: the \
more\n  requests a run has, the less one costs. The two clients make different numbers of them.
- **libuv** is the version above, with callbacks that allocate nothing. Other versions and callbacks cost more or less; \
`METHOD.md`\n  has which.
";

/// What stands under `results/`.
const FILES: [(&str, &str); 10] = [
    ("instructions.md", "user instructions, all operations"),
    ("calls.md", "system calls, in all and by name"),
    ("allocations.md", "allocations"),
    ("times.md", "CPU time, time, latencies"),
    (
        "memory.md",
        "resident and allocated bytes, sizes of programs",
    ),
    (
        "growth.md",
        "the cost of one of a thousand and of one of a million",
    ),
    ("losses.md", "every figure in which a peer is ahead"),
    ("goals.md", "the goals, each beside the best peer"),
    ("build.md", "build times, by `.ci/build-time`"),
    (
        "island.md",
        "tokio inside the loop, by a program of its own",
    ),
];

/// The long tables, by file name; those of which nothing was measured are left out.
pub(crate) fn long_tables(record: &Record) -> Vec<(&'static str, String)> {
    let figures = |figures: &[Figure]| {
        let tables = figures.iter().map(|figure| figure_table(record, *figure));
        tables.collect::<String>()
    };
    let times: Vec<_> = FIGURES
        .into_iter()
        .filter(|figure| !figure.counted && *figure != RESIDENT)
        .collect();
    let live: Vec<_> = FIGURES
        .into_iter()
        .filter(|figure| ["live", "resident", "size"].contains(&figure.name))
        .collect();
    let tables = [
        ("instructions.md", figures(&[INSTRUCTIONS])),
        ("calls.md", figures(&[SYSCALLS]) + &calls(record)),
        ("allocations.md", figures(&[ALLOCATIONS])),
        ("times.md", figures(&times)),
        ("memory.md", figures(&live)),
        ("growth.md", growth::markdown(record)),
        ("losses.md", losses(verdict::losses(record), usize::MAX, "")),
        ("goals.md", goals::markdown(record)),
    ];
    let date = record.environment.get("date").unwrap_or("an unknown day");
    let command = record.environment.get("command").unwrap_or("");
    let mut files = Vec::new();
    for (file, table) in tables {
        if table.is_empty() {
            continue;
        }
        let about = FILES.iter().find(|(name, _)| *name == file);
        let about = about.map_or("", |(_, about)| about);
        let mut text = format!("# Results: {about}\n\nOf {date}, by `{command}`.\n");
        for caution in cautions(record) {
            let _ = write!(text, "\n**{caution}**\n");
        }
        files.push((file, text + &table));
    }
    files
}

/// What stands around the costs in README.
const COSTS_BEGIN: &str = "## Cost\n\n";
const COSTS_END: &str = "\n[Results](";
/// The chart that the driver writes beside the tables.
const CHART: &str = r#"<picture>
  <source media="(prefers-color-scheme: dark)" srcset="benches/results/cost-dark.svg">
  <img alt="Bars: user instructions of each operation on each runtime" src="benches/results/cost-light.svg"></picture>
"#;
const CHEAP: &str = "- **Cheap.** ";

/// The text of README with the costs of this run in place of its own. `None` if it has no place for
/// them.
pub(crate) fn into_readme(text: &str, record: &Record) -> Option<String> {
    let begin = text.find(COSTS_BEGIN)? + COSTS_BEGIN.len();
    let end = begin + text[begin..].find(COSTS_END)?;
    let date = record.environment.get("date").unwrap_or_default();
    let day = date.split(' ').next().unwrap_or_default();
    let command = record.environment.get("command").unwrap_or_default();
    let costs = format!(
        "User instructions and CPU time of one operation, all runtimes in one run of {day}:\n`{command}`.\n{}",
        readme(record)
    );
    let chart = match chart::is_drawn(record) {
        true => format!("{CHART}\n"),
        false => String::new(),
    };
    let costs = chart + &costs;
    let mut text = format!("{}{costs}{}", &text[..begin], &text[end..]);
    let echo = |runtime| {
        let summary = record.summary("tcp_echo/1x64", runtime, INSTRUCTIONS)?;
        Some(INSTRUCTIONS.show(summary.median))
    };
    if let (Some(at), Some(ours), Some(tokio), Some(libuv)) =
        (text.find(CHEAP), echo(OURS), echo("tokio"), echo("libuv"))
    {
        let line = at + CHEAP.len()..at + text[at..].find('\n')?;
        let words = format!(
            "A TCP echo takes {ours} user instructions; tokio's `current_thread` takes {tokio}, libuv {libuv}."
        );
        text.replace_range(line, &words);
    }
    Some(text)
}

/// The table of README.
pub(crate) fn readme(record: &Record) -> String {
    let runtimes = README_RUNTIMES.into_iter().filter(|runtime| {
        README
            .iter()
            .any(|name| record.summary(name, runtime, INSTRUCTIONS).is_some())
    });
    let runtimes: Vec<_> = runtimes.collect();
    let mut text = head("instructions, CPU time", &runtimes);
    for name in README {
        let Some(workload) = Workload::find(name) else {
            continue;
        };
        let cells = runtimes.iter().map(|runtime| {
            let figures = [INSTRUCTIONS, CPU];
            let values = figures.iter().filter_map(|figure| {
                let summary = record.summary(name, runtime, *figure)?;
                Some(figure.show(summary.median))
            });
            let values: Vec<_> = values.collect();
            match values.is_empty() {
                true => "–".to_owned(),
                false => values.join(", "),
            }
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", workload.about(), cells.join(" | "));
    }
    text
}

fn head(first: &str, runtimes: &[&'static str]) -> String {
    let titles: Vec<_> = runtimes.iter().map(|runtime| title(runtime)).collect();
    format!(
        "\n| {first} | {} |\n|---|{}\n",
        titles.join(" | "),
        "---|".repeat(runtimes.len())
    )
}

/// The runtimes that have any of these; not those that only vary ours.
fn columns(record: &Record, rows: &[(&str, Figure)]) -> Vec<&'static str> {
    let has = |runtime: &&str| {
        !["phaseloop-std", "phaseloop-budget"].contains(runtime)
            && rows
                .iter()
                .any(|(name, figure)| record.summary(name, runtime, *figure).is_some())
    };
    RUNTIMES.into_iter().filter(has).collect()
}

/// Instructions, CPU time and the kernel's share of each operation.
fn costs(record: &Record) -> String {
    let rows: Vec<_> = COSTS
        .into_iter()
        .flat_map(|name| LINES.map(|(figure, _)| (name, figure)))
        .collect();
    let runtimes = columns(record, &rows);
    if !runtimes.contains(&OURS) {
        return String::new();
    }
    let mut text = "\n## What one operation costs\n\nA time is the median of all rounds, in brackets the best and \
                    the worst round; the rounds of all runtimes alternate. × is\nphaseloop's number divided by the best \
                    peer's. Bare epoll is no runtime but the floor.\n"
        .to_owned();
    let titles: Vec<_> = runtimes[1..].iter().map(|runtime| title(runtime)).collect();
    let _ = write!(
        text,
        "\n| operation | | {} | × | {} |\n|---|---|---|---|{}\n",
        title(OURS),
        titles.join(" | "),
        "---|".repeat(titles.len())
    );
    for name in COSTS {
        let mut about = Workload::find(name).map(|workload| workload.about());
        for (figure, words) in LINES {
            let values = runtimes.iter().map(|runtime| {
                let summary = record.summary(name, runtime, figure);
                summary.map_or("–".to_owned(), |summary| figure.show_range(summary))
            });
            let values: Vec<_> = values.collect();
            if values.iter().all(|value| value == "–") {
                continue;
            }
            let _ = writeln!(
                text,
                "| {} | {words} | {} | {} | {} |",
                about.take().unwrap_or_default(),
                values[0],
                ratio(record, name, figure),
                values[1..].join(" | ")
            );
        }
    }
    text
}

/// Ours divided by the best peer's, and who that is.
fn ratio(record: &Record, workload: &str, figure: Figure) -> String {
    let ours = record.summary(workload, OURS, figure);
    let best = verdict::best_peer(record, workload, figure);
    match ours.zip(best) {
        Some((ours, (peer, best))) if figure.is_cost() && best.median > 0.0 => {
            format!("{:.2} {peer}", ours.median / best.median)
        }
        _ => String::new(),
    }
}

/// The price of a feature that another crate may turn on.
fn note_on_async_task(record: &Record) -> String {
    let differences = COSTS.into_iter().filter_map(|name| {
        let with = record.summary(name, "phaseloop-std", INSTRUCTIONS)?.median;
        let without = record.summary(name, OURS, INSTRUCTIONS)?.median;
        let about = Workload::find(name)?.about();
        Some(format!("{about}: {:+.0}", with - without))
    });
    let differences: Vec<_> = differences.collect();
    if differences.is_empty() {
        return String::new();
    }
    format!(
        "\nTasks run on `async-task` without its feature `std`. If another crate of the program enables `async-task/std`, as \
         smol\ndoes, the instructions of phaseloop change: {}.\n",
        differences.join("; ")
    )
}

fn others(record: &Record) -> String {
    let runtimes = columns(record, &OTHERS);
    if !runtimes.contains(&OURS) {
        return String::new();
    }
    let mut text = "\n## Latency, memory, size\n".to_owned() + &head("", &runtimes);
    for (name, figure) in OTHERS {
        text.push_str(&row(record, name, figure, &runtimes));
    }
    text
}

/// Nothing if it was measured on none.
fn row(record: &Record, name: &str, figure: Figure, runtimes: &[&'static str]) -> String {
    let values: Vec<_> = runtimes
        .iter()
        .map(|runtime| record.summary(name, runtime, figure))
        .collect();
    let Some(workload) = Workload::find(name).filter(|_| values.iter().any(Option::is_some)) else {
        return String::new();
    };
    let values = values
        .into_iter()
        .map(|summary| summary.map_or("–".to_owned(), |summary| figure.show_range(summary)));
    let values: Vec<_> = values.collect();
    let mut what = workload.about();
    match figure {
        P50 | P99 | MAX => what = format!("{what}: {}", figure.title),
        WALL if workload.name.starts_with("read_pages/") => what.push_str(": time"),
        WALL if workload.name.starts_with("burst/") => what.push_str(": until the last"),
        _ => {}
    }
    format!("| {what} | {} |\n", values.join(" | "))
}

/// All that have this figure.
fn figure_table(record: &Record, figure: Figure) -> String {
    let workloads = record.workloads_with(figure);
    if workloads.is_empty() {
        return String::new();
    }
    let runtimes = record.runtimes_with(figure, &workloads);
    let mut text = head(figure.title, &runtimes);
    for workload in workloads {
        text.push_str(&row(record, workload.name, figure, &runtimes));
    }
    text
}

fn calls(record: &Record) -> String {
    let mut text = "\n| system calls by name | | |\n|---|---|---|\n".to_owned();
    let without_rows = text.len();
    for workload in record.workloads_with(SYSCALLS) {
        for runtime in record.runtimes_with(SYSCALLS, &[workload]) {
            if let Some(cell) = record.cell(workload.name, runtime) {
                let _ = writeln!(
                    text,
                    "| {} | {} | {} |",
                    workload.name,
                    title(runtime),
                    table::calls(&cell.calls)
                );
            }
        }
    }
    if text.len() == without_rows {
        return String::new();
    }
    text
}

/// The first of the figures in which a peer is ahead, the worst first.
fn losses(losses: Vec<Loss>, most: usize, head: &str) -> String {
    if losses.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "{head}\n| operation | figure | phaseloop | × | who is ahead |\n|---|---|---|---|---|\n"
    );
    for loss in losses.into_iter().take(most) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {} |",
            loss.workload.about(),
            loss.figure.title,
            loss.figure.show(loss.ours),
            loss.worst_ratio,
            loss.ahead.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        for (runtime, cost) in [(OURS, 300.0), ("tokio", 900.0), ("libuv", 250.0)] {
            let cell = record.cell_mut("tcp_echo/50x64", runtime);
            cell.push(INSTRUCTIONS, cost);
            for time in [4_000.0, 4_200.0, 5_000.0] {
                cell.push(CPU, time);
            }
            cell.push(KERNEL, 0.9);
        }
        record
            .cell_mut("tcp_echo/50x64", "phaseloop-std")
            .push(INSTRUCTIONS, 340.0);
        record
    }

    #[test]
    fn the_costs_of_readme_are_replaced_and_nothing_else() {
        let text =
            "# A\n\n- **Cheap.** Old.\n\n## Cost\n\nOld:\n\n| x | 1 |\n\n[Results](a)\n\n| b |\n";
        let mut record = record();
        for (runtime, cost) in [(OURS, 600.0), ("tokio", 1_600.0), ("libuv", 700.0)] {
            let cell = record.cell_mut("tcp_echo/1x64", runtime);
            cell.push(INSTRUCTIONS, cost);
        }
        let new = into_readme(text, &record).expect("it has a place for them");
        assert!(!new.contains("Old") && !new.contains("| x | 1 |"), "{new}");
        assert!(
            new.starts_with("# A\n\n- **Cheap.** A TCP echo takes 600 user"),
            "{new}"
        );
        assert!(new.ends_with("|\n\n[Results](a)\n\n| b |\n"), "{new}");
        assert!(
            new.contains("| 300, 4.20 µs | 900, 4.20 µs | 250, 4.20 µs |"),
            "{new}"
        );
        assert_eq!(into_readme(&new, &record).as_ref(), Some(&new));
        assert!(into_readme("# A", &record).is_none());
        assert!(
            new.contains("srcset=\"benches/results/cost-dark.svg\""),
            "{new}"
        );
    }

    #[test]
    fn readme_has_the_places_that_the_driver_fills() {
        let readme = include_str!("../../../README.md");
        let new = into_readme(readme, &record()).expect("it has a place for the costs");
        assert!(
            new.contains("| 300, 4.20 µs |") && readme.contains(CHEAP),
            "{new}"
        );
        assert!(readme.contains(CHART), "the chart");
    }

    #[test]
    fn every_count_has_its_time_its_range_and_the_kernels_share_under_it() {
        let page = page(&record());
        let name = "TCP: 64 bytes there and back, 50 connections";
        let lines = [
            format!("| {name} | instructions | 300 | 1.20 libuv | 900 | 250 |"),
            "| | CPU time | 4.20 µs (4.00–5.00) | 1.00 tokio | 4.20 µs".to_owned(),
            "| | the kernel's share | 90 % | | 90 % | 90 % |".to_owned(),
        ];
        // Cells without text have two blanks.
        let page = page.replace("|  |", "| |");
        for line in lines {
            assert!(page.contains(&line), "{line}\n{page}");
        }
        assert!(page.contains("tokio, current_thread"), "{page}");
        assert!(page.contains(&format!("{name}: +40.")), "{page}");
        assert!(page.contains("results/losses.md"), "{page}");
    }

    #[test]
    fn readme_has_instructions_and_time_in_each_cell() {
        let table = readme(&record());
        assert!(table.contains("| 300, 4.20 µs | 900, 4.20 µs |"), "{table}");
        assert!(!table.contains("smol"), "{table}");
    }

    #[test]
    fn long_tables_are_written_for_what_was_measured() {
        let files: Vec<_> = long_tables(&record())
            .into_iter()
            .map(|(file, _)| file)
            .collect();
        assert_eq!(
            files,
            ["instructions.md", "times.md", "losses.md", "goals.md"]
        );
    }

    #[test]
    fn the_operations_of_the_page_exist() {
        let others = OTHERS.map(|(name, _)| name);
        for name in COSTS.iter().chain(&README).chain(&others) {
            assert!(Workload::find(name).is_some(), "{name}");
        }
        assert!(README.iter().all(|name| COSTS.contains(name)));
    }
}
