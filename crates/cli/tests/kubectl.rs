//! kubectl, unchanged, does what it does on Kubernetes.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use support::{TestCluster, eventually, failure, success};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: host
        command: [/bin/sh, -c, 'echo started $COLOUR; exec sleep 100000']
        env: [{name: COLOUR, value: blue}]
";

fn write(cluster: &TestCluster, name: &str, text: &str) -> String {
    let path = cluster.dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn memcached(size: u32) -> String {
    format!(
        "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata: {{name: sample}}\nspec: {{size: {size}}}\n"
    )
}

fn wait_for_size(cluster: &TestCluster, size: u64) {
    eventually(&format!("size {size}"), || {
        let deployment = cluster.object("deploy", "sample").ok_or("no Deployment")?;
        if deployment["spec"]["replicas"] == size { Ok(()) } else { Err(deployment["spec"]["replicas"].to_string()) }
    });
}

/// A command that goes on printing, ended with the test.
struct Following(Child);

impl Following {
    fn start(cluster: &TestCluster, arguments: &[&str]) -> Self {
        let command = &mut cluster.kubectl_command();
        // A word that never comes fails the test instead of hanging it.
        Self(command.args(arguments).arg("--request-timeout=60s").stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Reads lines until one contains the word.
    fn until(&mut self, word: &str) -> String {
        let output = self.0.stdout.as_mut().unwrap();
        let mut lines = BufReader::new(output).lines();
        lines.find_map(|line| line.ok().filter(|line| line.contains(word))).unwrap_or_else(|| panic!("no {word}"))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn an_operators_resource_is_a_first_class_citizen() {
    let cluster = TestCluster::with_example();
    cluster.wait_for_pods(3);
    let table = cluster.kubectl(&["get", "memcached,deploy,rs,po,svc", "-o", "wide"]);
    for word in [
        "memcached.cache.example.com/sample",
        "deployment.apps/sample",
        "replicaset.apps/sample",
        "pod/sample",
        "service/kubernetes",
        "Running",
        "3/3",
    ] {
        assert!(table.contains(word), "no {word} in\n{table}");
    }
    cluster.kubectl(&["wait", "memcached/sample", "--for=condition=Ready", "--timeout=60s"]);
    cluster.kubectl(&["scale", "memcached/sample", "--replicas=5"]);
    cluster.wait_for_pods(5);
    assert_eq!(cluster.object("memcached", "sample").unwrap()["spec"]["size"], 5);
    let explained = cluster.kubectl(&["explain", "memcached.spec"]);
    assert!(explained.contains("size") && explained.contains("<integer>"), "{explained}");
    let described = cluster.kubectl(&["describe", "memcached", "sample"]);
    assert!(described.contains("Events:") && described.contains("Nodes:"), "{described}");

    for (kind, patch) in [
        ("merge", r#"{"spec":{"size":2}}"#),
        ("json", r#"[{"op":"test","path":"/spec/size","value":2},{"op":"replace","path":"/spec/size","value":1}]"#),
    ] {
        cluster.kubectl(&["patch", "memcached", "sample", "--type", kind, "-p", patch]);
    }
    wait_for_size(&cluster, 1);
    let refused =
        failure(cluster.kubectl_command().args(["patch", "memcached", "sample", "--type=strategic", "-p", "{}"]));
    assert!(
        refused.contains("415") || refused.contains("media type") || refused.contains("not supported"),
        "{refused}"
    );
    cluster.wait_for_pods(1);
}

#[test]
fn apply_edit_diff_and_dry_run() {
    let cluster = TestCluster::up(&[]);
    let file = write(&cluster, "m.yaml", &memcached(1));
    assert!(cluster.kubectl(&["apply", "--dry-run=server", "-f", &file]).contains("created (server dry run)"));
    assert!(cluster.object("memcached", "sample").is_none());
    assert!(cluster.kubectl(&["apply", "-f", &file]).contains("created"));
    assert!(cluster.kubectl(&["apply", "-f", &file]).contains("unchanged"));
    let changed = write(&cluster, "m.yaml", &memcached(2));
    let output = cluster.kubectl_command().args(["diff", "-f", &changed]).output().unwrap();
    let difference = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", support::text(&output));
    assert!(difference.contains("-  size: 1") && difference.contains("+  size: 2"), "{difference}");
    assert!(cluster.kubectl(&["apply", "-f", &changed]).contains("configured"));
    assert!(
        cluster
            .kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &changed])
            .contains("serverside-applied")
    );
    let editor = write(&cluster, "editor.sh", "#!/bin/sh\nsed -i 's/size: 2/size: 1/' \"$1\"\n");
    success(std::process::Command::new("chmod").args(["+x", &editor]));
    success(cluster.kubectl_command().env("KUBE_EDITOR", &editor).args(["edit", "memcached", "sample"]));
    assert_eq!(cluster.object("memcached", "sample").unwrap()["spec"]["size"], 1);
    // Two managers, one field: the second is told who owns it.
    let said =
        failure(cluster.kubectl_command().args(["apply", "--server-side", "--field-manager=other", "-f", &changed]));
    assert!(said.contains("conflict") && said.contains(".spec.size"), "{said}");
}

#[test]
fn deployments_roll_out_and_back() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let file = write(&cluster, "web.yaml", WEB);
    cluster.kubectl(&["apply", "-f", &file]);
    cluster.kubectl(&["rollout", "status", "deploy/web", "--timeout=120s"]);
    cluster.kubectl(&[
        "patch",
        "deploy",
        "web",
        "-p",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"COLOUR","value":"red"}]}]}}}}"#,
    ]);
    cluster.kubectl(&["rollout", "status", "deploy/web", "--timeout=120s"]);
    let pods = cluster.wait_for_pods(2);
    let containers = pods[0]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1, "a strategic patch merges containers by name");
    assert_eq!(containers[0]["env"][0]["value"], "red");
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    let mut logs = Following::start(&cluster, &["logs", "-f", name]);
    assert_eq!(logs.until("started"), "started red");
    assert_eq!(
        cluster
            .kubectl(&["rollout", "history", "deploy/web"])
            .lines()
            .filter(|line| line.starts_with(['1', '2']))
            .count(),
        2
    );
    cluster.kubectl(&["rollout", "undo", "deploy/web"]);
    cluster.kubectl(&["rollout", "status", "deploy/web", "--timeout=120s"]);
    let pods = cluster.wait_for_pods(2);
    assert_eq!(pods[0]["spec"]["containers"][0]["env"][0]["value"], "blue");
    assert!(cluster.kubectl(&["describe", "deploy", "web"]).contains("ScalingReplicaSet"));
}

