//! Processes that use the processor are seen by `kubectl top` and make a Deployment grow, and shrink when they stop.

mod support;

use support::{TestCluster, eventually};

/// Works a part of the time while the ConfigMap says so; the part is small, for the sake of others on the machine.
const LOAD: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: load}
data: {level: high}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 1
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes: [{name: load, configMap: {name: load}}]
      containers:
      - name: worker
        image: host
        volumeMounts: [{name: load, mountPath: /load}]
        resources: {requests: {cpu: 50m, memory: 16Mi}}
        command:
        - /bin/sh
        - -c
        - |
          while true; do
            if [ $(cat /load/level) = high ]; then
              i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done
              sleep 0.05
            else
              sleep 3
            fi
          done
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: worker}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}
  minReplicas: 1
  maxReplicas: 2
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
";

/// What `kubectl top` prints, cut into words.
fn top(cluster: &TestCluster, arguments: &[&str]) -> Vec<Vec<String>> {
    let text = cluster.kubectl(&[&["top"], arguments, &["--no-headers"]].concat());
    text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// The number at the beginning of a word such as `250m` or `12Mi`.
fn number(word: &str) -> u64 {
    let digits: String = word.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{word} is no figure"))
}

fn replicas(cluster: &TestCluster) -> u64 {
    let deployment = cluster.object("deployment", "worker");
    deployment.and_then(|deployment| deployment["spec"]["replicas"].as_u64()).unwrap_or_default()
}

#[test]
fn real_work_is_measured_and_followed() {
    let cluster = TestCluster::up(&["--no-operators"]);
    let path = cluster.dir.path().join("load.yaml");
    std::fs::write(&path, LOAD).expect("the file is written");
    cluster.kubectl(&["apply", "-f", path.to_str().expect("a path in UTF-8")]);
    cluster.kubectl(&["wait", "pod", "-l", "app=worker", "--for=condition=Ready", "--timeout=60s"]);

    let pod = eventually("figures of the Pod", || {
        let output = cluster.kubectl_command().args(["top", "pods", "--no-headers"]).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = support::text(&output);
        if output.status.success() && text.contains("worker") { Ok(text) } else { Err(text) }
    });
    let words: Vec<&str> = pod.split_whitespace().collect();
    let (cpu, memory) = (number(words[1]), number(words[2]));
    assert!((10..2000).contains(&cpu) && words[1].ends_with('m'), "{pod}");
    assert!((0..100).contains(&memory) && words[2].ends_with("Mi"), "{pod}");
    let containers = top(&cluster, &["pods", "--containers"]);
    assert_eq!(containers[0][1], "worker", "{containers:?}");
    let nodes = top(&cluster, &["nodes"]);
    assert!(number(&nodes[0][1]) >= cpu / 2 && nodes[0][2].ends_with('%'), "{nodes:?}");
    assert!(number(&nodes[0][3]) > memory && nodes[0][4].ends_with('%'), "{nodes:?}");

    let grown = || if replicas(&cluster) == 2 { Ok(()) } else { Err(cluster.kubectl(&["describe", "hpa", "worker"])) };
    eventually("a second worker", grown);
    let described = cluster.kubectl(&["describe", "hpa", "worker"]);
    assert!(described.contains("SuccessfulRescale") && described.contains("ValidMetricFound"), "{described}");
    cluster.kubectl(&["patch", "configmap", "load", "--type=merge", "-p", r#"{"data": {"level": "low"}}"#]);
    let shrunk = || if replicas(&cluster) == 1 { Ok(()) } else { Err(cluster.kubectl(&["describe", "hpa", "worker"])) };
    eventually("a single worker", shrunk);
}
