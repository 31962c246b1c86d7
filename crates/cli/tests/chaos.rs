//! `windlass chaos` on a running cluster: what it does, shows, ends and refuses.

mod support;

use serde_json::Value;
use support::{TestCluster, eventually, failure, success};

const PODS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: host, command: [/bin/sh, -c, "exec sleep 100000"]}]
"#;

fn restarts(cluster: &TestCluster) -> u64 {
    let pods = cluster.list(&["pods", "-l", "app=web"]);
    pods.iter().filter_map(|pod| pod["status"]["containerStatuses"][0]["restartCount"].as_u64()).sum()
}

#[test]
fn faults_are_made_shown_ended_and_refused() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let file = cluster.state().with_extension("yaml");
    std::fs::write(&file, PODS).expect("the folder of a test can be written to");
    cluster.kubectl(&["apply", "-f", file.to_str().expect("a path in UTF-8")]);
    cluster.wait_for_pods(2);

    let said = success(cluster.windlass().args(["chaos", "pause", "deploy/web", "--for", "30m"]));
    assert_eq!(
        said.lines().filter(|line| line.contains(": pause of web-") && line.contains("until ")).count(),
        2,
        "{said}"
    );
    let shown = success(cluster.windlass().args(["chaos", "ls"]));
    assert!(shown.contains("Active") && shown.contains("2 suffering"), "{shown}");
    assert!(cluster.kubectl(&["get", "chaos"]).contains("2 suffering"));
    let name = shown.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a name").to_owned();
    let stopped = success(cluster.windlass().args(["chaos", "stop", &name]));
    assert_eq!(stopped, format!("chaos/{name} stopped, 2 being undone\n"));

    success(cluster.windlass().args(["chaos", "kill", "-l", "app=web", "--one"]));
    eventually("one restart", || if restarts(&cluster) == 1 { Ok(()) } else { Err(restarts(&cluster).to_string()) });
    success(cluster.windlass().args(["chaos", "stop", "--all"]));

    let printed = success(cluster.windlass().args(["chaos", "disconnect", "deploy/web", "--from", "api", "--dry-run"]));
    assert!(printed.contains("apiServer"), "{printed}");
    for (arguments, why) in [
        (&["chaos", "pause", "nobody"][..], "no running Pod is meant"),
        (&["chaos", "pause", "web", "--for", "2h"], "a fault lasts an hour at most"),
        (&["chaos", "fill", "deploy/web", "--volume", "data"], "windlass.dev/chaos: disk"),
        (&["chaos", "disconnect", "deploy/web", "--from", "somewhere"], "is no other side of a cut"),
        (&["chaos", "stop", "unknown"], "not found"),
    ] {
        let said = failure(cluster.windlass().args(arguments));
        assert!(said.contains(why), "{arguments:?}: {said}");
    }

    // Who may do it is a matter of rights on the kind, as with any other.
    let may = |verb: &str| cluster.kubectl_command().args(["auth", "can-i", verb, "chaos", "--as", "jane"]).output();
    assert!(String::from_utf8_lossy(&may("create").expect("kubectl runs").stdout).starts_with("no"));
    cluster.kubectl(&["create", "role", "breaker", "--verb=create", "--resource=chaos.windlass.dev"]);
    cluster.kubectl(&["create", "rolebinding", "breaker", "--role=breaker", "--user=jane"]);
    assert!(String::from_utf8_lossy(&may("create").expect("kubectl runs").stdout).starts_with("yes"));
    let victims = |chaos: &Value| chaos["status"]["victims"].as_array().cloned().unwrap_or_default();
    let left: Vec<Value> = cluster.list(&["chaos"]).iter().flat_map(victims).collect();
    assert!(left.iter().all(|victim| victim["state"] != "Suffering"), "{left:#?}");
}
