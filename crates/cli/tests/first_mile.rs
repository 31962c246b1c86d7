//! The main job, as a newcomer sees it: an operator keeps real processes alive.

mod support;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use support::{TestCluster, eventually, example, listener, memcached, success};

fn address(pod: &Value) -> String {
    format!("{}:11211", pod["status"]["podIP"].as_str().expect("a Pod has an address"))
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().expect("an object has a name").to_owned()
}

fn processes_of(pods: &[Value]) -> Vec<u32> {
    pods.iter().map(|pod| listener(&address(pod)).expect("a memcached listens on the Pod's address")).collect()
}

fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// When a process started, in ticks since the machine did.
fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19).map(str::to_owned)
}

fn kill(pid: u32) {
    success(Command::new("kill").args(["-9", &pid.to_string()]));
}

#[test]
fn three_servers_answer_and_the_screen_says_so() {
    let cluster = TestCluster::new();
    let screen = cluster.start(&["-f", example().to_str().unwrap()]);
    let private = std::fs::metadata(cluster.state()).is_ok_and(|state| state.permissions().mode() & 0o077 == 0);
    assert!(private, "what Pods write is nobody else's");
    let pods = cluster.wait_for_pods(3);
    for pod in &pods {
        assert!(screen.contains(&address(pod)), "{} is not on the screen:\n{screen}", address(pod));
        assert!(memcached(&address(pod), "version\r\n", "\r\n").unwrap().starts_with("VERSION 1.6"));
    }
    // Each has memory of its own: what one stores, the next does not have.
    let (first, second) = (address(&pods[0]), address(&pods[1]));
    assert_eq!(memcached(&first, "set k 0 0 5\r\nhello\r\n", "\r\n").unwrap(), "STORED\r\n");
    assert_eq!(memcached(&first, "get k\r\n", "END\r\n").unwrap(), "VALUE k 0 5\r\nhello\r\nEND\r\n");
    assert_eq!(memcached(&second, "get k\r\n", "END\r\n").unwrap(), "END\r\n");

    let resource = cluster.object("memcached", "sample").unwrap();
    let mut expect: Vec<String> = pods.iter().map(name).collect();
    expect.sort();
    let nodes: Vec<String> =
        resource["status"]["nodes"].as_array().unwrap().iter().map(|node| node.as_str().unwrap().to_owned()).collect();
    assert_eq!(nodes, expect);
    assert!(screen.contains("memcached.cache.example.com/sample ready"), "{screen}");
}

#[test]
fn drift_is_put_right_and_events_say_so() {
    let cluster = TestCluster::with_example();
    let pods = cluster.wait_for_pods(3);

    // A process dies.
    let victim = listener(&address(&pods[0])).unwrap();
    kill(victim);
    eventually("a new process in the same Pod", || match listener(&address(&pods[0])) {
        Some(pid) if pid != victim => Ok(()),
        other => Err(format!("{other:?}")),
    });
    eventually("the restart in the Pod's status", || {
        let pod = cluster.object("pod", &name(&pods[0])).ok_or("no Pod")?;
        let count = pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0);
        if count == 1 { Ok(()) } else { Err(format!("{count} restarts")) }
    });

    // A Pod is deleted.
    cluster.kubectl(&["delete", "pod", &name(&pods[1])]);
    let after = cluster.wait_for_pods(3);
    assert!(!after.iter().any(|pod| name(pod) == name(&pods[1])));

    // The Deployment's size is edited.
    cluster.kubectl(&["scale", "deployment/sample", "--replicas=5"]);
    eventually("the declared size", || {
        let deployment = cluster.object("deployment", "sample").ok_or("no Deployment")?;
        if deployment["spec"]["replicas"] == 3 { Ok(()) } else { Err(deployment["spec"]["replicas"].to_string()) }
    });
    cluster.wait_for_pods(3);

    // The Deployment is deleted.
    let before = cluster.object("deployment", "sample").unwrap()["metadata"]["uid"].clone();
    cluster.kubectl(&["delete", "deployment", "sample"]);
    eventually("a new Deployment", || match cluster.object("deployment", "sample") {
        Some(deployment) if deployment["metadata"]["uid"] != before => Ok(()),
        other => Err(format!("{other:?}")),
    });
    cluster.wait_for_pods(3);
    let events = cluster.kubectl(&["events", "--for", "memcached/sample"]);
    assert!(events.contains("Deployment"), "no event tells of the Deployment:\n{events}");
}

#[test]
fn the_api_server_asks_the_operator_by_its_service() {
    let cluster = TestCluster::with_example();
    cluster.wait_for_pods(3);
    let patch = r#"--patch={"spec": {"image": "memcached:latest"}}"#;
    eventually("a warning by the operator", || {
        let mut command = cluster.kubectl_command();
        let output = command.args(["patch", "memcached", "sample", "--dry-run=server", "--type=merge", patch]).output();
        let said = String::from_utf8_lossy(&output.expect("kubectl runs").stderr).into_owned();
        let warning = "Warning: memcached:latest may become another image: name a version";
        if said.contains(warning) { Ok(()) } else { Err(said) }
    });
    let explained = cluster.kubectl(&["explain", "memcached.spec.size"]);
    assert!(explained.contains("How many memcached processes to run."), "{explained}");
    let refusal = cluster.kubectl_command().args(["scale", "memcached/sample", "--replicas=17"]).output();
    let refusal = String::from_utf8_lossy(&refusal.expect("kubectl runs").stderr).into_owned();
    assert!(refusal.contains("should be less than or equal to 16"), "{refusal}");
}

