//! The bars of what an operation costs beside the peers, as pictures for a page that has no styles:
//! one for a light ground, one for a dark one.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::catalogue::{OURS, title};
use crate::compare::Failure;
use crate::compare::figure::INSTRUCTIONS;
use crate::compare::record::Record;

/// The panels: a workload and its words, which must fit above a panel.
const PANELS: [(&str, &str); 6] = [
    ("spawn_join", "spawn a task, wait for it"),
    ("ping_pong", "hand a value to another task"),
    ("timer_drop/1000", "arm and drop a timer, beside 1,000"),
    ("tcp_echo/50x64", "TCP echo, 50 connections"),
    ("tcp_echo/1x64", "TCP echo, one connection"),
    ("udp_echo/50", "UDP echo, 50 clients"),
];

/// The bars of a panel, from the top.
const RUNTIMES: [&str; 5] = [OURS, "tokio", "smol", "monoio", "libuv"];

const PANEL: f64 = 404.0;
const GAP: f64 = 32.0;
const LABELS: f64 = 166.0;
const VALUES: f64 = 48.0;
const HEAD: f64 = 34.0;
const ROW: f64 = 22.0;
const TITLE: f64 = 40.0;
const COLUMNS: usize = 2;

struct Theme {
    name: &'static str,
    ink: &'static str,
    soft: &'static str,
    ours: &'static str,
    others: &'static str,
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        ink: "#1c2024",
        soft: "#60646c",
        ours: "#d6373d",
        others: "#9aa4b5",
    },
    Theme {
        name: "dark",
        ink: "#edeef0",
        soft: "#a8adb5",
        ours: "#ff6369",
        others: "#626d7f",
    },
];

/// Writes the pictures `cost-light.svg` and `cost-dark.svg`. Returns whether there was anything to draw.
pub(crate) fn write(folder: &Path, record: &Record) -> Result<bool, Failure> {
    for theme in THEMES {
        let Some(svg) = svg(record, &theme) else {
            return Ok(false);
        };
        fs::create_dir_all(folder)?;
        fs::write(folder.join(format!("cost-{}.svg", theme.name)), svg)?;
    }
    Ok(true)
}

/// Whether there is anything to draw.
pub(crate) fn is_drawn(record: &Record) -> bool {
    svg(record, &THEMES[0]).is_some()
}

/// `None` if phaseloop was counted in none of the panels.
fn svg(record: &Record, theme: &Theme) -> Option<String> {
    let measured = |workload: &str| record.summary(workload, OURS, INSTRUCTIONS).is_some();
    let panels: Vec<_> = PANELS
        .into_iter()
        .filter(|(workload, _)| measured(workload))
        .collect();
    if panels.is_empty() {
        return None;
    }
    let panel_height = HEAD + ROW * RUNTIMES.len() as f64;
    let rows = panels.len().div_ceil(COLUMNS) as f64;
    let width = COLUMNS as f64 * PANEL + (COLUMNS - 1) as f64 * GAP;
    let height = TITLE + rows * (panel_height + GAP / 2.0);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="13"><title>User instructions per operation, phaseloop and its peers</title><text x="0" y="18" font-size="15" font-weight="600" fill="{ink}">User instructions per operation; shorter is better</text>"#,
        ink = theme.ink
    );
    for (i, (workload, words)) in panels.into_iter().enumerate() {
        let x = (i % COLUMNS) as f64 * (PANEL + GAP);
        let y = TITLE + (i / COLUMNS) as f64 * (panel_height + GAP / 2.0);
        let _ = write!(svg, r#"<g transform="translate({x} {y})">"#);
        panel(&mut svg, record, theme, workload, words);
        svg.push_str("</g>");
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn panel(svg: &mut String, record: &Record, theme: &Theme, workload: &str, words: &str) {
    let bars: Vec<_> = RUNTIMES
        .into_iter()
        .map(|runtime| (runtime, record.summary(workload, runtime, INSTRUCTIONS)))
        .collect();
    let values = bars.iter().filter_map(|(_, summary)| *summary);
    let most = values.map(|summary| summary.median).fold(1.0, f64::max);
    let room = PANEL - LABELS - VALUES;
    let _ = write!(
        svg,
        r#"<text x="0" y="16" font-weight="600" fill="{}">{words}</text>"#,
        theme.ink
    );
    for (i, (runtime, summary)) in bars.into_iter().enumerate() {
        let top = HEAD - 8.0 + ROW * i as f64;
        let is_ours = runtime == OURS;
        let (fill, weight) = match is_ours {
            true => (theme.ours, "600"),
            false => (theme.others, "400"),
        };
        let middle = top + ROW / 2.0 + 4.0;
        let _ = write!(
            svg,
            r#"<text x="{}" y="{middle}" text-anchor="end" font-weight="{weight}" fill="{}">{}</text>"#,
            LABELS - 8.0,
            if is_ours { theme.ink } else { theme.soft },
            title(runtime)
        );
        let (length, value) = match summary {
            Some(summary) => (
                (room * summary.median / most).max(1.0),
                INSTRUCTIONS.show(summary.median),
            ),
            // It has no such operation.
            None => (0.0, "–".to_owned()),
        };
        let _ = write!(
            svg,
            r#"<rect x="{LABELS}" y="{}" width="{length:.1}" height="{}" rx="2" fill="{fill}"/><text x="{:.1}" y="{middle}" font-weight="{weight}" fill="{}">{value}</text>"#,
            top + 4.0,
            ROW - 8.0,
            LABELS + length + 6.0,
            theme.ink
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_has_a_bar_for_each_count_and_a_dash_for_what_is_missing() {
        let mut record = Record::default();
        for (runtime, cost) in [(OURS, 300.0), ("tokio", 1_200.0)] {
            record
                .cell_mut("tcp_echo/50x64", runtime)
                .push(INSTRUCTIONS, cost);
        }
        let [light, dark] = THEMES.map(|theme| svg(&record, &theme).expect("it was counted"));
        assert!(light.contains("TCP echo, 50 connections") && light.contains(">1,200<"));
        assert!(light.contains("tokio, current_thread") && light.contains(">–<"));
        assert!(!light.contains("spawn a task"), "it was not counted");
        assert_ne!(light, dark);
        assert!(svg(&Record::default(), &THEMES[0]).is_none());
    }
}
