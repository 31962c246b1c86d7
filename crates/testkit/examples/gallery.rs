//! Explores the whole gallery, and prints a table of what was found by what.

#[path = "../gallery/mod.rs"]
mod gallery;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use gallery::{Bug, ENTRIES, Entry, Family, Play};
use windlass_testkit::explore::Report;

/// How many plans of each fixed reconciler are tried, unless `WINDLASS_PLANS` says otherwise.
const FIXED_PLANS: usize = 120;

/// What was seen of the bugs and of the fixed reconcilers.
#[derive(Default)]
struct Totals {
    missed: Vec<Bug>,
    alarms: Vec<String>,
    plans: usize,
    fixed_plans: usize,
    busy: Duration,
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |entry: &&Entry| wanted.is_empty() || wanted.contains(&format!("{:?}", entry.bug));
    let entries: Vec<&Entry> = ENTRIES.iter().filter(is_wanted).collect();
    let (began, mut totals) = (Instant::now(), Totals::default());
    println!("| bug | found by | the tests look with | plans until then | time | what was found | real one |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for entry in &entries {
        row(entry, &mut totals);
    }
    println!();
    let mut twins: Vec<(Family, Play)> = Vec::new();
    for entry in &entries {
        if !twins.contains(&(entry.family, entry.play)) {
            twins.push((entry.family, entry.play));
        }
    }
    println!("| fixed reconciler | scenario | plans tried | findings | calls | ms of CPU per plan |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (family, play) in twins {
        twin(family, play, &mut totals);
    }
    summary(&entries, &totals, began.elapsed());
    if totals.missed.is_empty() && totals.alarms.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(entry: &Entry, totals: &mut Totals) {
    let began = Instant::now();
    let report = gallery::run(&gallery::exploration(entry.family, &entry.bug).until_found(), entry.play);
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

fn twin(family: Family, play: Play, totals: &mut Totals) {
    let report = gallery::run(&gallery::exploration(family, &Bug::None).plans(FIXED_PLANS), play);
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
        "\n{found} of {} bugs found; {} alarms in {} runs of fixed reconcilers.",
        entries.len(),
        totals.alarms.len(),
        totals.fixed_plans
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
