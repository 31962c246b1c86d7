//! Three real PostgreSQL servers in a StatefulSet: ordered start, names, volumes, a killed server, a partitioned update.

mod support;

use support::{TestCluster, eventually};

fn example() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/postgres.yaml");
    path.to_str().expect("a plain path").to_owned()
}

/// Asks a server from inside of another Pod, by its name.
fn ask(cluster: &TestCluster, host: &str, statement: &str) -> String {
    let psql = ["psql", "-h", host, "-U", "postgres", "-Atqc", statement];
    let program = [&["exec", "db-2", "--", "env", "PGPASSWORD=correct-horse"], &psql[..]].concat();
    cluster.kubectl(&program).trim().to_owned()
}

fn field(cluster: &TestCluster, pod: &str, path: &str) -> String {
    cluster.kubectl(&["get", "pod", pod, "-o", &format!("jsonpath={{{path}}}")])
}

/// Kills the server's first process; with it goes the container, and so the connection that asked for it.
fn kill_server(cluster: &TestCluster, pod: &str) {
    let script = "kill -9 $(head -qn 1 $PGDATA/postmaster.pid $PGDATA/pgdata/postmaster.pid 2>/dev/null)";
    let _ = cluster.kubectl_command().args(["exec", pod, "--", "sh", "-c", script]).output();
}

#[test]
fn postgres_keeps_its_data_through_death_update_and_scaling() {
    let cluster = TestCluster::new();
    cluster.start(&["--no-operators", "-f", &example()]);
    let ready = |pod: &str| field(&cluster, pod, ".status.conditions[?(@.type==\"Ready\")].lastTransitionTime");
    let made = |pod: &str| field(&cluster, pod, ".metadata.creationTimestamp");
    assert!(ready("db-0") <= made("db-1") && ready("db-1") <= made("db-2"), "each waits for the one before it");

    ask(&cluster, "db-0.db", "create table t (x int); insert into t values (42)");
    assert_eq!(ask(&cluster, "db-0.db.default.svc.cluster.local", "select x from t"), "42");
    assert!(ask(&cluster, "db-any", "select version()").starts_with("PostgreSQL 15"));

    kill_server(&cluster, "db-0");
    eventually("the killed server to be back", || {
        let state = field(&cluster, "db-0", ".status.containerStatuses[0]['restartCount','ready']");
        if state == "1 true" { Ok(()) } else { Err(state) }
    });
    assert_eq!(ask(&cluster, "db-0.db", "select x from t"), "42", "it has its data");

    let update = r#"{"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}, "template": {"metadata": {"annotations": {"v": "2"}}}}}"#;
    cluster.kubectl(&["patch", "statefulset", "db", "-p", update]);
    cluster.kubectl(&["rollout", "status", "statefulset/db", "--timeout=120s"]);
    let versions = ["db-0", "db-1", "db-2"].map(|pod| field(&cluster, pod, ".metadata.annotations.v"));
    assert_eq!(versions, ["", "", "2"], "only those from the partition on");

    cluster.kubectl(&["scale", "statefulset", "db", "--replicas=1"]);
    cluster.kubectl(&["wait", "pod/db-1", "pod/db-2", "--for=delete", "--timeout=60s"]);
    assert_eq!(cluster.kubectl(&["get", "pvc", "-o", "name"]).lines().count(), 3, "claims stay");
    cluster.kubectl(&["scale", "statefulset", "db", "--replicas=3"]);
    cluster.kubectl(&["rollout", "status", "statefulset/db", "--timeout=120s"]);
    assert_eq!(ask(&cluster, "db-0.db", "select x from t"), "42");
}
