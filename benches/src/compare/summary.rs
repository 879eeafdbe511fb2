//! The results in short, as Markdown: the tables of `RESULTS.md`.

use std::fmt::Write;

use crate::figure::{CPU, Figure, INSTRUCTIONS, P50, P99, P999, RESIDENT, SIZE, WALL};
use crate::progress::duration;
use crate::record::Record;
use phaseloop_benches::catalogue::{OURS, RUNTIMES, Workload};

/// One table: its title, the workloads of its rows, the figure.
type Table = (&'static str, &'static [(&'static str, Figure)]);

#[rustfmt::skip]
const TABLES: [Table; 3] = [
    ("user instructions", &[
        ("spawn_join", INSTRUCTIONS),
        ("self_wake/1", INSTRUCTIONS),
        ("ping_pong", INSTRUCTIONS),
        ("immediates", INSTRUCTIONS),
        ("timer_drop/1000", INSTRUCTIONS),
        ("timer_fire/100000", INSTRUCTIONS),
        ("tcp_echo/1x64", INSTRUCTIONS),
        ("tcp_echo/50x64", INSTRUCTIONS),
        ("tcp_echo/50x16384", INSTRUCTIONS),
        ("udp_echo/50", INSTRUCTIONS),
        ("udp_batched/50", INSTRUCTIONS),
        ("http/50", INSTRUCTIONS),
    ]),
    ("time", &[
        ("spawn_join", CPU),
        ("immediates/1000", WALL),
        ("next_tick/1000", WALL),
        ("microtasks/1000", WALL),
        ("set_timeout", WALL),
        ("timer_fire/100000", CPU),
        ("cross_thread_wake", WALL),
        ("tcp_echo/50x64", CPU),
        ("tcp_echo/1000x64", CPU),
        ("http/50", CPU),
        ("tcp_rate/1000x20000", P50),
        ("tcp_rate/1000x20000", P99),
        ("tcp_rate/1000x20000", P999),
        ("blocking/1", WALL),
        ("blocking/1000", WALL),
        ("read_files/64", WALL),
        ("read_through", WALL),
        ("cold_start", WALL),
        ("victim/hog", P99),
        ("victim/wake_storm", P99),
        ("victim/completion_storm", P99),
        ("victim/accept_flood", P99),
    ]),
    ("bytes", &[
        ("idle_task", RESIDENT),
        ("idle_timer", RESIDENT),
        ("idle_connection", RESIDENT),
        ("binary_size", SIZE),
    ]),
];

pub(crate) fn markdown(record: &Record) -> String {
    let facts = record.environment.0.iter();
    let facts: Vec<_> = facts
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let mut text = format!("{}; {}\n", facts.join("; "), duration(record.seconds));
    for (title, rows) in TABLES {
        let measured = |runtime: &&str| {
            rows.iter()
                .any(|(workload, figure)| record.summary(workload, runtime, *figure).is_some())
        };
        let runtimes: Vec<_> = RUNTIMES.into_iter().filter(measured).collect();
        if !runtimes.contains(&OURS) {
            continue;
        }
        let _ = write!(text, "\n| {title} | {} |\n|---|", runtimes.join(" | "));
        text.push_str(&"---|".repeat(runtimes.len()));
        text.push('\n');
        for (workload, figure) in rows {
            text.push_str(&row(record, workload, *figure, &runtimes));
        }
    }
    text
}

/// Nothing if it was not measured on ours.
fn row(record: &Record, name: &str, figure: Figure, runtimes: &[&str]) -> String {
    let workload = Workload::find(name).filter(|_| record.summary(name, OURS, figure).is_some());
    let Some(workload) = workload else {
        return String::new();
    };
    let mut what = workload.about();
    if [P50, P99, P999].contains(&figure) {
        let _ = write!(what, ": {}", figure.title);
    }
    let values = runtimes.iter().map(|runtime| {
        let summary = record.summary(name, runtime, figure);
        summary.map_or("–".to_owned(), |summary| figure.show(summary.median))
    });
    let values: Vec<_> = values.collect();
    format!("| {what} | {} |\n", values.join(" | "))
}
