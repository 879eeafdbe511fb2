//! The page: one file, no scripts, nothing loaded from elsewhere.

mod lines;
mod plot;
mod tables;

use std::fmt::Write;

use crate::catalogue::{OURS, Thing, Topic, WORKLOADS, Workload};
use crate::compare::caution::cautions;
use crate::compare::figure::{FIGURES, Figure, P99};
use crate::compare::growth;
use crate::compare::record::{Record, Summary};
use crate::compare::verdict::{self, TOPICS, Verdict};

const STYLE: &str = include_str!("report/style.css");

pub(crate) fn page(record: &Record, before: Option<&Record>, with_goals: bool) -> String {
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
        "<p>Less is better everywhere. A bar is the median of all rounds; the thin line across its end runs from the \
         best to the worst round, and what is counted has none. <b>Every ratio (×) is to the best peer of that row.</b> \
         How it is measured, and how to refute it: <code>benches/METHOD.md</code>.</p>",
    );
    for caution in cautions(record) {
        let _ = write!(html, r#"<p class="caution">{}</p>"#, escape(&caution));
    }
    let topics: Vec<_> = TOPICS
        .into_iter()
        .filter(|topic| !workloads_of(record, *topic).is_empty())
        .collect();
    html.push_str(r##"<nav><a href="#overview">Overview</a>"##);
    if with_goals {
        html.push_str(r##"<a href="#goals">Goals</a>"##);
    }
    for topic in &topics {
        let _ = write!(html, r##"<a href="#{topic:?}">{topic:?}</a>"##);
    }
    html.push_str(r##"<a href="#tables">Tables</a></nav>"##);
    html.push_str(&overview(record, &topics));
    html.push_str(&tables::scores(record));
    html.push_str(&tables::losses(record));
    html.push_str(&tables::environment(record));
    if with_goals {
        html.push_str(&tables::goals(record));
    }
    if let Some(before) = before {
        html.push_str(&tables::changes(before, record));
    }
    for topic in topics {
        html.push_str(&match topic {
            Topic::Growth => growth_section(record),
            topic => section(record, topic),
        });
    }
    html.push_str(&tables::figures(record));
    html.push_str(&tables::calls(record));
    html.push_str(&tables::failures(record));
    html.push_str("</html>\n");
    html
}

/// A picture a topic: phaseloop beside the best peer, a row a workload.
fn overview(record: &Record, topics: &[Topic]) -> String {
    let mut pictures = String::new();
    for topic in topics.iter().filter(|topic| **topic != Topic::Growth) {
        let rows: Vec<_> = workloads_of(record, *topic)
            .iter()
            .filter_map(|workload| ratio(record, workload))
            .collect();
        if !rows.is_empty() {
            let _ = write!(
                pictures,
                r##"<div class="card"><header><h3><a href="#{topic:?}">{}</a></h3></header>{}</div>"##,
                escape(topic.title()),
                plot::ratios(&rows)
            );
        }
    }
    if pictures.is_empty() {
        return String::new();
    }
    format!(
        r#"<h2 id="overview">Overview</h2><p>phaseloop's cost divided by the best peer's: to the left of the line phaseloop is cheaper, to the right dearer; grey is even.</p><div class="cards">{pictures}</div>"#
    )
}

/// Ours beside the best peer, by the figure that says most; `None` if there is no peer.
fn ratio(record: &Record, workload: &Workload) -> Option<plot::Ratio> {
    let figure = figures_of(record, workload).into_iter().next()?;
    let ours = record.summary(workload.name, OURS, figure)?;
    let (peer, best) = verdict::best_peer(record, workload.name, figure)?;
    let are_visible = figure.is_visible(best.median) && figure.is_visible(ours.median);
    are_visible.then(|| plot::Ratio {
        workload: workload.name,
        ratio: ours.median / best.median,
        peer,
        verdict: verdict::verdict(figure, ours, best),
    })
}

/// The figures by which a workload is judged.
fn figures_of(record: &Record, workload: &Workload) -> Vec<Figure> {
    match workload.topic() {
        Topic::Latency | Topic::Fairness => vec![P99],
        _ => drawn(record, workload),
    }
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

/// A card a thing, with a line a runtime.
fn growth_section(record: &Record) -> String {
    let all = growth::lines(record);
    let mut html = format!(
        r#"<h2 id="Growth">{}</h2><p>What one costs, by how many there are at once. A level line does not depend on the number.</p><div class="cards">"#,
        Topic::Growth.title()
    );
    for thing in Thing::ALL {
        let of_thing = |figure| {
            let lines = all.iter();
            let lines = lines.filter(move |line| line.thing == thing && line.figure == figure);
            lines.collect::<Vec<_>>()
        };
        let figures = growth::GROWING.map(|figure| (figure, of_thing(figure)));
        if figures.iter().all(|(_, lines)| lines.is_empty()) {
            continue;
        }
        let _ = write!(
            html,
            r#"<div class="card"><header><h3>{}</h3></header><p>{}</p>"#,
            thing.name(),
            escape(thing.about())
        );
        for (figure, lines) in figures {
            if !lines.is_empty() {
                let plot = lines::growth(figure, lines);
                html.push_str(&captioned(figure.title, &plot));
            }
        }
        html.push_str("</div>");
    }
    html.push_str("</div>");
    html
}

fn captioned(caption: &str, plot: &str) -> String {
    format!("<figure><figcaption>{caption}</figcaption>{plot}</figure>")
}

fn section(record: &Record, topic: Topic) -> String {
    let mut html = format!(
        r#"<h2 id="{topic:?}">{}</h2><div class="cards{}">"#,
        topic.title(),
        if topic == Topic::Latency { " wide" } else { "" }
    );
    for workload in workloads_of(record, topic) {
        html.push_str(&card(record, &workload));
    }
    html.push_str("</div>");
    html
}

fn card(record: &Record, workload: &Workload) -> String {
    let topic = workload.topic();
    let has_curve = matches!(topic, Topic::Latency | Topic::Fairness | Topic::Bursts);
    let has_bars = !matches!(topic, Topic::Latency | Topic::Fairness);
    let mut html = format!(
        r#"<div class="card"><header><h3>{}</h3>{}</header><p>{}</p>"#,
        workload.name,
        badge(record, workload),
        escape(&workload.about())
    );
    if has_bars {
        for figure in drawn(record, workload) {
            html.push_str(&captioned(
                figure.title,
                &plot::bars(figure, &bars(record, workload, figure)),
            ));
        }
    }
    if has_curve {
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
        html.push_str(&captioned(
            curve_caption(topic),
            &plot::curves(width, lines),
        ));
    }
    html.push_str("</div>");
    html
}

/// Whose latencies the curves of a topic show.
fn curve_caption(topic: Topic) -> &'static str {
    match topic {
        Topic::Latency => "latency by share of the messages, all rounds",
        Topic::Bursts => "how late a timer of 1 ms beside them was, by share of the bursts",
        _ => "how late it woke, by share of the naps, all rounds",
    }
}

/// A bar a runtime that has the figure.
fn bars(record: &Record, workload: &Workload, figure: Figure) -> Vec<(&'static str, Summary)> {
    let runtimes = record.runtimes_with(figure, &[*workload]).into_iter();
    let rows =
        runtimes.filter_map(|name| Some((name, record.summary(workload.name, name, figure)?)));
    rows.collect()
}

/// The two figures that say most about a workload; the tables have all.
fn drawn(record: &Record, workload: &Workload) -> Vec<Figure> {
    // What is nothing on all runtimes has no bars.
    let measured = |figure: &Figure| {
        let runtimes = record.runtimes_with(*figure, &[*workload]).into_iter();
        let mut values = runtimes.filter_map(|name| record.summary(workload.name, name, *figure));
        values.any(|summary| figure.is_visible(summary.median))
    };
    let chosen = [
        "instructions",
        "wall",
        "cpu",
        "resident",
        "size",
        "switches",
        "syscalls",
    ];
    let chosen = chosen
        .iter()
        .filter_map(|name| FIGURES.into_iter().find(|figure| figure.name == *name));
    chosen.filter(measured).take(2).collect()
}

/// Who is ahead by the figures that are drawn.
fn badge(record: &Record, workload: &Workload) -> String {
    let duels = verdict::duels(record);
    let figures = figures_of(record, workload);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::figure::{CPU, INSTRUCTIONS, SYSCALLS, WALL};
    use crate::latency::Latencies;
    use std::time::Duration;

    fn record() -> Record {
        let mut record = Record::default();
        for (runtime, cost) in [(OURS, 100.0), ("tokio", 250.0)] {
            for (workload, factor) in [("grow_task/1000", 1.0), ("grow_task/1000000", 1.1)] {
                let cell = record.cell_mut(workload, runtime);
                cell.push(INSTRUCTIONS, cost * factor);
                cell.push(CPU, cost);
            }
            let mut latencies = Latencies::new();
            (1..=1000).for_each(|i| latencies.record(Duration::from_micros(i)));
            let tail = record.cell_mut("tcp_rate/1000x20000", runtime);
            tail.push(P99, cost);
            tail.keep_curve(&latencies);
            record.cell_mut("burst/jobs", runtime).push(WALL, cost);
        }
        record
    }

    #[test]
    fn the_page_has_the_tail_as_curves_and_the_growth_as_lines() {
        let page = page(&record(), None, true);
        assert!(page.contains(r#"<h2 id="Latency">"#));
        assert!(page.contains("latency by share of the messages"));
        assert!(page.contains(r#"<h2 id="Growth">"#));
        assert!(page.contains("1M</text>"));
        // Two runtimes: two tail curves, two growth lines in each of two figures.
        assert_eq!(page.matches("<polyline").count(), 2 + 4);
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn the_page_opens_with_cautions_and_the_overview_and_has_goals_on_demand() {
        let mut record = record();
        record
            .cell_mut("spawn_join", OURS)
            .push(INSTRUCTIONS, 700.0);
        record
            .cell_mut("spawn_join", "tokio")
            .push(INSTRUCTIONS, 1400.0);
        let text = page(&record, None, false);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}"));
        assert!(at("single round") < at(r#"<h2 id="overview">"#));
        assert!(at(r#"<h2 id="overview">"#) < at(r#"<h2 id="Tasks">"#));
        assert!(at("Where and with what") > at(r#"<h2 id="overview">"#));
        assert!(text.contains("0.50× tokio"), "{text}");
        assert!(!text.contains(r#"id="goals""#));
        assert!(page(&record, None, true).contains(r#"id="goals""#));
    }

    #[test]
    fn less_than_one_in_a_hundred_is_a_dash_without_a_bar() {
        let mut record = Record::default();
        for (runtime, calls) in [(OURS, 0.004), ("tokio", 0.02)] {
            record.cell_mut("spawn_join", runtime).push(SYSCALLS, calls);
            record.cell_mut("yield", runtime).push(SYSCALLS, 0.001);
        }
        let text = page(&record, None, false);
        assert!(!text.contains(">0.00"), "{text}");
        assert_eq!(text.matches("<rect class=\"bar").count(), 1);
    }

    #[test]
    fn results_that_were_written_render_again_to_the_same_page() {
        let record = record();
        let text = serde_json::to_string(&record).expect("it can be written");
        let read: Record = serde_json::from_str(&text).expect("it was written so");
        assert_eq!(page(&read, None, true), page(&record, None, true));
    }

    #[test]
    fn results_of_an_older_suite_render_too() {
        let old = r#"{"environment": [["date", "2026-01-01"]], "cells": [
            {"workload": "spawn_join", "runtime": "phaseloop", "figures": {"instructions": [777.0]}},
            {"workload": "gone", "runtime": "nothing", "figures": {"cpu": [1.0, 2.0]}}]}"#;
        let record: Record = serde_json::from_str(old).expect("it has what is needed");
        let page = page(&record, None, false);
        assert!(page.contains("spawn_join") && page.contains("777"));
        assert!(!page.contains("Growth</h2>"));
        // There is no peer to be ahead of.
        assert!(!page.contains("behind in nothing"));
    }

    #[test]
    fn text_from_outside_is_escaped() {
        assert_eq!(escape("<a & b>"), "&lt;a &amp; b&gt;");
    }
}
