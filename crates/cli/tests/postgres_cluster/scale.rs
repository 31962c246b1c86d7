//! P13: more servers, and fewer, without a pause for writers.

use std::time::Instant;

use super::stage::{Stage, condition};
use super::support::failure;

#[test]
#[ignore = "cargo xtask scenario P13"]
fn p13_servers_come_and_go_under_load() {
    let stage = Stage::with_three();
    let writer = stage.writer();
    let grown = Instant::now();
    stage.apply(r#"{"instances": 5, "synchronous": {"any": 1}}"#);
    stage.until_ready(5);
    writer.advance(20);
    stage.note(&format!("five servers are ready; no write for at most {:.2} s", writer.gap_since(grown).as_secs_f32()));

    // The primary is among those that go.
    stage.machine.kubectl(&[
        "annotate",
        "--overwrite",
        "postgrescluster",
        "db",
        "postgres.windlass.dev/switchover=db-4",
    ]);
    stage.until("the switchover is done", |status| {
        status["primary"] == "db-4" && condition(status, "Ready")["status"] == "True"
    });
    let file = stage.machine.dir.path().join("refused.json");
    let spec = r#"{"spec": {"instances": 1}}"#;
    std::fs::write(&file, spec).expect("a file in a folder of our own");
    let refused =
        failure(stage.machine.kubectl_command().args(["patch", "postgrescluster", "db", "--type=merge", "-p", spec]));
    assert!(refused.contains("1 standbys cannot have a commit where there are 0"), "{refused}");
    stage.note("one server without a standby is refused");

    let shrunk = Instant::now();
    stage.apply(r#"{"instances": 2, "synchronous": {"any": 1}}"#);
    let status = stage.until_ready(2);
    assert!(status["primary"] == "db-1" || status["primary"] == "db-2", "{status}");
    writer.advance(20);
    stage.note(&format!("two servers are left; no write for at most {:.2} s", writer.gap_since(shrunk).as_secs_f32()));
    assert_eq!(stage.machine.list(&["pvc"]).len(), 5, "volumes stay");
    let primary = stage.primary();
    stage.wait("only the slot of the other server is left", || {
        stage.ask(&primary, "select count(*) from pg_replication_slots") == "1"
    });
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
}
