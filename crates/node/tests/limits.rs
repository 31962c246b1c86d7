//! Limits of containers, held by the kernel's control groups and by the node: the same Pods both ways.
//! `cargo test -p windlass-node --test limits [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;
mod victim;

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, LogParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use windlass_cluster::{Cluster, ClusterConfig};

use ground::{Test, config, create, ended, eventually, processes, shell, unique, until, until_processes};
use victim::{connect, spawn, spawn_surviving};

const TESTS: &[Test] = &[
    ("a_container_that_takes_more_memory_than_it_may_is_ended", || Box::pin(too_much_memory())),
    ("a_container_gets_no_more_of_the_processors_than_it_may_have", || Box::pin(too_much_processor())),
    ("what_is_run_in_a_container_counts_and_ends_with_it", || Box::pin(run_inside())),
    ("limits_hold_for_a_container_that_outlived_its_cluster", || Box::pin(survivor())),
    ("a_killed_cluster_leaves_nothing_once_its_pods_gave_up", || Box::pin(left_alone())),
    ("the_next_cluster_removes_what_a_killed_one_left", || Box::pin(swept())),
    ("groups_outlive_a_killed_cluster_with_their_containers", || Box::pin(killed_cluster())),
];

fn main() {
    victim::run(TESTS);
}

/// Runs a test on a cluster with control groups, if this user has some, and on one without.
async fn both_ways(test: impl AsyncFn(Api<Pod>, bool)) {
    for cgroups in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(ClusterConfig { cgroups, ..config(directory.path()) }).await.unwrap();
        let nodes: Api<Node> = Api::all(cluster.client());
        let is_there =
            |node: Option<&Node>| node.is_some_and(|node| node.annotations().contains_key("windlass.dev/limits"));
        let node = await_condition(nodes, "windlass", is_there).await.unwrap().unwrap();
        let limits = &node.annotations()["windlass.dev/limits"];
        let by_kernel = limits.starts_with("control groups");
        if by_kernel == cgroups {
            // By the way that can be upgraded to a stream.
            test(Api::default_namespaced(connect(directory.path()).await), by_kernel).await;
        } else {
            println!("not by control groups: {limits}");
        }
        let groups = std::fs::read_to_string(directory.path().join("node/cgroups")).unwrap_or_default();
        cluster.shutdown().await;
        assert!(groups.lines().all(|group| !Path::new(group).exists()), "groups are left: {groups}");
    }
}

fn with_limits(name: &str, script: &str, limits: Value) -> Value {
    let mut pod = shell(name, script);
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": limits});
    pod
}

async fn until_log(pods: &Api<Pod>, name: &str, holds: impl Fn(&str) -> bool) -> String {
    eventually(async || pods.logs(name, &LogParams::default()).await.ok().filter(|log| holds(log))).await
}

async fn too_much_memory() {
    both_ways(async |pods, _| {
        let script = r#"exec perl -e 'my $all = "x" x (100 << 20); $| = 1; print "has it\n"; sleep 1000'"#;
        create(&pods, with_limits("small", script, json!({"memory": "32Mi"}))).await;
        create(&pods, with_limits("large", script, json!({"memory": "512Mi"}))).await;
        let ended = |status: &ContainerStatus| status.state.as_ref().and_then(|state| state.terminated.clone());
        let pod = until(&pods, "small", |status| ended(status).is_some()).await;
        let how = ended(&pod.status.unwrap().container_statuses.unwrap()[0]).unwrap();
        assert_eq!((how.reason.as_deref(), how.exit_code), (Some("OOMKilled"), 137));
        until_log(&pods, "large", |log| log == "has it\n").await;
        assert!(until(&pods, "large", |_| true).await.status.unwrap().phase.unwrap() == "Running");
    })
    .await;
}

/// Waits for a file in a volume in memory, then takes 100 MiB.
fn late_eater() -> Value {
    let script = r#"exec perl -e 'select(undef, undef, undef, 0.05) until -e "/work/go"; my $all = ""; vec($all, (100 << 20) - 1, 8) = 1;
        sleep 1000'"#;
    let mut pod = with_limits("p", script, json!({"memory": "32Mi"}));
    pod["spec"]["volumes"] = json!([{"name": "work", "emptyDir": {"medium": "Memory"}}]);
    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "work", "mountPath": "/work"}]);
    pod
}

/// The folder in memory of the node that has a Pod.
fn folder_of(pod: &Pod) -> PathBuf {
    let nodes = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.path());
    let uid = pod.uid().unwrap();
    nodes.into_iter().find(|node| node.join(&uid).is_dir()).unwrap()
}

/// What a cluster has outside of its directory: its groups.
fn roots(directory: &Path) -> Vec<PathBuf> {
    let roots = std::fs::read_to_string(directory.join("node/cgroups")).unwrap_or_default();
    roots.lines().map(PathBuf::from).collect()
}

