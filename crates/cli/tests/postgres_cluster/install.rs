//! P1: from nothing to three servers, also when the operator is killed half-way.

use super::stage::{Stage, condition};
use super::support::eventually;

/// The process of the operator, killed: its Pod comes back by itself.
fn kill_operator(stage: &Stage) {
    let label = "windlass.dev/operator=postgres-operator";
    let all = ["-n", "windlass-system", "delete", "pod", "-l", label, "--grace-period=0", "--force", "--wait=false"];
    stage.machine.kubectl(&all);
}

#[test]
#[ignore = "cargo xtask scenario P1"]
fn p1_install_survives_the_death_of_the_operator() {
    let stage = Stage::new();
    stage.apply(r#"{"instances": 3, "synchronous": {"any": 1}}"#);
    eventually("the first workload", || {
        let sets = stage.machine.list(&["statefulsets"]);
        if sets.is_empty() { Err("no workload yet".to_owned()) } else { Ok(()) }
    });
    kill_operator(&stage);
    stage.note("the operator is killed after its first workload");
    stage.wait("data is made", || {
        stage.machine.kubectl(&["get", "lease", "db-primary", "-o", "yaml"]).contains("system-id: \"")
    });
    kill_operator(&stage);
    stage.note("the operator is killed while members are cloned");
    let status = stage.until_ready(3);
    stage.note("three servers are ready");

    let system = status["systemID"].as_str().expect("the status says which data it is").to_owned();
    assert_eq!((&status["timeline"], &status["primary"]), (&1.into(), &"db-1".into()), "it was promoted by nobody");
    assert!(status["currentVersion"].as_str().is_some_and(|version| version.starts_with("15.")), "{status}");
    assert_eq!(condition(&status, "Available")["status"], "True");
    for member in ["db-1", "db-2", "db-3"] {
        let own = stage.ask(member, "select system_identifier from pg_control_system()");
        assert_eq!(own, system, "{member} has the data of the cluster: it was made once");
        let log = stage.machine.kubectl(&["logs", &format!("{member}-0")]);
        assert_eq!(log.matches("action=Initialize").count(), usize::from(member == "db-1"), "{member}");
    }
}
