//! P10 and planned changes of the primary: nothing that was acknowledged is lost, and there are never two writers.

use std::time::{Duration, Instant};

use super::stage::{Blow, NAME, Stage, condition};

/// What people are promised. Machines of tests are slow: the tests only print what was measured.
const CRASH_GOAL: Duration = Duration::from_secs(10);
const PLANNED_GOAL: Duration = Duration::from_secs(5);

fn measured(stage: &Stage, what: &str, gap: Duration, goal: Duration) {
    let verdict = if gap <= goal { "within" } else { "OVER" };
    stage.note(&format!("{what}: no write for {:.2} s, {verdict} the goal of {} s", gap.as_secs_f32(), goal.as_secs()));
}

/// Strikes the primary, and waits until another one, or the same again, takes writes.
fn strike_primary(stage: &Stage, writer: &super::writer::Writer, blow: Blow, what: &str) -> String {
    let primary = stage.primary();
    writer.advance(20);
    let struck = Instant::now();
    stage.strike(&primary, blow);
    stage.note(&format!("{what} {primary}"));
    writer.advance(20);
    let gap = writer.gap_since(struck);
    // The longest pause is the one that was caused, not an ordinary one.
    measured(stage, what, gap, CRASH_GOAL);
    primary
}

fn switch_over(stage: &Stage, writer: &super::writer::Writer) {
    let from = stage.primary();
    let to = if from == "db-2" { "db-3" } else { "db-2" };
    writer.advance(20);
    let asked = Instant::now();
    let annotation = format!("postgres.windlass.dev/switchover={to}");
    stage.machine.kubectl(&["annotate", "--overwrite", "postgrescluster", NAME, &annotation]);
    let status = stage.until("the switchover is done", |status| status["switchover"]["state"] == "Done");
    assert_eq!(status["primary"], to);
    writer.advance(20);
    measured(stage, &format!("switchover from {from} to {to}"), writer.gap_since(asked), PLANNED_GOAL);
}

#[test]
fn a_primary_is_switched_over_and_killed_and_nothing_is_lost() {
    let stage = Stage::with_three();
    let writer = stage.writer();
    switch_over(&stage, &writer);
    stage.until_ready(3);
    stage.note("all are back");
    strike_primary(&stage, &writer, Blow::Kill, "killed");
    stage.until_ready(3);
    stage.note("all are back");
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
}

#[test]
#[ignore = "cargo xtask scenario P10"]
fn p10_frozen_primaries_are_replaced_and_nothing_is_lost() {
    let stage = Stage::with_three();
    let writer = stage.writer();
    let frozen = strike_primary(&stage, &writer, Blow::Freeze, "froze");
    let status =
        stage.until("another primary", |status| status["primary"].is_string() && status["primary"] != frozen.as_str());
    stage.note(&format!("{} leads on timeline {}", status["primary"], status["timeline"]));
    stage.strike(&frozen, Blow::Thaw);
    stage.note(&format!("thawed {frozen}"));
    writer.advance(20);
    let thawed = Instant::now();
    stage.until("the former primary follows", |status| {
        let members = status["members"].as_array().into_iter().flatten();
        members
            .into_iter()
            .any(|it| it["name"] == frozen.as_str() && it["role"] == "replica" && it["state"] == "Streaming")
    });
    stage.note(&format!("{frozen} follows after {:.1} s", thawed.elapsed().as_secs_f32()));
    stage.until_ready(3);
    for _ in 0..2 {
        strike_primary(&stage, &writer, Blow::Kill, "killed");
        stage.until_ready(3);
    }
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
}

#[test]
#[ignore = "cargo xtask scenario P11"]
fn p11_without_a_safe_candidate_nobody_is_promoted() {
    let stage = Stage::with_three();
    let writer = stage.writer();
    writer.advance(20);
    let primary = stage.primary();
    let standby = if primary == "db-2" { "db-3" } else { "db-2" };
    stage.strike(standby, Blow::Freeze);
    stage.strike(&primary, Blow::Freeze);
    stage.note(&format!("froze {primary} and {standby}"));
    let status =
        stage.until("it is said that nobody may lead", |status| condition(status, "Stalled")["status"] == "True");
    assert_eq!(condition(&status, "Stalled")["reason"], "NoSafeCandidate", "{status}");
    stage.note(condition(&status, "Stalled")["message"].as_str().unwrap_or_default());
    stage.strike(standby, Blow::Thaw);
    stage.note(&format!("thawed {standby}"));
    writer.advance(20);
    stage.strike(&primary, Blow::Thaw);
    stage.until_ready(3);
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
}