#[test]
fn deletion_cascades_as_asked() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let file = write(&cluster, "web.yaml", WEB);
    cluster.kubectl(&["apply", "-f", &file]);
    cluster.wait_for_pods(2);
    cluster.kubectl(&["delete", "deploy", "web", "--cascade=orphan"]);
    let sets = cluster.list(&["rs"]);
    assert_eq!(sets.len(), 1);
    assert!(sets[0]["metadata"]["ownerReferences"].is_null(), "an orphan has no owner");
    cluster.wait_for_pods(2);
    // The same Deployment takes them back, without a new Pod.
    let before: Vec<String> = cluster.ready_pods().iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
    cluster.kubectl(&["apply", "-f", &file]);
    cluster.kubectl(&["rollout", "status", "deploy/web", "--timeout=120s"]);
    let mut after: Vec<String> =
        cluster.wait_for_pods(2).iter().map(|pod| pod["metadata"]["uid"].to_string()).collect();
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(after, before);
    cluster.kubectl(&["delete", "deploy", "web", "--cascade=foreground", "--timeout=120s"]);
    assert!(cluster.list(&["rs,pods"]).is_empty(), "foreground deletion returns when the dependents are gone");
}

#[test]
fn watches_config_maps_and_permissions() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let mut watch = Following::start(&cluster, &["get", "configmaps", "-w"]);
    cluster.kubectl(&["create", "configmap", "settings", "--from-literal=colour=blue"]);
    assert!(watch.until("settings").contains('1'));
    assert_eq!(cluster.object("configmap", "settings").unwrap()["data"]["colour"], "blue");
    assert_eq!(cluster.kubectl(&["auth", "can-i", "create", "deployments"]).trim(), "yes");
    let nobody = ["auth", "can-i", "list", "secrets", "--as=system:serviceaccount:default:default"];
    let output = cluster.kubectl_command().args(nobody).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "no");
    cluster.kubectl(&["create", "namespace", "gone"]);
    cluster.kubectl(&["-n", "gone", "create", "configmap", "inside"]);
    cluster.kubectl(&["delete", "namespace", "gone", "--timeout=60s"]);
    assert!(cluster.object("namespace", "gone").is_none());
    assert!(cluster.kubectl(&["api-resources"]).contains("deployments"));
    assert!(cluster.kubectl(&["version"]).contains("Server Version: v1.36"));
}
