//! P16: a cluster is let go and runs on, is taken over, is deleted and leaves its data, and is deleted as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::{Value, json};

use super::stage::{NAME, Stage, condition};
use super::support::success;
use super::writer::Writer;

const MEMBERS: [&str; 3] = ["db-1", "db-2", "db-3"];
/// All kinds of which a cluster of servers has objects.
const KINDS: &str = "statefulsets,pods,persistentvolumeclaims,services,secrets,configmaps,serviceaccounts,roles,rolebindings,\
                     leases,poddisruptionbudgets,controllerrevisions,endpointslices,persistentvolumes";

fn spec(policy: &str) -> String {
    format!(r#"{{"instances": 3, "synchronous": {{"any": 1}}, "deletionPolicy": "{policy}"}}"#)
}

/// The processes of each server.
fn processes(stage: &Stage) -> BTreeMap<&str, BTreeSet<u32>> {
    MEMBERS.iter().map(|member| (*member, stage.processes(member).into_iter().collect())).collect()
}

/// The supervisor and the server of each member: what of `before` still runs. Servers start and end processes of their own.
fn still(stage: &Stage, before: &BTreeMap<&str, BTreeSet<u32>>) -> Vec<usize> {
    let now = processes(stage);
    before.iter().map(|(member, pids)| pids.intersection(&now[member]).count()).collect()
}

fn starts(stage: &Stage) -> Vec<String> {
    MEMBERS.iter().map(|member| stage.ask(member, "select pg_postmaster_start_time()")).collect()
}

/// All there is of these kinds, by kind and name.
fn inventory(stage: &Stage) -> BTreeSet<String> {
    let lines = stage.machine.kubectl(&["get", KINDS, "-o", "name"]);
    lines.lines().map(str::to_owned).collect()
}

/// What has a cluster for its owner.
fn owned(stage: &Stage) -> Vec<String> {
    let all = stage.machine.list(&[KINDS]);
    let owners = |object: &Value| object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
    let is_owned = |object: &&Value| owners(object).iter().any(|owner| owner["kind"] == "PostgresCluster");
    let title = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    all.iter().filter(is_owned).map(title).collect()
}

/// Nobody may take owners away from Services.
fn forbid(stage: &Stage) {
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"], "operations": ["UPDATE"]}]);
    let expression = "has(object.metadata.ownerReferences) || !has(oldObject.metadata.ownerReferences)";
    stage.put(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "owned"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "failurePolicy": "Fail",
            "validations": [{"expression": expression, "message": "Services keep their owners"}]},
    }));
    stage.put(&json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "owned"}, "spec": {"policyName": "owned", "validationActions": ["Deny"]},
    }));
}

/// How many rows there are, by the primary.
fn rows(stage: &Stage) -> usize {
    let pod = format!("{}-0", stage.primary());
    let psql = ["psql", "-h", "/run/postgresql", "-U", "postgres", "-Atqc", "select count(*) from log", "app"];
    let answer = stage.machine.kubectl(&[&["exec", &pod, "--"], &psql[..]].concat());
    answer.trim().parse().expect("a number")
}

fn delete(stage: &Stage) {
    stage.machine.kubectl(&["delete", "postgrescluster", NAME, "--timeout=120s"]);
}

/// The resource is deleted while a policy forbids to let go, and then does not.
fn is_let_go(stage: &Stage, writer: &Writer) {
    let (pids, started) = (processes(stage), starts(stage));
    let begun = Instant::now();
    forbid(stage);
    stage.machine.kubectl(&["delete", "postgrescluster", NAME, "--wait=false"]);
    let status =
        stage.until("the deletion is blocked", |status| condition(status, "DeletionBlocked")["status"] == "True");
    let blocked = condition(&status, "DeletionBlocked");
    assert_eq!(blocked["reason"], "ReleaseFailed");
    assert!(blocked["message"].as_str().is_some_and(|it| it.contains("Services keep their owners")), "{blocked}");
    stage.note(&format!("it cannot be let go, and says so: {}", blocked["message"]));
    stage.machine.kubectl(&["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "owned"]);
    stage.wait("it is let go", || stage.resource().is_null());
    assert_eq!(owned(stage), Vec::<String>::new());
    writer.advance(50);
    assert!(still(stage, &pids).iter().all(|count| *count >= 2), "the same processes serve");
    assert_eq!(starts(stage), started);
    stage.note(&format!(
        "let go, and the same processes serve; no write for at most {:.2} s",
        writer.gap_since(begun).as_secs_f32()
    ));
}

#[test]
#[ignore = "cargo xtask scenario P16"]
fn p16_what_is_deleted_goes_stays_or_runs_on_as_asked_for() {
    let stage = Stage::new();
    let bare = inventory(&stage);
    stage.apply(&spec("Orphan"));
    stage.until_ready(3);
    stage.note("three servers are ready");
    let writer = stage.writer();
    writer.advance(20);
    let (started, password) = (starts(&stage), stage.password("app"));

    let file = stage.machine.dir.path().join("cluster.json");
    let plan = success(stage.machine.windlass().args(["plan", "--delete", "-f"]).arg(&file));
    assert!(plan.contains("StatefulSet default/db-1"), "{plan}");
    assert!(!plan.contains("- StatefulSet") && !plan.contains("- Secret"), "nothing that runs would go: {plan}");
    stage.note("the plan of the deletion says what would be let go");

    is_let_go(&stage, &writer);
    let begun = Instant::now();
    stage.apply(&spec("Retain"));
    stage.until_ready(3);
    writer.advance(50);
    assert_eq!(starts(&stage), started, "no server was started again");
    assert_eq!(stage.password("app"), password, "nobody has to learn a new password");
    assert!(owned(&stage).len() > 10, "{:?}", owned(&stage));
    stage.note(&format!(
        "taken over by a new resource; no write for at most {:.2} s",
        writer.gap_since(begun).as_secs_f32()
    ));

    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there, by one writer at a time"));
    delete(&stage);
    stage.wait("all but the data is gone", || {
        let left: Vec<String> = inventory(&stage).difference(&bare).cloned().collect();
        left.iter().all(|name| name.starts_with("persistentvolume")) && left.len() == 6
    });
    stage.note("deleted with the policy Retain: three claims and their volumes are left");

    stage.apply(&spec("Delete"));
    stage.until_ready(3);
    let rows = rows(&stage);
    assert!(rows >= count, "{rows} of {count}");
    stage.note(&format!("a cluster of the same name goes on with {rows} rows"));
    stage.wait("the claims go with their servers", || {
        let claims = stage.machine.list(&["persistentvolumeclaims"]);
        claims.iter().all(|claim| !claim["metadata"]["ownerReferences"].is_null())
    });
    delete(&stage);
    stage.wait("nothing is left", || inventory(&stage).is_subset(&bare));
    stage.note("deleted with the policy Delete: nothing is left");
}
