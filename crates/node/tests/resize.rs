//! Resources of Pods that run are changed, and Pods as a whole have some: with control groups and without.
//! `cargo test -p windlass-node --test resize [NAME]`.
#![expect(clippy::unwrap_used, reason = "every function here is part of a test")]

mod ground;

use std::path::Path;

use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod, PodCondition};
use kube::ResourceExt;
use kube::api::{Api, LogParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use windlass_cluster::{Cluster, ClusterConfig};

use ground::{Test, config, create, delete, directory_of, ended, eventually, shell, told, until};

const TESTS: &[Test] = &[
    ("memory_of_a_running_container_is_changed", || Box::pin(memory())),
    ("a_container_that_wants_it_is_started_anew", || Box::pin(restarted())),
    ("a_pod_waits_until_there_is_room_to_grow", || Box::pin(deferred())),
    ("a_pod_as_a_whole_is_held_to_its_memory", || Box::pin(whole())),
];

fn main() {
    ground::run(TESTS);
}

/// Runs a test on a cluster with control groups, if this user has some, and on one without.
async fn both_ways(test: impl AsyncFn(kube::Client, &Path)) {
    for cgroups in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(ClusterConfig { cgroups, ..config(directory.path()) }).await.unwrap();
        test(cluster.client(), directory.path()).await;
        cluster.shutdown().await;
    }
}

/// Waits for a file, then takes 60 MiB of memory and says so.
const EATER: &str = r#"exec perl -e '$| = 1; select(undef, undef, undef, 0.05) until -e "/work/go"; my $all = "";
    vec($all, (60 << 20) - 1, 8) = 1; print "has it\n"; sleep 1000'"#;

fn with_memory(name: &str, script: &str, memory: &str) -> Value {
    let mut pod = shell(name, script);
    pod["spec"]["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
    let container = &mut pod["spec"]["containers"][0];
    container["volumeMounts"] = json!([{"name": "work", "mountPath": "/work"}]);
    container["resources"] = json!({"limits": {"memory": memory}, "requests": {"memory": "8Mi", "cpu": "50m"}});
    pod
}

async fn resize(pods: &Api<Pod>, name: &str, resources: Value) -> kube::Result<Pod> {
    let patch = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
    pods.patch_subresource("resize", name, &PatchParams::default(), &Patch::Strategic(patch)).await
}

fn limit(status: &ContainerStatus) -> String {
    let limits = status.resources.as_ref().and_then(|resources| resources.limits.clone()).unwrap_or_default();
    limits.get("memory").map(|quantity| quantity.0.clone()).unwrap_or_default()
}

fn condition(pod: Option<&Pod>, type_: &str) -> Option<PodCondition> {
    let conditions = pod?.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_).cloned()
}

async fn until_settled(pods: &Api<Pod>, name: &str) {
    let settled = |pod: Option<&Pod>| {
        ["PodResizePending", "PodResizeInProgress"].iter().all(|type_| condition(pod, type_).is_none())
    };
    await_condition(pods.clone(), name, settled).await.unwrap();
}

async fn memory() {
    both_ways(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let pod = create(&pods, with_memory("p", EATER, "32Mi")).await;
        until(&pods, "p", |status| status.ready && limit(status) == "32Mi").await;
        resize(&pods, "p", json!({"limits": {"memory": "128Mi"}})).await.unwrap();
        until(&pods, "p", |status| limit(status) == "128Mi").await;
        told(&client, "p", "ResizeCompleted", "Pod resize completed").await;
        std::fs::write(directory_of(directory, &pod).join("volumes/work/go"), "").unwrap();
        let has_it = async || pods.logs("p", &LogParams::default()).await.ok().filter(|log| log == "has it\n");
        eventually(has_it).await;

        resize(&pods, "p", json!({"limits": {"memory": "32Mi"}})).await.unwrap();
        let failed = |pod: Option<&Pod>| {
            let progress = condition(pod, "PodResizeInProgress");
            progress.is_some_and(|it| {
                it.reason.as_deref() == Some("Error") && it.message.unwrap().contains("below current")
            })
        };
        await_condition(pods.clone(), "p", failed).await.unwrap();
        resize(&pods, "p", json!({"limits": {"memory": "192Mi"}})).await.unwrap();
        let pod = until(&pods, "p", |status| limit(status) == "192Mi").await;
        until_settled(&pods, "p").await;
        assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 0);

        let class = resize(&pods, "p", json!({"requests": {"cpu": "1000"}})).await.unwrap_err().to_string();
        assert!(class.contains("node didn't have enough allocatable resources: cpu, requested: 1000000"), "{class}");
    })
    .await;
}

