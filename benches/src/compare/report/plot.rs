//! Plots as SVG text: bars with spread, and latency curves.

use std::fmt::Write;

use super::escape;
use crate::figure::Figure;
use crate::record::Summary;
use phaseloop_benches::catalogue::{OURS, RUNTIMES};

const WIDTH: f64 = 460.0;
const ROW: f64 = 22.0;
const LABELS: f64 = 112.0;
const VALUES: f64 = 118.0;

/// One bar a runtime, from zero; the line across its end goes from the least to the most of all rounds.
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
    let ours = rows.iter().find(|(runtime, _)| *runtime == OURS);
    let height = ROW * rows.len() as f64;
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img">"#);
    for (i, (runtime, summary)) in rows.iter().enumerate() {
        let top = ROW * i as f64;
        let middle = top + ROW / 2.0;
        let class = class_of(runtime);
        let length = (x(summary.median) - LABELS).max(1.0);
        let _ = write!(
            svg,
            r#"<text class="label {class}" x="{}" y="{middle}">{runtime}</text><rect class="bar {class}" x="{LABELS}" y="{}" width="{length:.1}" height="{}"/>"#,
            LABELS - 8.0,
            top + 4.0,
            ROW - 8.0,
        );
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
        if let Some((_, ours)) = ours.filter(|(_, ours)| *runtime != OURS && ours.median > 0.0) {
            let _ = write!(value, "  {:.2}×", summary.median / ours.median);
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

/// The class that gives a runtime its colour.
fn class_of(runtime: &str) -> String {
    let index = RUNTIMES.iter().position(|name| *name == runtime);
    format!("r{}", index.unwrap_or(RUNTIMES.len()))
}

const CURVE_WIDTH: f64 = 620.0;
const CURVE_HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 128.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;

/// Latency by share of the operations, both axes logarithmic: to the right the rare, upwards the late.
pub(super) fn curves(lines: &[(&str, &[(f64, f64)])]) -> String {
    let points = || lines.iter().flat_map(|(_, curve)| curve.iter());
    let least = points()
        .map(|(_, ns)| ns.max(100.0))
        .fold(f64::MAX, f64::min);
    let most = points().map(|(_, ns)| *ns).fold(1000.0, f64::max);
    let (bottom, top) = (least.log10().floor(), most.log10().ceil());
    let deepest = points().filter(|(share, _)| *share < 1.0);
    let deepest = deepest.map(|(share, _)| nines(*share)).fold(1.0, f64::max);
    let x = |share: f64| {
        let position = if share >= 1.0 {
            1.0
        } else {
            nines(share) / deepest * 0.94
        };
        LEFT + position * (CURVE_WIDTH - LEFT - RIGHT)
    };
    let y = |ns: f64| {
        let position = (ns.max(100.0).log10() - bottom) / (top - bottom);
        CURVE_HEIGHT - BOTTOM - position * (CURVE_HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(r#"<svg viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" role="img">"#);
    draw_axes(&mut svg, x, y, deepest, bottom as i32..=top as i32);
    let mut taken = Vec::new();
    for (runtime, curve) in lines {
        let class = class_of(runtime);
        let path: Vec<_> = curve
            .iter()
            .map(|(share, ns)| format!("{:.1},{:.1}", x(*share), y(*ns)))
            .collect();
        let _ = write!(
            svg,
            r#"<polyline class="curve {class}" points="{}"/>"#,
            path.join(" ")
        );
        let Some((_, last)) = curve.last() else {
            continue;
        };
        let place = free_place(&mut taken, y(*last));
        let _ = write!(
            svg,
            r#"<text class="name {class}" x="{}" y="{place:.1}">{runtime}</text>"#,
            CURVE_WIDTH - RIGHT + 8.0
        );
    }
    svg.push_str("</svg>");
    svg
}

/// 0.9 is one, 0.99 is two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The nearest height at which no other name is written.
fn free_place(taken: &mut Vec<f64>, wanted: f64) -> f64 {
    const LINE: f64 = 14.0;
    let is_free = |place: f64| {
        taken
            .iter()
            .all(|other: &f64| (other - place).abs() >= LINE)
    };
    let below = (0..).map(|step| wanted + f64::from(step) * 2.0);
    let above = (0..).map(|step| wanted - f64::from(step) * 2.0);
    let place = below
        .zip(above)
        .flat_map(|(below, above)| [above, below])
        .find(|place| is_free(*place) && (TOP..CURVE_HEIGHT - BOTTOM + 4.0).contains(place));
    let place = place.unwrap_or(wanted);
    taken.push(place);
    place
}

fn draw_axes(
    svg: &mut String,
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
    deepest: f64,
    decades: std::ops::RangeInclusive<i32>,
) {
    for decade in decades {
        let at = y(10_f64.powi(decade));
        let label = match decade {
            ..3 => format!("{} ns", 10_u64.pow(decade as u32)),
            3..6 => format!("{} µs", 10_u64.pow(decade as u32 - 3)),
            6..9 => format!("{} ms", 10_u64.pow(decade as u32 - 6)),
            _ => format!("{} s", 10_u64.pow(decade as u32 - 9)),
        };
        let _ = write!(
            svg,
            r#"<path class="grid" d="M{LEFT} {at:.1}H{}"/><text class="tick" text-anchor="end" x="{}" y="{at:.1}">{label}</text>"#,
            CURVE_WIDTH - RIGHT,
            LEFT - 6.0,
        );
    }
    let shares = [
        (0.0, "fastest"),
        (0.5, "50 %"),
        (0.9, "90 %"),
        (0.99, "99 %"),
        (0.999, "99.9 %"),
        (0.9999, "99.99 %"),
        (1.0, "worst"),
    ];
    for (share, label) in shares {
        if share < 1.0 && nines(share) > deepest {
            continue;
        }
        let at = x(share);
        let _ = write!(
            svg,
            r#"<path class="grid" d="M{at:.1} {TOP}V{}"/><text class="tick" text-anchor="middle" x="{at:.1}" y="{}">{label}</text>"#,
            CURVE_HEIGHT - BOTTOM,
            CURVE_HEIGHT - BOTTOM + 16.0,
        );
    }
}
