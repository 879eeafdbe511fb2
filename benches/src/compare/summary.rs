//! The results in short, as Markdown: the tables of `RESULTS.md`. First what is lost.

use std::fmt::Write;

use crate::catalogue::{OURS, RUNTIMES, Topic, Workload};
use crate::compare::figure::{
    CPU, Figure, INSTRUCTIONS, MAX, P50, P99, P999, RESIDENT, SIZE, SYSCALLS, WALL,
};
use crate::compare::goals;
use crate::compare::growth;
use crate::compare::progress::duration;
use crate::compare::record::Record;
use crate::compare::verdict;

const ABOUT: &str = "\
What one operation costs on phaseloop and on its peers, in the same runs. `METHOD.md` says how it is measured, how to
refute it, and why phaseloop is behind where it is. Counts hardly change between runs; times do, and are medians.";

/// One table: its title, the workloads of its rows, the figure.
type Table = (&'static str, &'static [(&'static str, Figure)]);

#[rustfmt::skip]
const TABLES: [Table; 4] = [
    ("user instructions", &[
        ("spawn_join", INSTRUCTIONS),
        ("spawn_join/1000", INSTRUCTIONS),
        ("self_wake/1", INSTRUCTIONS),
        ("ping_pong", INSTRUCTIONS),
        ("immediates", INSTRUCTIONS),
        ("timer_drop/1000", INSTRUCTIONS),
        ("timer_replace/1000", INSTRUCTIONS),
        ("timer_drop_all/1000", INSTRUCTIONS),
        ("timer_fire/10000", INSTRUCTIONS),
        ("timer_fire/100000", INSTRUCTIONS),
        ("tcp_echo/1x64", INSTRUCTIONS),
        ("tcp_echo/50x64", INSTRUCTIONS),
        ("tcp_echo/50x16384", INSTRUCTIONS),
        ("tcp_exact/50x16384", INSTRUCTIONS),
        ("udp_echo/1", INSTRUCTIONS),
        ("udp_echo/50", INSTRUCTIONS),
        ("udp_batched/50", INSTRUCTIONS),
        ("http/50", INSTRUCTIONS),
        ("axum/50", INSTRUCTIONS),
        ("blocking/1", INSTRUCTIONS),
        ("blocking/1000", INSTRUCTIONS),
    ]),
    ("system calls", &[
        ("tcp_echo/1x64", SYSCALLS),
        ("tcp_echo/50x64", SYSCALLS),
        ("tcp_exact/50x16384", SYSCALLS),
        ("udp_echo/1", SYSCALLS),
        ("udp_echo/50", SYSCALLS),
        ("blocking/1", SYSCALLS),
        ("blocking/1000", SYSCALLS),
        ("cross_thread_wake", SYSCALLS),
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
        ("axum/50", CPU),
        ("axum/50", WALL),
        ("tcp_rate/1000x20000", P50),
        ("tcp_rate/1000x20000", P99),
        ("tcp_rate/1000x20000", P999),
        ("tcp_rate/1000x20000", MAX),
        ("burst/sleeps", WALL),
        ("burst/sleeps", P50),
        ("burst/sleeps", MAX),
        ("burst/immediates", WALL),
        ("burst/immediates", P50),
        ("burst/immediates", MAX),
        ("burst/jobs", WALL),
        ("burst/jobs", P50),
        ("burst/jobs", MAX),
        ("blocking/1", WALL),
        ("blocking/1000", WALL),
        ("read_files/64", WALL),
        ("read_through", WALL),
        ("read_through/1M", WALL),
        ("cold_start", WALL),
        ("victim/hog", P99),
        ("victim/wake_storm", P99),
        ("victim/completion_storm", P99),
        ("victim/accept_flood", P99),
    ]),
    ("bytes", &[
        ("idle_task", RESIDENT),
        ("idle_timer", RESIDENT),
        ("idle_sleeper", RESIDENT),
        ("idle_connection", RESIDENT),
        ("binary_size", SIZE),
    ]),
];

pub(crate) fn markdown(record: &Record) -> String {
    let mut text = format!("# Results\n\n{ABOUT}\n\n");
    for (name, value) in &record.environment.0 {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = writeln!(text, "- measured in {}", duration(record.seconds));
    text.push_str(&losses(record));
    text.push_str(&goals::markdown(record));
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
    text.push_str(&growth::markdown(record));
    text
}

/// Every figure in which a peer is ahead, the worst first.
fn losses(record: &Record) -> String {
    let losses = verdict::losses(record);
    if losses.is_empty() {
        return String::new();
    }
    let mut text = "\n| phaseloop is behind in | figure | phaseloop | × | who is ahead |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for loss in losses {
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

/// Nothing if it was not measured on ours.
fn row(record: &Record, name: &str, figure: Figure, runtimes: &[&str]) -> String {
    let workload = Workload::find(name).filter(|_| record.summary(name, OURS, figure).is_some());
    let Some(workload) = workload else {
        return String::new();
    };
    let mut what = workload.about();
    match (workload.topic(), figure) {
        (Topic::Bursts, WALL) => what.push_str(": until the last"),
        (Topic::Bursts, figure) => {
            let _ = write!(what, ": a timer of 1 ms beside them, {}", figure.title);
        }
        (_, P50 | P99 | P999 | MAX) => {
            let _ = write!(what, ": {}", figure.title);
        }
        _ => {}
    }
    let values = runtimes.iter().map(|runtime| {
        let summary = record.summary(name, runtime, figure);
        summary.map_or("–".to_owned(), |summary| figure.show(summary.median))
    });
    let values: Vec<_> = values.collect();
    format!("| {what} | {} |\n", values.join(" | "))
}
