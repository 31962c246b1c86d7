//! The results as tables, and the page of the book.

use std::fmt::Write;

use super::goals::{WRITES_FLOOR, goals, slope_kb};
use super::phases::{Cost, Measured};
use super::plot;
use super::servers::{Server, by_server};

/// The page.
pub(super) fn text(results: &[Measured]) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "# Operators side by side\n\n\
         Written by `cargo xtask bench operators` (`--sizes 100,1000,10000`; names of contenders run some of them). One job with several \
         toolkits: for each `Widget` a ConfigMap and a Deployment that it owns, and a status. The programs are in `bench/peers`, each as its own \
         documentation advises; where a toolkit leaves it open whether children are compared before they are written or applied each time, it takes \
         part in both ways. They run in turns, each with an API server of its own and nothing else in it: no controller makes Pods of the \
         Deployments.\n\n\
         {cores} cores, one run each; `load` is the machine's load average at the end of it. Trust counts, bytes and memory; times, and CPU \
         seconds a little, suffer from whatever else runs.\n"
    );
    for (server, results) in by_server(results) {
        text += &section(server, &results);
        text += &reached(&results);
        text += "\n### Growth\n";
        for (file, _) in plot::all(server, &results) {
            writeln!(text, "![{file}](bench-operators/{file})").expect("a String takes all");
        }
    }
    text
}

/// The tables alone.
pub(super) fn results(results: &[Measured]) -> String {
    by_server(results).iter().map(|(server, results)| section(*server, results)).collect()
}

fn section(server: Server, results: &[Measured]) -> String {
    format!("\n## On {}\n{}", server.text(), tables(results))
}

fn reached(results: &[Measured]) -> String {
    let mut text =
        String::from("\n### Goals\n| goal of Windlass, largest size | is | at most | |\n|---|--:|--:|---|\n");
    for goal in goals(results) {
        let verdict = if goal.met() { "met" } else { "not met" };
        writeln!(text, "| {} | {:.2} | {:.2} | {verdict} |", goal.text, goal.is, goal.most)
            .expect("a String takes all");
    }
    text
}

/// The tables, one for each size and phase.
fn tables(results: &[Measured]) -> String {
    let mut sizes: Vec<usize> = results.iter().map(|it| it.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut text = String::new();
    for size in sizes {
        let of_size: Vec<&Measured> = results.iter().filter(|it| it.size == size).collect();
        write!(text, "### {size} resources\n#### From a cold start to all settled\n").expect("a String takes all");
        text += "| | writes per resource | events per resource | CPU s | peak MB | on the wire MB | wall s | load | requests |\n\
                 |---|--:|--:|--:|--:|--:|--:|--:|---|\n";
        for it in &of_size {
            let each = |count: usize| count as f64 / size as f64;
            let Cost { requests, cpu_s, peak_mb, wire_mb, wall_s, .. } = &it.cold;
            let verbs: Vec<String> = requests.by_verb.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
            writeln!(
                text,
                "| {} | {:.2} | {:.2} | {cpu_s:.2} | {peak_mb:.0} | {wire_mb:.1} | {wall_s:.1} | {} | {} |",
                it.text,
                each(requests.writes),
                each(requests.events),
                it.load,
                verbs.join(", ")
            )
            .expect("a String takes all");
        }
        writeln!(text, "\nThe least that the work needs are {WRITES_FLOOR:.0} writes per resource.\n")
            .expect("a String takes all");
        text += &changes("Changes of resources", &of_size, |it| &it.update);
        text += &changes("Drift: children changed by hand", &of_size, |it| &it.drift);
        text += &restarts(&of_size);
    }
    text += &slopes(results);
    text
}

fn changes(title: &str, results: &[&Measured], phase: impl Fn(&Measured) -> &Cost) -> String {
    let mut text =
        format!("#### {title}\n| | p50 ms | p99 ms | writes | events | CPU s |\n|---|--:|--:|--:|--:|--:|\n");
    for it in results {
        let Cost { p50_ms, p99_ms, requests, cpu_s, .. } = phase(it);
        let (writes, events) = (requests.writes, requests.events);
        writeln!(text, "| {} | {p50_ms:.0} | {p99_ms:.0} | {writes} | {events} | {cpu_s:.2} |", it.text)
            .expect("a String takes all");
    }
    text + "\n"
}

fn restarts(results: &[&Measured]) -> String {
    let mut text = String::from(
        "#### Restart with everything in place\nA resource is made one second after the start; its three writes are among those counted.\n\n\
         | | writes | events | CPU s | peak MB | new resource settled after ms |\n|---|--:|--:|--:|--:|--:|\n",
    );
    for it in results {
        let Cost { requests, cpu_s, peak_mb, p99_ms, .. } = &it.restart;
        let (writes, events) = (requests.writes, requests.events);
        writeln!(text, "| {} | {writes} | {events} | {cpu_s:.2} | {peak_mb:.0} | {p99_ms:.0} |", it.text)
            .expect("a String takes all");
    }
    text + "\n"
}

fn slopes(results: &[Measured]) -> String {
    let mut names: Vec<(&str, &str)> = results.iter().map(|it| (it.name.as_str(), it.text.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    let rows: Vec<String> = (names.iter())
        .filter_map(|(name, text)| slope_kb(results, name).map(|kb| format!("| {text} | {kb:.1} |\n")))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    format!("### Memory per further resource\n| | KB |\n|---|--:|\n{}", rows.concat())
}
