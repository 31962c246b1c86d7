//! P4: settings and a build with which no server starts are taken back by themselves, and not tried again.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use serde_json::Value;

use super::backup::metrics;
use super::stage::{Stage, condition};
use super::support::success;
use super::writer::Writer;

/// An image of PostgreSQL whose server crashes.
const BROKEN: &str = "windlass-test-postgres:15-broken";
const DOCKERFILE: &str = "FROM postgres:15\n\
                          COPY --chmod=755 postgres /usr/lib/postgresql/15/bin/postgres\n";
const CRASH: &str = "#!/bin/sh\necho 'this build is broken' >&2\nkill -SEGV $$\n";
/// So often it is looked at afterwards, without a second attempt.
const RECONCILES: usize = 10;

/// The sum of all lines of the operator's metrics that begin so.
fn counted(stage: &Stage, line: &str) -> u64 {
    let text = metrics(stage);
    let lines: Vec<u64> = text
        .lines()
        .filter(|it| it.starts_with(line))
        .filter_map(|it| it.rsplit_once(' ')?.1.trim().parse().ok())
        .collect();
    assert!(!lines.is_empty(), "no {line} in\n{text}");
    lines.iter().sum()
}

fn rollbacks(stage: &Stage) -> u64 {
    counted(stage, "operator_rollbacks_total{kind=\"PostgresCluster\"}")
}

fn reconciles(stage: &Stage) -> u64 {
    counted(stage, "controller_runtime_reconcile_total{controller=\"postgrescluster\"")
}

/// When each server was started, by member.
fn starts(stage: &Stage) -> BTreeMap<String, String> {
    let names = ["db-1", "db-2", "db-3"].map(str::to_owned);
    names.map(|name| (name.clone(), stage.ask(&name, "select pg_postmaster_start_time()"))).into()
}

fn spec(more: &str) -> String {
    format!(r#"{{"instances": 3, "synchronous": {{"any": 1}}{more}}}"#)
}

/// A change with which the first member does not start: it is taken back, and the others do not notice. So many servers are
/// started again.
fn fails(stage: &Stage, writer: &Writer, more: &str, version: &str, restarted: usize) {
    let (before, primary, counted) = (starts(stage), stage.primary(), rollbacks(stage));
    let begun = Instant::now();
    stage.apply(&spec(more));
    let status = stage.until("the way back", |status| {
        let is_over = condition(status, "Stalled")["reason"] == "RolledBack" && status["readyInstances"] == 3;
        is_over && status["upgrade"]["failedRevision"]["version"] == version
    });
    let (took, gap) = (begun.elapsed(), writer.gap_since(begun));
    let (failed, after) = (&status["upgrade"]["failedRevision"], starts(stage));
    stage.note(&format!("{version} failed: {}", failed["reason"]));
    stage.note(&format!(
        "taken back after {:.1} s; no write for at most {:.2} s",
        took.as_secs_f32(),
        gap.as_secs_f32()
    ));
    let touched: Vec<&String> = before.iter().filter(|(name, at)| after[*name] != **at).map(|(name, _)| name).collect();
    assert_eq!(touched.len(), restarted, "only the first member was touched: {touched:?}");
    assert!(!touched.contains(&&primary), "{touched:?}");
    assert_eq!(stage.primary(), primary);
    assert_eq!(failed["rolledBackTo"], "postgres:15");
    assert_eq!(status["upgrade"]["desiredVersion"], version);
    assert_eq!(status["upgrade"]["currentVersion"], "postgres:15");
    assert_eq!(status["upgrade"]["lastKnownGood"]["version"], "postgres:15");
    assert_eq!(rollbacks(stage), counted + 1, "it is counted once");

    let looked = reconciles(stage);
    for number in 0..RECONCILES {
        let (label, seen) = (format!("touched=yes-{number}"), reconciles(stage));
        stage.machine.kubectl(&["label", "--overwrite", "postgrescluster", "db", &label]);
        stage.wait("another look", || reconciles(stage) > seen);
    }
    writer.advance(20);
    assert_eq!(starts(stage), after, "no server was started again");
    assert_eq!(stage.status()["upgrade"]["failedRevision"], *failed);
    assert_eq!(rollbacks(stage), counted + 1, "there was no second attempt");
    stage.note(&format!("no second attempt in {} reconciles", reconciles(stage) - looked));
}

#[test]
#[ignore = "cargo xtask scenario P4"]
fn p4_a_bad_upgrade_is_taken_back_and_not_tried_again() {
    let stage = Stage::with_three();
    let folder = stage.machine.dir.path().join("broken");
    fs::create_dir(&folder).expect("a folder of our own");
    for (name, text) in [("Dockerfile", DOCKERFILE), ("postgres", CRASH)] {
        fs::write(folder.join(name), text).expect("a file in a folder of our own");
    }
    success(stage.machine.windlass().args(["image", "build", BROKEN]).arg(&folder));
    stage.until("the first build is known to be good", |status| {
        status["upgrade"]["lastKnownGood"]["version"] == "postgres:15"
    });
    let writer = stage.writer();
    writer.advance(20);

    let too_much = r#", "parameters": {"shared_buffers": "900GB"}"#;
    fails(&stage, &writer, too_much, "postgres:15 shared_buffers=900GB", 1);
    fails(&stage, &writer, &format!(r#", "image": "{BROKEN}""#), BROKEN, 1);
    // Servers run on without it, and would not start the next time.
    fails(&stage, &writer, r#", "parameters": {"work_mem": "plenty"}"#, "postgres:15 work_mem=plenty", 0);

    // Something else that is asked for is tried.
    let begun = Instant::now();
    stage.apply(&spec(r#", "parameters": {"shared_buffers": "64MB"}"#));
    let status = stage.until("the new settings are known to be good", |status| {
        status["upgrade"]["lastKnownGood"]["version"] == "postgres:15 shared_buffers=64MB"
    });
    assert_eq!(status["upgrade"]["failedRevision"], Value::Null);
    assert_eq!(condition(&status, "Ready")["status"], "True");
    for member in starts(&stage).keys() {
        assert_eq!(stage.ask(member, "show shared_buffers"), "64MB", "{member}");
    }
    let (took, gap) = (begun.elapsed().as_secs_f32(), writer.gap_since(begun).as_secs_f32());
    stage.note(&format!("64MB are known to be good after {took:.1} s; no write for at most {gap:.2} s"));
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
    stage.machine.kubectl(&["delete", "postgrescluster", "db"]);
    stage.wait("the image is let go", || {
        let output = stage.machine.windlass().args(["image", "rm", BROKEN]).output();
        output.is_ok_and(|output| output.status.success())
    });
}
