//! How the costs of Windlass grow with the number of objects: the slope of a line through the logarithms.

use anyhow::Result;

use super::Size;
use super::programs::Programs;
use super::rounds::{Results, number};
use super::server::{Server, Side};

/// How many objects there are when it is measured.
const STEPS: [usize; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
/// How many new objects show what a create costs.
const PROBES: usize = 1_000;
/// How many gets show what one costs: processor time is counted in hundredths of a second, and a get takes few of them.
const GETS: usize = 50 * PROBES;

/// Measures Windlass alone, up to the largest step of `size`.
pub(super) fn measure(programs: &Programs, size: Size, results: &mut Results) -> Result<()> {
    let server = Server::start(programs, Side::Windlass, true)?;
    server.load.run(&["define"])?;
    let empty = server.memory()?;
    let mut points: [(&str, Vec<(f64, f64)>); 4] =
        ["growth_memory", "growth_list", "growth_create", "growth_get"].map(|name| (name, Vec::new()));
    let mut present = 0;
    for step in STEPS.into_iter().filter(|step| *step <= size.growth) {
        eprintln!("growth: {step} objects");
        let (missing, probes) = ((step - present - PROBES.min(step - present)).to_string(), PROBES.to_string());
        let prefix = format!("fill{step}");
        server.load.run(&[
            "rate",
            "--verb",
            "create",
            "--in-flight",
            "64",
            "--prefix",
            &prefix,
            "--count",
            &missing,
        ])?;
        let prefix = format!("probe{step}");
        let cost = |verb: &str, more: &[&str]| -> Result<f64> {
            let before = server.cpu()?;
            let all = [&["rate", "--verb", verb, "--in-flight", "16", "--prefix", &prefix][..], more].concat();
            server.load.run(&all)?;
            Ok(server.cpu()? - before)
        };
        let create = cost("create", &["--count", &probes])?;
        let gets = cost("get", &["--count", &GETS.to_string(), "--objects", &probes])?;
        let get = gets * PROBES as f64 / GETS as f64;
        present = step;
        let list = server.load.run(&["list", "--objects", &step.to_string(), "--times", "3"])?;
        let values = [server.memory()? - empty, number(&list, "whole_s")?, create, get];
        for ((_, points), value) in points.iter_mut().zip(values) {
            points.push((step as f64, value));
        }
        eprintln!(
            "growth: memory {:.1} MB, list {:.3} s, create {create:.2} CPU-s, get {get:.3} CPU-s per {PROBES}",
            values[0] / 1e6,
            values[1]
        );
    }
    for (name, points) in points {
        results.windlass.entry(name.to_owned()).or_default().push(slope(&points));
    }
    Ok(())
}

/// The slope of the line through the logarithms, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.max(1e-9).ln())).collect();
    let count = logs.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| logs.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|it| it.0), mean(|it| it.1));
    let above: f64 = logs.iter().map(|it| (it.0 - x) * (it.1 - y)).sum();
    let below: f64 = logs.iter().map(|it| (it.0 - x).powi(2)).sum();
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_the_power() {
        let square: Vec<(f64, f64)> = [1.0, 10.0, 100.0].map(|x: f64| (x, 3.0 * x * x)).to_vec();
        assert!((slope(&square) - 2.0).abs() < 1e-9);
        let flat: Vec<(f64, f64)> = [1.0, 10.0, 100.0].map(|x: f64| (x, 5.0)).to_vec();
        assert!(slope(&flat).abs() < 1e-9);
    }
}