async fn restarted() {
    both_ways(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let mut pod = with_memory("p", "trap 'exit 0' TERM; while :; do sleep 0.05; done", "64Mi");
        pod["spec"]["restartPolicy"] = json!("OnFailure");
        pod["spec"]["containers"][0]["resizePolicy"] =
            json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
        create(&pods, pod).await;
        until(&pods, "p", |status| status.ready).await;
        resize(&pods, "p", json!({"requests": {"cpu": "60m"}})).await.unwrap();
        told(&client, "p", "ResizeCompleted", "60m").await;
        resize(&pods, "p", json!({"limits": {"memory": "96Mi"}})).await.unwrap();
        let after = until(&pods, "p", |status| status.ready && limit(status) == "96Mi").await;
        assert_eq!(
            after.status.unwrap().container_statuses.unwrap()[0].restart_count,
            1,
            "for its memory, not its processor"
        );
        told(&client, "p", "Killing", "Container c resize requires restart").await;
        until_settled(&pods, "p").await;
    })
    .await;
}

async fn deferred() {
    both_ways(async |client, _| {
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        let nodes: Api<Node> = Api::all(client);
        let mut first = shell("first", "exec sleep 1000");
        let mut second = shell("second", "exec sleep 1000");
        let has_room =
            |node: Option<&Node>| node.is_some_and(|node| node.status.as_ref().is_some_and(|s| s.capacity.is_some()));
        let node = await_condition(nodes, "windlass", has_room).await.unwrap().unwrap();
        let all: u64 = node.status.unwrap().capacity.unwrap()["cpu"].0.parse().unwrap();
        first["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": format!("{}m", all * 1000 - 100)}});
        second["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
        create(&pods, first).await;
        create(&pods, second).await;
        until(&pods, "second", |status| status.ready).await;
        resize(&pods, "second", json!({"requests": {"cpu": "200m"}})).await.unwrap();
        let waits = |pod: Option<&Pod>| {
            let pending = condition(pod, "PodResizePending");
            pending.is_some_and(|it| {
                it.reason.as_deref() == Some("Deferred") && it.message.unwrap().contains("cpu, requested: 200")
            })
        };
        await_condition(pods.clone(), "second", waits).await.unwrap();
        let allocated = |status: &ContainerStatus| status.allocated_resources.as_ref().unwrap()["cpu"].0.clone();
        assert_eq!(
            allocated(&pods.get("second").await.unwrap().status.unwrap().container_statuses.unwrap()[0]),
            "100m"
        );
        delete(&pods, "first").await;
        until(&pods, "second", |status| allocated(status) == "200m").await;
        until_settled(&pods, "second").await;
    })
    .await;
}

async fn whole() {
    both_ways(async |client, directory| {
        let pods: Api<Pod> = Api::default_namespaced(client);
        let mut pod = with_memory("p", EATER, "200Mi");
        pod["spec"]["restartPolicy"] = json!("Never");
        pod["spec"]["resources"] = json!({"limits": {"memory": "40Mi"}});
        pod["spec"]["containers"][0].as_object_mut().unwrap().remove("resources");
        let sleeper = json!({"name": "other", "image": "host", "command": ["/bin/sleep", "1000"]});
        pod["spec"]["containers"].as_array_mut().unwrap().push(sleeper);
        let pod = create(&pods, pod).await;
        assert_eq!(pod.status.as_ref().unwrap().qos_class.as_deref(), Some("Burstable"));
        until(&pods, "p", |status| status.ready).await;
        std::fs::write(directory_of(directory, &pod).join("volumes/work/go"), "").unwrap();
        let how = ended(&pods, "p").await;
        assert_eq!((how.reason.as_deref(), how.exit_code), (Some("OOMKilled"), 137));
        let status = pods.get("p").await.unwrap().status.unwrap();
        let others = status.container_statuses.unwrap();
        assert!(others[1].state.as_ref().unwrap().running.is_some(), "the container that took the memory ended");
        assert_eq!(status.resources.unwrap().limits.unwrap()["memory"].0, "40Mi");
        assert!(pod.uid().is_some());
    })
    .await;
}