async fn survivor() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = spawn_surviving(directory.path(), 60);
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    let pod = create(&pods, late_eater()).await;
    until(&pods, "p", |status| status.ready).await;
    let (folder, before) = (folder_of(&pod), groups(directory.path()));
    cluster.kill();

    std::fs::remove_file(directory.path().join("kubeconfig")).unwrap();
    let cluster = spawn_surviving(directory.path(), 60);
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    until(&pods, "p", |status| status.ready && status.restart_count == 0).await;
    assert_eq!(groups(directory.path()), before, "the container is in the group that it was in");
    std::fs::write(folder.join(pod.uid().unwrap()).join("work/go"), "").unwrap();
    let how = ended(&pods, "p").await;
    assert_eq!((how.reason.as_deref(), how.exit_code), (Some("OOMKilled"), 137));
    cluster.kill();
    let roots = roots(directory.path());
    windlass_cluster::end_survivors(directory.path());
    assert!(!folder.exists() && roots.iter().all(|root| !root.exists()));
}

async fn left_alone() {
    for seconds in [0, 1] {
        let directory = tempfile::tempdir().unwrap();
        let cluster = spawn_surviving(directory.path(), seconds);
        let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
        let pod = create(&pods, late_eater()).await;
        until(&pods, "p", |status| status.ready).await;
        let (folder, roots) = (folder_of(&pod), roots(directory.path()));
        cluster.kill();
        let gone = || !folder.exists() && roots.iter().all(|root| !root.exists());
        eventually(async || gone().then_some(())).await;
    }
}

async fn swept() {
    let directory = tempfile::tempdir().unwrap();
    let killed = spawn(directory.path());
    connect(directory.path()).await;
    let left = eventually(async || Some(roots(directory.path()))).await;
    killed.kill();
    let other = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(config(other.path())).await.unwrap();
    assert!(left.iter().all(|root| !root.exists()), "{left:?}");
    cluster.shutdown().await;
}

/// Counts for a second and says how much processor time that took, in hundredths of a second.
const SPIN: &str = r#"exec perl -MTime::HiRes=time -e '$| = 1; my $end = time + 2; 1 while time < $end; printf "%d\n", 100 * (times)[0]; sleep 1000'"#;

async fn too_much_processor() {
    both_ways(async |pods, by_kernel| {
        create(&pods, with_limits("half", SPIN, json!({"cpu": "250m"}))).await;
        let log = until_log(&pods, "half", |log| log.ends_with('\n')).await;
        let used: u32 = log.trim().parse().unwrap();
        // A quarter of two seconds and one period more; without the kernel nothing holds it back.
        assert!(!by_kernel || used <= 70, "used {used} hundredths of a second");
    })
    .await;
}

async fn run_inside() {
    both_ways(async |pods, by_kernel| {
        let word = unique();
        create(&pods, shell("p", "exec sleep 1000")).await;
        until(&pods, "p", |status| status.ready).await;
        let command =
            ["/bin/sh", "-c", &format!("setsid sleep {word} >/dev/null 2>&1 </dev/null & cat /proc/self/cgroup")];
        let params = kube::api::AttachParams::default().stderr(false);
        let mut running = pods.exec("p", command, &params).await.unwrap();
        let mut said = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut running.stdout().unwrap(), &mut said).await.unwrap();
        let uid = pods.get("p").await.unwrap().uid().unwrap();
        assert_eq!(said.contains(&format!("/{uid}/c.0")), by_kernel, "{said}");
        until_processes(&word, 1).await;
        pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
        await_condition(pods.clone(), "p", |pod: Option<&Pod>| pod.is_none()).await.unwrap();
        assert!(processes(&word).is_empty());
    })
    .await;
}

/// The groups below another one, by the names of their directories.
fn below(group: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(group).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    directories.map(|entry| entry.file_name().to_str().unwrap().to_owned()).collect()
}

/// The groups of containers, as `Pod/container.run`.
fn groups(directory: &Path) -> Vec<String> {
    let roots = std::fs::read_to_string(directory.join("node/cgroups")).unwrap_or_default();
    let Some(root) = roots.lines().next().map(Path::new) else { return Vec::new() };
    let pods = below(root).into_iter();
    pods.flat_map(|pod| below(&root.join(&pod)).into_iter().map(move |one| format!("{pod}/{one}"))).collect()
}

async fn killed_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = spawn(directory.path());
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    let pod = create(&pods, shell("p", "exec sleep 1000")).await;
    until(&pods, "p", |status| status.ready).await;
    let uid = pod.uid().unwrap();
    let before = groups(directory.path());
    if before.is_empty() {
        println!("there are no control groups here");
    } else {
        assert_eq!(before, [format!("{uid}/c.0")]);
    }
    cluster.kill();

    std::fs::remove_file(directory.path().join("kubeconfig")).unwrap();
    let cluster = spawn(directory.path());
    let pods: Api<Pod> = Api::default_namespaced(connect(directory.path()).await);
    until(&pods, "p", |status| status.restart_count == 1 && status.ready).await;
    if !before.is_empty() {
        assert_eq!(groups(directory.path()), [format!("{uid}/c.1")], "the group of the run before is gone");
    }
    cluster.kill();
    windlass_cluster::end_survivors(directory.path());
    assert!(groups(directory.path()).is_empty());
}
