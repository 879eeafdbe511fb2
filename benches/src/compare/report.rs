//! The page: one file, no scripts, nothing loaded from elsewhere.

mod plot;
mod tables;

use std::fmt::Write;

use crate::figure::{FIGURES, Figure};
use crate::record::Record;
use crate::verdict::{self, TOPICS, Verdict};
use phaseloop_benches::catalogue::{Topic, WORKLOADS, Workload};

const STYLE: &str = include_str!("report/style.css");

pub(crate) fn page(record: &Record, before: Option<&Record>) -> String {
    let facts = ["date", "processor", "kernel", "rustc"];
    let facts: Vec<_> = facts
        .iter()
        .filter_map(|name| record.environment.get(name))
        .collect();
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>phaseloop beside its peers</title><style>{STYLE}</style>\n\
         <h1>phaseloop beside its peers</h1><p class=\"soft\">{}</p>",
        escape(&facts.join(" · "))
    );
    html.push_str(
        "<p>Less is better everywhere. Each bar is the median of all rounds, the thin line across it runs from the \
         best to the worst round; what is counted has none. The number behind a value says how many times phaseloop's \
         it is. How it is measured, and how to refute it: <code>benches/METHOD.md</code>.</p>",
    );
    let topics: Vec<_> = TOPICS
        .into_iter()
        .filter(|topic| !workloads_of(record, *topic).is_empty())
        .collect();
    html.push_str(r##"<nav><a href="#goals">Goals</a>"##);
    for topic in &topics {
        let _ = write!(html, r##"<a href="#{topic:?}">{topic:?}</a>"##);
    }
    html.push_str("</nav>");
    html.push_str(&tables::environment(record));
    html.push_str(&tables::goals(record));
    html.push_str(&tables::scores(record));
    html.push_str(&tables::losses(record));
    if let Some(before) = before {
        html.push_str(&tables::changes(before, record));
    }
    for topic in topics {
        html.push_str(&section(record, topic));
    }
    html.push_str(&tables::figures(record));
    html.push_str(&tables::calls(record));
    html.push_str(&tables::failures(record));
    html.push_str("</html>\n");
    html
}

fn workloads_of(record: &Record, topic: Topic) -> Vec<Workload> {
    let measured = |workload: &Workload| {
        record
            .cells
            .iter()
            .any(|cell| cell.workload == workload.name && !cell.figures.is_empty())
    };
    WORKLOADS
        .into_iter()
        .filter(|workload| workload.topic() == topic && measured(workload))
        .collect()
}

fn section(record: &Record, topic: Topic) -> String {
    let with_curves = matches!(topic, Topic::Latency | Topic::Fairness);
    let mut html = format!(
        r#"<h2 id="{topic:?}">{}</h2><div class="cards{}">"#,
        topic.title(),
        if topic == Topic::Latency { " wide" } else { "" }
    );
    for workload in workloads_of(record, topic) {
        html.push_str(&card(record, &workload, with_curves));
    }
    html.push_str("</div>");
    html
}

fn card(record: &Record, workload: &Workload, with_curve: bool) -> String {
    let mut html = format!(
        r#"<div class="card"><header><h3>{}</h3>{}</header><p>{}</p>"#,
        workload.name,
        badge(record, workload),
        escape(&workload.about())
    );
    if with_curve {
        let lines: Vec<_> = record
            .cells
            .iter()
            .filter(|cell| cell.workload == workload.name && !cell.curve.is_empty())
            .map(|cell| (cell.runtime.as_str(), cell.curve.as_slice()))
            .collect();
        let width = if workload.topic() == Topic::Latency {
            960.0
        } else {
            460.0
        };
        let _ = write!(html, "<figure>{}</figure>", plot::curves(width, lines));
    } else {
        for figure in drawn(record, workload) {
            let runtimes = record.runtimes_with(figure, &[*workload]);
            let rows: Vec<_> = runtimes
                .into_iter()
                .filter_map(|runtime| {
                    Some((runtime, record.summary(workload.name, runtime, figure)?))
                })
                .collect();
            let _ = write!(
                html,
                "<figure><figcaption>{}</figcaption>{}</figure>",
                figure.title,
                plot::bars(figure, &rows)
            );
        }
    }
    html.push_str("</div>");
    html
}

/// The two figures that say most about a workload; the tables have all.
fn drawn(record: &Record, workload: &Workload) -> Vec<Figure> {
    let measured = |figure: &Figure| !record.runtimes_with(*figure, &[*workload]).is_empty();
    let telling = [
        "instructions",
        "wall",
        "cpu",
        "resident",
        "size",
        "switches",
        "syscalls",
    ];
    let telling = telling
        .iter()
        .filter_map(|name| FIGURES.into_iter().find(|figure| figure.name == *name));
    telling.filter(measured).take(2).collect()
}

/// Who is ahead by the figures that are drawn.
fn badge(record: &Record, workload: &Workload) -> String {
    let duels = verdict::duels(record);
    let figures = match workload.topic() {
        Topic::Latency | Topic::Fairness => vec![crate::figure::P99],
        _ => drawn(record, workload),
    };
    let mine: Vec<_> = duels
        .iter()
        .filter(|duel| duel.workload.name == workload.name && figures.contains(&duel.figure))
        .collect();
    let mut behind: Vec<_> = mine
        .iter()
        .filter(|duel| duel.verdict == Verdict::Behind)
        .map(|duel| duel.peer)
        .collect();
    behind.sort_unstable();
    behind.dedup();
    if !behind.is_empty() {
        return format!(
            r#"<span class="badge bad">behind {}</span>"#,
            behind.join(", ")
        );
    }
    if mine.iter().any(|duel| duel.verdict == Verdict::Ahead) {
        return r#"<span class="badge good">none ahead</span>"#.to_owned();
    }
    if mine.is_empty() {
        return String::new();
    }
    r#"<span class="badge even">even</span>"#.to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
