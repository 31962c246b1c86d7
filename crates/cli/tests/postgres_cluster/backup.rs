//! P7: one backup at a time; one that is cut off or late fails, says why and leaves nothing; the next one succeeds.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use super::stage::{Blow, Stage};
use super::storage::{ask_for_backup, base_backups, folder, stage_with_archive, target, until_over};
use super::support::eventually;

/// How often processes are looked for.
const LOOK: Duration = Duration::from_millis(3);

/// The process that copies the data for a backup of this name, as soon as there is one, stopped.
fn caught(name: &str) -> u32 {
    for _ in 0..60_000 {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let text = String::from_utf8_lossy(&words);
            if text.starts_with("pg_basebackup") && text.contains(&format!("--label\0{name}-")) {
                signal("-STOP", pid);
                return pid;
            }
        }
        thread::sleep(LOOK);
    }
    panic!("nothing copies the data for {name}");
}

fn signal(signal: &str, pid: u32) {
    Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill runs");
}

/// What the operator counts.
pub(crate) fn metrics(stage: &Stage) -> String {
    let label = "windlass.dev/operator=postgres-operator";
    let address = stage.machine.kubectl(&[
        "-n",
        "windlass-system",
        "get",
        "pod",
        "-l",
        label,
        "-o",
        "jsonpath={.items[0].status.podIP}",
    ]);
    let mut stream = TcpStream::connect(format!("{address}:8080")).expect("the operator's metrics");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n")
        .expect("a request is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

fn counted(text: &str, series: &str) -> f64 {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok()).unwrap_or_default()
}

fn two_at_once(stage: &Stage) {
    ask_for_backup(stage, "one", 600);
    ask_for_backup(stage, "two", 600);
    let (one, two) = (until_over(stage, "one"), until_over(stage, "two"));
    for backup in [&one, &two] {
        assert_eq!(backup["phase"], "Succeeded", "{backup}");
        assert_eq!((&backup["takenFrom"], &backup["timeline"]), (&"db-2".into(), &1.into()), "the standby is copied");
        for field in ["applicationVersion", "location", "begin", "end", "checksum", "dataID", "sizeBytes"] {
            assert!(!backup[field].is_null(), "{field} in {backup}");
        }
    }
    let text = |backup: &Value, field: &str| backup[field].as_str().unwrap_or_default().to_owned();
    let mut spans = [&one, &two].map(|it| (text(it, "startedAt"), text(it, "completedAt")));
    spans.sort();
    assert!(spans[0].1 <= spans[1].0, "one after the other: {spans:?}");
    stage.note(&format!(
        "two at once: one after the other, {} s and {} s",
        one["durationSeconds"], two["durationSeconds"]
    ));
}

fn cut_off(stage: &Stage) {
    ask_for_backup(stage, "cut", 600);
    let pid = caught("cut");
    let source = stage.until_of("backups.windlass.dev", "cut", |status| status["phase"] == "Running");
    stage.strike("db-2", Blow::Kill);
    signal("-CONT", pid);
    let cut = until_over(stage, "cut");
    assert_eq!(cut["phase"], "Failed", "{source} {cut}");
    stage.note(&format!("its source was killed: {}", cut["error"].as_str().unwrap_or_default().replace('\n', "; ")));
    stage.until_ready(2);
}

fn late(stage: &Stage) {
    // Long enough for its Pod to begin on a busy machine: what is shown is how it ends.
    ask_for_backup(stage, "late", 20);
    caught("late");
    let late = until_over(stage, "late");
    assert_eq!(late["phase"], "Failed", "{late}");
    let ready = late["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready").cloned();
    assert_eq!(ready.unwrap_or_default()["reason"], "DeadlineExceeded", "{late}");
    stage.note(&format!("its storage was too slow: {}", late["error"]));
}

fn by_schedule(stage: &Stage) {
    stage.put(&json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BackupSchedule", "metadata": {"name": "often"},
        "spec": {"target": target("db"), "schedule": "* * * * *", "immediate": true, "retention": {"keep": 1}},
    }));
    let own = |phase: &str| {
        let all = stage.machine.list(&["backups.windlass.dev"]);
        let own = all.into_iter().filter(|it| it["spec"]["schedule"] == "often" && it["status"]["phase"] == phase);
        own.map(|it| it["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let first = eventually("the first backup of the schedule", || own("Succeeded").pop().ok_or("none yet".to_owned()));
    eventually("only the next one is kept", || match &own("Succeeded")[..] {
        [only] if *only != first => Ok(()),
        other => Err(format!("{other:?}")),
    });
    stage.machine.kubectl(&["patch", "backupschedule", "often", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    let (whole, rest) = base_backups(&folder(stage));
    assert_eq!(rest, Vec::<String>::new(), "nothing is left of those that failed");
    assert!(whole.iter().all(|it| !it.starts_with(&first)), "{first} is not kept: {whole:?}");
    assert!(whole.iter().any(|it| it.starts_with("one-")), "those that people asked for are: {whole:?}");
    stage.note(&format!("by schedule, one is kept: {whole:?}"));
}

#[test]
#[ignore = "cargo xtask scenario P7"]
fn p7_one_backup_at_a_time_and_the_next_one_succeeds() {
    let stage = stage_with_archive(2, json!({}));
    let writer = stage.writer();
    two_at_once(&stage);
    let text = metrics(&stage);
    assert_eq!(counted(&text, r#"operator_backups_total{method="basebackup",result="succeeded"}"#), 2.0, "{text}");
    cut_off(&stage);
    late(&stage);
    by_schedule(&stage);
    let text = metrics(&stage);
    assert_eq!(counted(&text, r#"operator_backups_total{method="basebackup",result="failed"}"#), 2.0);
    let last = stage.machine.object("backupschedule", "often").unwrap_or_default()["status"].clone();
    let told = counted(
        &text,
        r#"operator_backup_last_success_timestamp_seconds{kind="PostgresCluster",namespace="default",name="db"}"#,
    );
    stage.note(&format!("last success: {} by status, {told} by metric", last["lastSuccessfulTime"]));
    assert!(told > 1_700_000_000.0, "{told}");
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there"));
}
