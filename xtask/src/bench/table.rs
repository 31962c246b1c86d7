//! The results as a table and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::goals::{Better, Goal, IN_FLIGHT, ROWS, VERBS, rate_goal};
use super::process::load_average;
use super::rounds::Results;
use crate::tools;

/// A row with its values.
struct Line {
    name: String,
    text: String,
    unit: &'static str,
    windlass: f64,
    real: Option<f64>,
    /// Times better, per round, sorted.
    ratios: Vec<f64>,
    goal: Goal,
}

/// The table.
pub(super) fn text(results: &Results) -> String {
    let mut text =
        String::from("| what | Windlass | real | times better (min–max) | goal | |\n|---|--:|--:|--:|--:|---|\n");
    for line in lines(results) {
        let real = line.real.map_or_else(|| "–".to_owned(), |real| quantity(real, line.unit));
        let windlass = quantity(line.windlass, line.unit);
        let row = format!("| {} | {windlass} | {real} | {} | {} |", line.text, line.ratio_text(), line.verdict());
        writeln!(text, "{row}").expect("a String takes everything");
    }
    for (round, sync) in results.syncs.iter().enumerate() {
        let (p50, p99) = (quantity(sync.p50_ms, "ms"), quantity(sync.p99_ms, "ms"));
        writeln!(text, "A sync of the disk before round {}: p50 {p50}, p99 {p99}.", round + 1)
            .expect("a String takes everything");
    }
    text
}

/// All in one line.
pub(super) fn json(results: &Results) -> Value {
    let rows: serde_json::Map<String, Value> = lines(results)
        .into_iter()
        .map(|line| {
            let value = json!({
                "windlass": line.windlass, "real": line.real, "unit": line.unit, "ratio": median(&line.ratios),
                "ratio_min": line.ratios.first(), "ratio_max": line.ratios.last(), "met": line.met(),
            });
            (line.name, value)
        })
        .collect();
    let syncs: Vec<Value> = results.syncs.iter().map(|sync| json!({"p50": sync.p50_ms, "p99": sync.p99_ms})).collect();
    json!({
        "rows": rows, "disk_sync_ms": syncs, "load": load_average(), "etcd": tools::ETCD, "kubernetes": tools::KUBERNETES,
    })
}

fn lines(results: &Results) -> Vec<Line> {
    let mut lines: Vec<Line> = ROWS
        .iter()
        .filter_map(|row| line(results, row.name, row.text.to_owned(), (row.unit, row.better, row.goal)))
        .collect();
    for (mode, durable) in [("durable", true), ("relaxed", false)] {
        for verb in VERBS {
            for in_flight in IN_FLIGHT {
                let goal = rate_goal(verb, in_flight, durable);
                let text = format!("{verb}, {in_flight} in flight, {mode}");
                let name = format!("{verb}_{in_flight}_{mode}_per_s");
                lines.extend(line(results, &name, text.clone(), ("/s", Better::Higher, goal)));
                let name = format!("{verb}_{in_flight}_{mode}_cpu_ms");
                lines.extend(line(results, &name, format!("{text}: server CPU"), ("ms", Better::Lower, Goal::None)));
            }
        }
    }
    lines
}

fn line(
    results: &Results,
    name: &str,
    text: String,
    (unit, better, goal): (&'static str, Better, Goal),
) -> Option<Line> {
    let windlass = results.windlass.get(name)?;
    let real = results.real.get(name);
    let mut ratios: Vec<f64> = (windlass.iter().zip(real.into_iter().flatten()))
        .map(|(windlass, real)| match better {
            Better::Lower => real / windlass,
            Better::Higher => windlass / real,
        })
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let real = real.and_then(|real| median(real));
    Some(Line { name: name.to_owned(), text, unit, windlass: median(windlass)?, real, ratios, goal })
}

impl Line {
    fn met(&self) -> Option<bool> {
        match self.goal {
            Goal::Times(times) => median(&self.ratios).map(|ratio| ratio >= times),
            Goal::AtMost(most) => Some(self.windlass <= most),
            Goal::None => None,
        }
    }

    fn ratio_text(&self) -> String {
        match (median(&self.ratios), self.ratios.first(), self.ratios.last()) {
            (Some(ratio), Some(least), Some(most)) => format!("{ratio:.1} ({least:.1}–{most:.1})"),
            _ => "–".to_owned(),
        }
    }

    /// The goal, and whether it is met or by how much not.
    fn verdict(&self) -> String {
        match (self.goal, median(&self.ratios)) {
            (Goal::None, _) | (Goal::Times(_), None) => " | ".to_owned(),
            (Goal::Times(times), Some(ratio)) if ratio >= times => format!("≥ {times} | met"),
            (Goal::Times(times), Some(ratio)) => {
                format!("≥ {times} | not met: {:.0} % of the goal", 100.0 * ratio / times)
            }
            (Goal::AtMost(most), _) if self.windlass <= most => format!("≤ {most} | met"),
            (Goal::AtMost(most), _) => {
                format!("≤ {most} | not met: {} over", quantity(self.windlass - most, self.unit))
            }
        }
    }
}

fn quantity(value: f64, unit: &str) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 1.0 => 1,
        _ => 3,
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
