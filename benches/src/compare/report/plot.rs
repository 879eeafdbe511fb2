//! Plots as SVG text: bars with spread, and latency curves.

use std::fmt::Write;

use super::escape;
use crate::catalogue::RUNTIMES;
use crate::compare::figure::Figure;
use crate::compare::record::Summary;
use crate::compare::verdict::{Verdict, is_peer};

const WIDTH: f64 = 460.0;
const ROW: f64 = 22.0;
const LABELS: f64 = 112.0;
const VALUES: f64 = 118.0;

/// One bar a runtime, from zero; the line across its end goes from the least to the most of all
/// rounds.
pub(super) fn bars(figure: Figure, rows: &[(&str, Summary)]) -> String {
    let most = rows
        .iter()
        .map(|(_, summary)| summary.median)
        .fold(0.0, f64::max);
    // One bar that is far longer than the others would hide them: it is cut, and says so.
    let second = rows
        .iter()
        .map(|(_, summary)| summary.median)
        .filter(|value| *value < most)
        .fold(0.0, f64::max);
    let scale = if second > 0.0 && most > 6.0 * second {
        second * 1.5
    } else {
        most * 1.05
    };
    let room = WIDTH - LABELS - VALUES;
    let x = |value: f64| LABELS + room * (value / scale.max(f64::MIN_POSITIVE)).min(1.0);
    let best = rows
        .iter()
        .filter(|(runtime, summary)| is_peer(runtime) && figure.is_visible(summary.median))
        .map(|(_, summary)| summary.median)
        .min_by(f64::total_cmp);
    let height = ROW * rows.len() as f64;
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img">"#);
    for (i, (runtime, summary)) in rows.iter().enumerate() {
        let top = ROW * i as f64;
        let middle = top + ROW / 2.0;
        let class = class_of(runtime);
        let _ = write!(
            svg,
            r#"<text class="label {class}" x="{}" y="{middle}">{runtime}</text>"#,
            LABELS - 8.0,
        );
        if figure.is_visible(summary.median) {
            let _ = write!(
                svg,
                r#"<rect class="bar {class}" x="{LABELS}" y="{}" width="{:.1}" height="{}"/>"#,
                top + 4.0,
                (x(summary.median) - LABELS).max(1.0),
                ROW - 8.0,
            );
        }
        if summary.median > scale {
            let _ = write!(
                svg,
                r#"<path class="cut" d="M{0:.1} {1}l-4 {2}m8 -{2}l-4 {2}"/>"#,
                LABELS + room - 14.0,
                top + 3.0,
                ROW - 6.0
            );
        } else if summary.most > summary.least {
            let (least, most) = (x(summary.least), x(summary.most));
            let _ = write!(
                svg,
                r#"<path class="spread" d="M{least:.1} {middle}H{most:.1}M{least:.1} {0}v6M{most:.1} {0}v6"/>"#,
                middle - 3.0
            );
        }
        let mut value = figure.show(summary.median);
        if let Some(best) = best.filter(|_| figure.is_visible(summary.median)) {
            let ratio = summary.median / best;
            let digits = if ratio < 100.0 { 2 } else { 0 };
            let _ = write!(value, "  {ratio:.digits$}×");
        }
        let _ = write!(
            svg,
            r#"<text class="value" x="{}" y="{middle}">{}</text>"#,
            LABELS + room + 8.0,
            escape(&value)
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Ours beside the best peer.
pub(super) struct Ratio {
    pub(super) workload: &'static str,
    pub(super) ratio: f64,
    pub(super) peer: &'static str,
    pub(super) verdict: Verdict,
}

/// The ratios of an overview go from a tenth to ten times; the axis is logarithmic.
const WIDEST: f64 = 10.0;

/// A bar a workload, from the line at which both cost the same.
pub(super) fn ratios(rows: &[Ratio]) -> String {
    const LABELS: f64 = 178.0;
    const VALUES: f64 = 132.0;
    let room = WIDTH - LABELS - VALUES;
    let x = |ratio: f64| {
        let position = ratio.clamp(1.0 / WIDEST, WIDEST).log10() / WIDEST.log10();
        LABELS + room / 2.0 * (1.0 + position)
    };
    let height = ROW * rows.len() as f64;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {height}" role="img"><path class="even-line" d="M{0:.1} 0V{height}"/>"#,
        x(1.0)
    );
    for (i, row) in rows.iter().enumerate() {
        let top = ROW * i as f64;
        let middle = top + ROW / 2.0;
        let (from, to) = (x(row.ratio.min(1.0)), x(row.ratio.max(1.0)));
        let class = match row.verdict {
            Verdict::Ahead => "win",
            Verdict::Even => "draw",
            Verdict::Behind => "loss",
        };
        let _ = write!(
            svg,
            r#"<text class="label" x="{}" y="{middle}">{}</text><rect class="bar {class}" x="{from:.1}" y="{}" width="{:.1}" height="{}"/><text class="value" x="{}" y="{middle}">{:.2}× {}</text>"#,
            LABELS - 8.0,
            row.workload,
            top + 5.0,
            (to - from).max(1.0),
            ROW - 10.0,
            LABELS + room + 8.0,
            row.ratio,
            row.peer
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The class that gives a runtime its colour.
pub(super) fn class_of(runtime: &str) -> String {
    let index = RUNTIMES.iter().position(|name| *name == runtime);
    format!("r{}", index.unwrap_or(RUNTIMES.len()))
}

const CURVE_HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 122.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;

/// What never takes longer is drawn as this.
const SHORTEST: f64 = 1000.0;

/// Latencies in nanoseconds by share of the operations.
type Curve<'a> = (&'a str, &'a [(f64, f64)]);

/// Latency by share of the operations, both axes logarithmic: to the right the rare, upwards the
/// late.
pub(super) fn curves(width: f64, mut lines: Vec<Curve<'_>>) -> String {
    let axes = Axes::around(width, &lines);
    let mut svg = format!(r#"<svg viewBox="0 0 {width} {CURVE_HEIGHT}" role="img">"#);
    axes.draw(&mut svg);
    let last = |curve: &[(f64, f64)]| curve.last().map_or(0.0, |(_, ns)| *ns);
    lines.sort_by(|a, b| last(b.1).total_cmp(&last(a.1)));
    let wanted: Vec<_> = lines.iter().map(|(_, curve)| axes.y(last(curve))).collect();
    let room = places(&wanted, TOP, CURVE_HEIGHT - BOTTOM);
    for ((runtime, curve), place) in lines.into_iter().zip(room) {
        let class = class_of(runtime);
        let points: Vec<_> = curve
            .iter()
            .map(|(share, ns)| format!("{:.1},{:.1}", axes.x(*share), axes.y(*ns)))
            .collect();
        let _ = write!(
            svg,
            r#"<polyline class="curve {class}" points="{}"/><text class="name {class}" x="{}" y="{place:.1}">{runtime}</text>"#,
            points.join(" "),
            width - RIGHT + 8.0
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Heights for names whose lines end at these heights, sorted from the top: near them, in order,
/// none over another, between top and bottom.
pub(super) fn places(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    const LINE: f64 = 14.0;
    let mut places: Vec<f64> = Vec::new();
    for &wanted in wanted {
        let free = places.last().map_or(top, |above| above + LINE);
        places.push(wanted.max(free));
    }
    let mut lowest = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(lowest);
        lowest = *place - LINE;
    }
    places
}

struct Axes {
    width: f64,
    /// Decades of nanoseconds.
    bottom: i32,
    top: i32,
    /// How many nines the rarest share has.
    deepest: f64,
}

impl Axes {
    fn around(width: f64, lines: &[Curve<'_>]) -> Self {
        let points = || lines.iter().flat_map(|(_, curve)| curve.iter());
        let least = points().map(|(_, ns)| *ns).fold(f64::MAX, f64::min);
        let most = points().map(|(_, ns)| *ns).fold(0.0, f64::max);
        let shares = points()
            .map(|(share, _)| *share)
            .filter(|share| *share < 1.0);
        Self {
            width,
            bottom: least.max(SHORTEST).log10().floor() as i32,
            top: most.max(10.0 * SHORTEST).log10().ceil() as i32,
            deepest: shares.map(nines).fold(1.0, f64::max),
        }
    }

    fn x(&self, share: f64) -> f64 {
        let room = self.width - LEFT - RIGHT;
        let position = if share < 1.0 {
            nines(share) / self.deepest * 0.9
        } else {
            1.0
        };
        LEFT + position * room
    }

    fn y(&self, nanoseconds: f64) -> f64 {
        let (bottom, top) = (f64::from(self.bottom), f64::from(self.top));
        let position = (nanoseconds.max(SHORTEST).log10() - bottom) / (top - bottom);
        CURVE_HEIGHT - BOTTOM - position * (CURVE_HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String) {
        for decade in self.bottom..=self.top {
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{LEFT} {y:.1}H{}"/><text class="tick" text-anchor="end" x="{}" y="{y:.1}">{}</text>"#,
                self.width - RIGHT,
                LEFT - 6.0,
                decade_label(decade as u32),
                y = self.y(10_f64.powi(decade)),
            );
        }
        let shares = [
            (0.5, "50 %"),
            (0.9, "90 %"),
            (0.99, "99 %"),
            (0.999, "99.9 %"),
            (0.9999, "99.99 %"),
            (1.0, "worst"),
        ];
        for (share, label) in shares {
            let x = self.x(share);
            let crowded = share < 1.0 && x > self.x(1.0) - 44.0;
            if share < 1.0 && nines(share) > self.deepest {
                continue;
            }
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{x:.1} {TOP}V{}"/><text class="tick" text-anchor="middle" x="{x:.1}" y="{}">{}</text>"#,
                CURVE_HEIGHT - BOTTOM,
                CURVE_HEIGHT - BOTTOM + 16.0,
                if crowded { "" } else { label },
            );
        }
    }
}

fn decade_label(decade: u32) -> String {
    match decade {
        ..3 => format!("{} ns", 10_u64.pow(decade)),
        3..6 => format!("{} µs", 10_u64.pow(decade - 3)),
        6..9 => format!("{} ms", 10_u64.pow(decade - 6)),
        _ => format!("{} s", 10_u64.pow(decade - 9)),
    }
}

/// 0.9 is one, 0.99 is two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}
