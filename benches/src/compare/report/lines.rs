//! Growth as SVG text: what one costs, by how many there are at once. Both axes are logarithmic; a
//! cost that does not depend on the number is a level line.

use std::fmt::Write;

use super::plot::{class_of, places};
use crate::compare::figure::Figure;
use crate::compare::growth::{Line, short};

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 112.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 34.0;

/// The highest cost of the axis is at least so many times the lowest.
const LEAST_RANGE: f64 = 20.0;

pub(super) fn growth(figure: Figure, mut lines: Vec<&Line>) -> String {
    let axes = Axes::around(&lines);
    let mut svg = format!(r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">"#);
    axes.draw(&mut svg, figure, &lines);
    let last = |line: &Line| line.points.last().map_or(0.0, |(_, cost)| *cost);
    lines.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let wanted: Vec<_> = lines.iter().map(|line| axes.y(last(line))).collect();
    for (line, place) in lines.into_iter().zip(places(&wanted, TOP, HEIGHT - BOTTOM)) {
        draw_line(&mut svg, &axes, line, place);
    }
    svg.push_str("</svg>");
    svg
}

fn draw_line(svg: &mut String, axes: &Axes, line: &Line, name_at: f64) {
    let class = class_of(line.runtime);
    let points: Vec<_> = line
        .points
        .iter()
        .map(|(size, cost)| (axes.x(*size), axes.y(*cost)))
        .collect();
    let corners: Vec<_> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = write!(
        svg,
        r#"<polyline class="curve {class}" points="{}"/>"#,
        corners.join(" ")
    );
    for (x, y) in points {
        let _ = write!(
            svg,
            r#"<circle class="bar {class}" cx="{x:.1}" cy="{y:.1}" r="2.5"/>"#
        );
    }
    let _ = write!(
        svg,
        r#"<text class="name {class}" x="{}" y="{name_at:.1}">{}</text>"#,
        WIDTH - RIGHT + 8.0,
        line.runtime
    );
}

struct Axes {
    sizes: [f64; 2],
    costs: [f64; 2],
}

impl Axes {
    fn around(lines: &[&Line]) -> Self {
        let points = || lines.iter().flat_map(|line| line.points.iter());
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::MAX, f64::MIN_POSITIVE], |[least, most], value| {
                [least.min(value), most.max(value)]
            })
        };
        let sizes = range(&mut points().map(|(size, _)| *size as f64));
        let [least, most] = range(&mut points().map(|(_, cost)| cost.max(1.0)));
        // Lines that are almost level shall look so.
        let margin = (LEAST_RANGE * least / most).sqrt().max(1.4);
        Self {
            sizes,
            costs: [least / margin, most * margin],
        }
    }

    fn x(&self, size: u64) -> f64 {
        let [fewest, most] = self.sizes;
        let position = (size as f64 / fewest).ln() / (most / fewest).ln();
        LEFT + position * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, cost: f64) -> f64 {
        let [least, most] = self.costs;
        let position = (cost.max(1.0) / least).ln() / (most / least).ln();
        HEIGHT - BOTTOM - position * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String, figure: Figure, lines: &[&Line]) {
        for cost in self.marks() {
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{LEFT} {y:.1}H{}"/><text class="tick" text-anchor="end" x="{}" y="{y:.1}">{}</text>"#,
                WIDTH - RIGHT,
                LEFT - 6.0,
                figure.show(cost),
                y = self.y(cost),
            );
        }
        let mut sizes: Vec<_> = lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(size, _)| *size))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let x = self.x(size);
            let _ = write!(
                svg,
                r#"<path class="grid" d="M{x:.1} {TOP}V{}"/><text class="tick" text-anchor="middle" x="{x:.1}" y="{}">{}</text>"#,
                HEIGHT - BOTTOM,
                HEIGHT - BOTTOM + 16.0,
                short(size),
            );
        }
    }

    /// 1, 2 and 5 of every decade that is drawn.
    fn marks(&self) -> Vec<f64> {
        let [least, most] = self.costs;
        let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
        let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(decade)));
        marks.filter(|mark| (least..=most).contains(mark)).collect()
    }
}
