//! Explores the whole gallery, and prints a table of what was found by what; with `measure`, what runs cost.

#[path = "../../gallery/mod.rs"]
mod gallery;
mod measure;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use gallery::{Bug, ENTRIES, Entry, Tune};
use windlass_testkit::explore::Report;

/// How many plans of each fixed reconciler are tried, unless `WINDLASS_PLANS` says otherwise.
const FIXED_PLANS: usize = 160;

/// What was seen of the bugs and of the fixed reconcilers.
#[derive(Default)]
struct Totals {
    missed: Vec<Bug>,
    alarms: Vec<String>,
    plans: usize,
    twins: usize,
    fixed_plans: usize,
    busy: Duration,
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    match wanted.first().map(String::as_str) {
        Some("measure") => measure::run(wanted.get(1).and_then(|times| times.parse().ok()).unwrap_or(1000)),
        _ => explore(&wanted),
    }
}

/// Explores the bugs that are wanted, or all.
fn explore(wanted: &[String]) -> ExitCode {
    let is_wanted = |entry: &&Entry| wanted.is_empty() || wanted.contains(&format!("{:?}", entry.bug));
    let entries: Vec<&Entry> = ENTRIES.iter().filter(is_wanted).collect();
    let (began, mut totals) = (Instant::now(), Totals::default());
    println!("| bug | found by | the tests look with | plans until then | time | what was found | real one |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for entry in &entries {
        row(entry, &mut totals);
    }
    println!();
    let mut twins: Vec<&Entry> = Vec::new();
    for entry in &entries {
        if !twins.iter().any(|twin| (twin.family, twin.play) == (entry.family, entry.play)) {
            twins.push(entry);
        }
    }
    println!("| fixed reconciler | scenario | plans tried | findings | calls | ms of CPU per plan |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for entry in twins {
        twin(entry, &mut totals);
    }
    summary(&entries, &totals, began.elapsed());
    if totals.missed.is_empty() && totals.alarms.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(entry: &Entry, totals: &mut Totals) {
    let began = Instant::now();
    let report = gallery::run(entry, &entry.bug, Tune::default());
    totals.plans += report.plans();
    totals.busy += report.busy;
    if report.findings.is_empty() {
        totals.missed.push(entry.bug);
    }
    let what = report.findings.first().and_then(|finding| finding.violations.first()).cloned().unwrap_or_default();
    let link = entry.link.trim_start_matches("https://github.com/");
    println!(
        "| {} | {} | {} | {} | {:.1} s | {} | [{link}]({}) |",
        entry.what,
        found_by(&report),
        if entry.class.is_empty() { "no fault" } else { entry.class },
        report.plans(),
        began.elapsed().as_secs_f64(),
        what.replace('|', "\\|"),
        entry.link
    );
}

fn found_by(report: &Report) -> String {
    let mut classes: Vec<&str> = Vec::new();
    for finding in &report.findings {
        let class = finding.plan.faults.first().map_or("the run without faults", |fault| fault.class());
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    if classes.is_empty() { "**not found**".to_owned() } else { classes.join(", ") }
}

fn twin(entry: &Entry, totals: &mut Totals) {
    let (family, play) = (entry.family, entry.play);
    let report = gallery::run(entry, &Bug::None, Tune { plans: Some(FIXED_PLANS), ..Tune::default() });
    totals.twins += 1;
    totals.fixed_plans += report.plans();
    totals.busy += report.busy;
    let per_plan = report.busy.as_secs_f64() * 1000.0 / report.plans() as f64;
    println!(
        "| {family:?} | {play:?} | {} | {} | {} | {per_plan:.0} |",
        report.plans(),
        report.findings.len(),
        report.calls
    );
    if !report.findings.is_empty() {
        totals.alarms.push(format!("{family:?} {play:?}\n{report}"));
    }
}

fn summary(entries: &[&Entry], totals: &Totals, took: Duration) {
    let (found, runs) = (entries.len() - totals.missed.len(), totals.plans + totals.fixed_plans);
    println!(
        "\n{found} of {} bugs found; {} false alarms in {} runs of {} fixed reconcilers.",
        entries.len(),
        totals.alarms.len(),
        totals.fixed_plans,
        totals.twins
    );
    let per_plan = totals.busy.as_secs_f64() * 1000.0 / runs as f64;
    let per_second = runs as f64 / took.as_secs_f64();
    println!(
        "{runs} runs in {:.0} s: {per_plan:.0} ms of CPU per plan, {per_second:.0} plans per second.",
        took.as_secs_f64()
    );
    for bug in &totals.missed {
        eprintln!("not found: {bug:?}");
    }
    for alarm in &totals.alarms {
        eprintln!("false alarm: {alarm}");
    }
}
