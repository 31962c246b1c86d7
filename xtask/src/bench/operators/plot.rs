//! Plots of the results: a line for each contender over the number of resources.

use std::fmt::Write;

use super::phases::Measured;
use super::servers::Server;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const MARGIN: f64 = 56.0;
/// Room for the names.
const LEGEND: f64 = 210.0;
const COLOURS: [&str; 8] = ["#0b6e4f", "#c1292e", "#e07a5f", "#235789", "#5b3f8c", "#7fa7d0", "#8a6d3b", "#c9b27c"];

/// What is drawn: a file, a title, and a figure of each result.
type Plot = (&'static str, &'static str, fn(&Measured) -> f64);

const PLOTS: [Plot; 4] = [
    ("cpu.svg", "CPU seconds, cold start", |it| it.cold.cpu_s),
    ("memory.svg", "peak memory, MB", |it| it.cold.peak_mb),
    ("writes.svg", "writes, cold start", |it| it.cold.requests.writes as f64),
    ("p99.svg", "p99 from a change to settled, ms", |it| it.update.p99_ms),
];

/// Every plot of the results on one server, with the name of its file.
pub(super) fn all(server: Server, results: &[Measured]) -> Vec<(String, String)> {
    let file = |name: &str| format!("{}-{name}", server.name());
    PLOTS.iter().map(|(name, title, figure)| (file(name), draw(title, results, *figure))).collect()
}

/// Both axes are logarithmic: what grows in proportion is a straight line.
fn draw(title: &str, results: &[Measured], figure: fn(&Measured) -> f64) -> String {
    let value = |it: &Measured| figure(it).max(0.01);
    let x = Axis::over(results.iter().map(|it| it.size as f64), MARGIN, WIDTH - LEGEND);
    let y = Axis::over(results.iter().map(value), HEIGHT - MARGIN, MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">{title}</text>\n"
    );
    for mark in x.marks() {
        let at = x.at(mark);
        let foot = HEIGHT - MARGIN;
        writeln!(svg, "<path d=\"M{at:.1} {foot}V{MARGIN}\" stroke=\"#ddd\"/>").expect("a String takes all");
        writeln!(svg, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark}</text>", foot + 18.0)
            .expect("a String takes all");
    }
    for mark in y.marks() {
        let (at, end) = (y.at(mark), WIDTH - LEGEND);
        writeln!(svg, "<path d=\"M{MARGIN} {at:.1}H{end}\" stroke=\"#ddd\"/>").expect("a String takes all");
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>", MARGIN - 6.0, at + 4.0)
            .expect("a String takes all");
    }
    let mut names: Vec<(&str, &str)> = Vec::new();
    for it in results {
        if !names.contains(&(&it.name, &it.text)) {
            names.push((&it.name, &it.text));
        }
    }
    for (index, (name, text)) in names.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points: Vec<(f64, f64)> =
            results.iter().filter(|it| it.name == *name).map(|it| (x.at(it.size as f64), y.at(value(it)))).collect();
        svg += &line(&points, colour);
        let (left, top) = (WIDTH - LEGEND + 14.0, MARGIN + 18.0 * index as f64);
        writeln!(svg, "<rect x=\"{left}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>", top - 9.0)
            .expect("a String takes all");
        writeln!(svg, "<text x=\"{:.1}\" y=\"{top:.1}\">{text}</text>", left + 16.0).expect("a String takes all");
    }
    svg + "</svg>\n"
}

fn line(points: &[(f64, f64)], colour: &str) -> String {
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let mut svg =
        format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n", path.join(" "));
    for (x, y) in points {
        writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>").expect("a String takes all");
    }
    svg
}

/// A logarithmic axis of whole powers of ten.
struct Axis {
    least: i32,
    most: i32,
    begin: f64,
    end: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, begin: f64, end: f64) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let most = values.fold(0.0, f64::max).log10().ceil();
        let (least, most) = if least.is_finite() && most.is_finite() { (least as i32, most as i32) } else { (0, 1) };
        Self { least, most: most.max(least + 1), begin, end }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.least)) / f64::from(self.most - self.least);
        self.begin + share * (self.end - self.begin)
    }

    fn marks(&self) -> impl Iterator<Item = f64> {
        (self.least..=self.most).map(|power| 10_f64.powi(power))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_its_values_within_it() {
        let axis = Axis::over([100.0, 1000.0].into_iter(), 0.0, 100.0);
        assert_eq!((axis.at(100.0), axis.at(1000.0)), (0.0, 100.0));
        assert_eq!(axis.marks().collect::<Vec<_>>(), [100.0, 1000.0]);
        assert_eq!(Axis::over(std::iter::empty(), 0.0, 1.0).marks().count(), 2);
    }
}
