//! The tables of the page.

use std::fmt::Write;

use super::escape;
use crate::catalogue::{OURS, RUNTIMES};
use crate::compare::against;
use crate::compare::figure::{FIGURES, SYSCALLS};
use crate::compare::goals;
use crate::compare::record::Record;
use crate::compare::table;
use crate::compare::verdict::{self, TOPICS, Verdict, is_peer};

pub(super) fn environment(record: &Record) -> String {
    let mut html = "<details><summary>Where and with what</summary><table>".to_owned();
    for (name, value) in &record.environment.0 {
        let _ = write!(
            html,
            r#"<tr><th>{}</th><td class="text">{}</td></tr>"#,
            escape(name),
            escape(value)
        );
    }
    html.push_str("</table></details>");
    html
}

/// What became of each goal.
pub(super) fn goals(record: &Record) -> String {
    let outcomes = goals::outcomes(record);
    if outcomes.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<h2 id=\"goals\">Goals</h2><details open><summary>{}</summary><div class=\"scroll\"><table>\
         <tr><th>workload</th><th class=\"left\">figure</th><th>now</th><th>best peer</th><th>goal</th><th></th>\
         <th class=\"text\">the others</th></tr>",
        goals::score(&outcomes)
    );
    for outcome in outcomes {
        let class = match outcome.met {
            Some(true) => "good",
            Some(false) => "bad",
            None => "soft",
        };
        let _ = write!(
            html,
            r#"<tr><td title="{}">{}</td><td class="left">{}</td><td class="ours">{}</td><td>{}</td><td>{}</td><td class="{class}">{}</td><td class="text">{}</td></tr>"#,
            escape(&outcome.about),
            outcome.workload,
            outcome.what,
            outcome.ours,
            outcome.best_peer.as_deref().unwrap_or("–"),
            outcome.wanted,
            goals::word(outcome.met).to_lowercase(),
            outcome.others.join(" · ")
        );
    }
    html.push_str("</table></div></details>");
    html
}

/// Won, even and lost, by peer and topic.
pub(super) fn scores(record: &Record) -> String {
    let duels = verdict::duels(record);
    if duels.is_empty() {
        return String::new();
    }
    let topics: Vec<_> = TOPICS
        .into_iter()
        .filter(|topic| duels.iter().any(|duel| duel.workload.topic() == *topic))
        .collect();
    let mut html = "<p>How many figures phaseloop is ahead in, even (within 5 %, or within the spread), and behind, peer by \
                    peer.</p><div class=\"scroll\"><table><tr><th></th>"
        .to_owned();
    for topic in &topics {
        let _ = write!(html, "<th>{topic:?}</th>");
    }
    html.push_str("<th>all</th></tr>");
    for peer in RUNTIMES.into_iter().filter(|runtime| is_peer(runtime)) {
        let against: Vec<_> = duels.iter().filter(|duel| duel.peer == peer).collect();
        if against.is_empty() {
            continue;
        }
        let _ = write!(html, "<tr><th>{peer}</th>");
        for topic in &topics {
            let of_topic = against.iter().copied();
            let of_topic = of_topic.filter(|duel| duel.workload.topic() == *topic);
            html.push_str(&score_cell(verdict::score(of_topic)));
        }
        html.push_str(&score_cell(verdict::score(against.iter().copied())));
        html.push_str("</tr>");
    }
    html.push_str("</table></div>");
    html
}

fn score_cell([ahead, even, behind]: [usize; 3]) -> String {
    if ahead + even + behind == 0 {
        return "<td>–</td>".to_owned();
    }
    let class = if behind > 0 { "bad" } else { "soft" };
    format!(
        r#"<td><span class="good">{ahead}</span> · {even} · <span class="{class}">{behind}</span></td>"#
    )
}

/// Every figure in which a peer is ahead, with all who are.
pub(super) fn losses(record: &Record) -> String {
    let losses = verdict::losses(record);
    if losses.is_empty() && verdict::duels(record).is_empty() {
        return String::new();
    }
    if losses.is_empty() {
        return "<p>phaseloop is behind in nothing.</p>".to_owned();
    }
    let mut html = format!(
        "<details open><summary>Where phaseloop is behind ({} of all figures)</summary><div class=\"scroll\"><table>\
         <tr><th>workload</th><th class=\"text\">figure</th><th>phaseloop</th><th>at most</th>\
         <th class=\"text\">ahead</th></tr>",
        losses.len()
    );
    for loss in losses {
        let _ = write!(
            html,
            r#"<tr><td>{}</td><td class="text">{}</td><td class="ours">{}</td><td class="bad">{:.2}×</td><td class="text">{}</td></tr>"#,
            loss.workload.name,
            loss.figure.title,
            loss.figure.show(loss.ours),
            loss.worst_ratio,
            loss.ahead.join(", "),
        );
    }
    html.push_str("</table></div></details>");
    html
}