#[test]
fn the_servers_outlive_their_operator_and_end_with_the_resource() {
    let cluster = TestCluster::with_example();
    let before = processes_of(&cluster.wait_for_pods(3));
    let operators = ["-n", "windlass-system"];
    let (deployment, its_pods) = ("deployment/memcached-operator", "windlass.dev/operator=memcached-operator");
    cluster.kubectl(&[&operators[..], &["scale", deployment, "--replicas=0"]].concat());
    cluster.kubectl(&[&operators[..], &["wait", "pod", "-l", its_pods, "--for=delete", "--timeout=60s"]].concat());
    assert_eq!(processes_of(&cluster.wait_for_pods(3)), before, "the same processes run without the operator");
    cluster.kubectl(&[&operators[..], &["scale", deployment, "--replicas=1"]].concat());

    cluster.kubectl(&["delete", "memcached", "sample"]);
    eventually("no Pod", || {
        let pods = cluster.list(&["pods"]);
        if pods.is_empty() { Ok(()) } else { Err(format!("{} Pods", pods.len())) }
    });
    for pid in before {
        assert!(!alive(pid), "process {pid} is left behind");
    }
}

#[test]
fn a_killed_cluster_finds_its_processes_again_and_loses_no_object() {
    let cluster = TestCluster::with_example();
    let before = processes_of(&cluster.wait_for_pods(3));
    let starts = before.iter().map(|pid| start_time(*pid)).collect::<Vec<_>>();
    cluster.kubectl(&["create", "configmap", "kept", "--from-literal=a=b"]);
    let kept = cluster.object("configmap", "kept").unwrap();

    kill(cluster.server_pid());
    assert!(before.iter().all(|pid| alive(*pid)), "Pods wait for the next start");

    cluster.start(&[]);
    assert_eq!(cluster.object("configmap", "kept").unwrap(), kept);
    let pods = cluster.wait_for_pods(3);
    assert_eq!(processes_of(&pods), before);
    assert_eq!(before.iter().map(|pid| start_time(*pid)).collect::<Vec<_>>(), starts, "not only the same numbers");
    for pod in &pods {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
        memcached(&address(pod), "version\r\n", "\r\n").unwrap();
    }
    // What is found again is tended like before.
    kill(before[0]);
    eventually("the killed program to be started again", || {
        let now = processes_of(&cluster.wait_for_pods(3));
        if now.len() == 3 && !now.contains(&before[0]) { Ok(()) } else { Err(format!("{now:?}")) }
    });
}

#[test]
fn down_ends_what_a_killed_cluster_left() {
    let cluster = TestCluster::with_example();
    let before = processes_of(&cluster.wait_for_pods(3));
    kill(cluster.server_pid());
    success(cluster.windlass().arg("down"));
    for pid in before {
        assert!(!alive(pid), "process {pid} is left behind");
    }
}

#[test]
fn up_tells_that_the_cluster_ended_while_it_waited() {
    let cluster = TestCluster::new();
    let file = cluster.dir.path().join("pod.yaml");
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: never, annotations: {windlass.dev/fake-ready-seconds: never}}, \
               spec: {containers: [{name: c, image: c}]}}";
    std::fs::write(&file, pod).unwrap();
    let mut up = cluster.windlass();
    up.args(["up", "--detach", "--no-operators", "--profile", "workloads", "-f", file.to_str().unwrap()]);
    let up = up.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the Pod to be there", || {
        let is_there = cluster.state().join("kubeconfig").exists() && cluster.object("pod", "never").is_some();
        if is_there { Ok(()) } else { Err("no Pod".to_owned()) }
    });
    kill(cluster.server_pid());
    let output = up.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the cluster ended by itself (signal: 9"), "{said}");
    assert!(said.contains("windlass.log"), "{said}");
}

#[test]
fn down_ends_everything() {
    let cluster = TestCluster::with_example();
    let mut processes = processes_of(&cluster.wait_for_pods(3));
    processes.push(cluster.server_pid());
    success(cluster.windlass().arg("down"));
    for pid in processes {
        assert!(!alive(pid), "process {pid} is left behind");
    }
}

#[test]
fn nothing_of_it_needs_root() {
    let cluster = TestCluster::ordinary();
    cluster.start(&["-f", example().to_str().unwrap()]);
    let pods = cluster.wait_for_pods(3);
    for pod in &pods {
        assert!(memcached(&address(pod), "version\r\n", "\r\n").unwrap().starts_with("VERSION 1.6"));
    }
    let mut processes = processes_of(&pods);
    assert_eq!(processes.len(), 3);
    processes.push(cluster.server_pid());
    success(cluster.windlass().args(["down", "--purge"]));
    for pid in processes {
        assert!(!alive(pid), "process {pid} is left behind");
    }
    assert!(!cluster.state().exists(), "the folder is left behind");
}
