//! What a run costs, and whether it is the same every time: the figures of `cargo xtask testkit measure`.

use std::process::ExitCode;
use std::time::Instant;

use windlass_testkit::explore::Plan;

use super::gallery::{self, Bug, Family, Play};

/// How many plans are measured.
const PLANS: usize = 200;
/// The plans that are repeated, each so many times in all threads together.
const REPEATED: [&str; 4] = ["clean", "crash-after@9#3", "deposed@9", "stale@1:4#7"];

/// Compares so many runs in all, and measures.
pub(crate) fn run(times: usize) -> ExitCode {
    let is_same = repeat(times / REPEATED.len());
    let is_quiet = cost();
    if is_same && is_quiet { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs plans again and again, and compares their schedules byte for byte.
fn repeat(times: usize) -> bool {
    let exploration = gallery::exploration(Family::Members, &Bug::None);
    let (began, mut is_same) = (Instant::now(), true);
    for text in REPEATED {
        let plan: Plan = text.parse().expect("it is a plan");
        let schedules = exploration.repeat(&plan, times, |user| gallery::play(Play::Sizes, user));
        let lines = schedules.keys().next().map_or(0, |schedule| schedule.lines().count());
        println!("{text}: {times} runs, {} different schedules, {lines} lines", schedules.len());
        is_same &= schedules.len() == 1;
    }
    println!("{} runs compared in {:.0} s", times * REPEATED.len(), began.elapsed().as_secs_f64());
    is_same
}

/// Explores a scenario with about 200 calls, and a campaign.
fn cost() -> bool {
    let exploration = gallery::exploration(Family::Members, &Bug::None).plans(PLANS);
    let report = exploration.run(|user| gallery::play(Play::Many, user));
    println!("\nexploration: {report}");
    let campaign = gallery::campaign(Family::Members, &Bug::None).run();
    println!("campaign: {campaign}");
    report.findings.is_empty() && campaign.report.findings.is_empty()
}