pub(super) fn changes(before: &Record, now: &Record) -> String {
    let changes = against::changes(before, now);
    let date = before.environment.get("date").unwrap_or("an earlier run");
    let mut html = format!("<h2>Since {}</h2>", escape(date));
    if changes.is_empty() {
        html.push_str("<p>Nothing changed.</p>");
        return html;
    }
    html.push_str("<table><tr><th>workload</th><th class=\"text\">figure</th><th>before</th><th>now</th><th></th></tr>");
    for change in changes {
        let class = if change.is_worse() { "bad" } else { "good" };
        let _ = write!(
            html,
            r#"<tr><td>{}</td><td class="text">{}</td><td>{}</td><td>{}</td><td class="{class}">{}</td></tr>"#,
            change.workload,
            change.figure.title,
            change.figure.show(change.before),
            change.figure.show(change.now),
            change.percent()
        );
    }
    html.push_str("</table>");
    html
}

/// All figures, a table each; ratios are against ours.
pub(super) fn figures(record: &Record) -> String {
    let mut html = "<h2 id=\"tables\">All figures</h2>".to_owned();
    for figure in FIGURES {
        let workloads = record.workloads_with(figure);
        if workloads.is_empty() {
            continue;
        }
        let runtimes = record.runtimes_with(figure, &workloads);
        let _ = write!(
            html,
            "<details><summary>{}</summary><div class=\"scroll\"><table><tr><th></th>",
            figure.title
        );
        for runtime in &runtimes {
            let _ = write!(html, "<th>{runtime}</th>");
        }
        html.push_str("</tr>");
        for workload in workloads {
            let _ = write!(html, "<tr><td>{}</td>", workload.name);
            let ours = record.summary(workload.name, OURS, figure);
            for runtime in &runtimes {
                let theirs = record.summary(workload.name, runtime, figure);
                let Some(theirs) = theirs else {
                    html.push_str("<td>–</td>");
                    continue;
                };
                let class = match ours {
                    _ if *runtime == OURS => "ours",
                    Some(ours) if is_peer(runtime) => {
                        match verdict::verdict(figure, ours, theirs) {
                            Verdict::Ahead => "good",
                            Verdict::Even => "",
                            Verdict::Behind => "bad",
                        }
                    }
                    _ => "",
                };
                let mut text = figure.show(theirs.median);
                if !figure.counted {
                    let _ = write!(text, " ±{:.0}%", 100.0 * theirs.spread());
                }
                let _ = write!(html, r#"<td class="{class}">{text}</td>"#);
            }
            html.push_str("</tr>");
        }
        html.push_str("</table></div></details>");
    }
    html.push_str(
        "<p class=\"soft\">Green: phaseloop is ahead of this number. Red: it is behind.</p>",
    );
    html
}

pub(super) fn calls(record: &Record) -> String {
    let workloads = record.workloads_with(SYSCALLS);
    if workloads.is_empty() {
        return String::new();
    }
    let mut html =
        "<details><summary>system calls per operation, by name</summary><table>".to_owned();
    for workload in workloads {
        for runtime in record.runtimes_with(SYSCALLS, &[workload]) {
            if let Some(cell) = record.cell(workload.name, runtime) {
                let _ = write!(
                    html,
                    r#"<tr><td>{}</td><td class="text">{runtime}</td><td class="text">{}</td></tr>"#,
                    workload.name,
                    table::calls(&cell.calls)
                );
            }
        }
    }
    html.push_str("</table></details>");
    html
}

pub(super) fn failures(record: &Record) -> String {
    let mut html = String::new();
    if !record.failures.is_empty() {
        html.push_str("<h2>Not measured</h2>");
    }
    for failure in &record.failures {
        let _ = write!(html, "<pre class=\"bad\">{}</pre>", escape(failure));
    }
    html
}
