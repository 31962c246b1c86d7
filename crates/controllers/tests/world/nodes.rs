//! Nodes that only seem to run Pods, what becomes of Pods there, and nodes that fail.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::{Profile, TestCluster};

use super::world::template;

async fn nodes(count: usize) -> TestCluster {
    TestCluster::builder().profile(Profile::Workloads).nodes(count).start().await
}

fn pod(name: &str, annotations: Value, spec: Value) -> Value {
    let mut pod = template("app", "one");
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["annotations"] = annotations;
    spec.as_object().unwrap().iter().for_each(|(key, value)| pod["spec"][key] = value.clone());
    pod
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

async fn patch_node(world: &TestCluster, name: &str, patch: Value) {
    let api: Api<Node> = Api::all(world.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Lets time go on without end, in steps after each of which the node has renewed its lease.
async fn pass_time(world: &TestCluster, node: &str) {
    let leases: Api<Lease> = Api::namespaced(world.client(), "kube-node-lease");
    loop {
        world.clock().advance(Duration::from_secs(10));
        let now = world.clock().now();
        let renewed = |lease: &Lease| {
            lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).is_some_and(|renewed| renewed.0 >= now)
        };
        windlass_testkit::until(leases.clone(), |leases: &[Lease]| {
            leases.iter().any(|lease| lease.name_any() == node && renewed(lease))
        })
        .await;
    }
}

#[tokio::test]
async fn there_are_as_many_nodes_as_asked_for_and_pods_spread() {
    let world = nodes(3).await;
    for number in 0..6 {
        world.create::<Pod>(pod(&format!("p{number}"), json!({}), json!({}))).await;
    }
    let pods = world.until_all(|pods: &[Pod]| pods.len() == 6 && pods.iter().all(is_ready)).await;
    let used: BTreeSet<&str> = pods.iter().filter_map(node_of).collect();
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["fake-node-0", "fake-node-1", "fake-node-2"]);
    let addresses: BTreeSet<_> = pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
    assert_eq!(addresses.len(), 6);
    world.stop().await;
}

#[tokio::test]
async fn annotations_choose_what_becomes_of_a_pod() {
    let world = nodes(1).await;
    let never = json!({"restartPolicy": "Never"});
    world.create::<Pod>(pod("fails", json!({"windlass.dev/fake-exit-code": "3"}), never.clone())).await;
    world.create::<Pod>(pod("loops", json!({"windlass.dev/fake-exit-code": "1"}), json!({}))).await;
    world.create::<Pod>(pod("unready", json!({"windlass.dev/fake-ready-seconds": "never"}), json!({}))).await;
    world.create::<Pod>(pod("stuck", json!({"windlass.dev/fake-waiting": "ImagePullBackOff"}), json!({}))).await;
    world.create::<Pod>(pod("wrong", json!({"windlass.dev/fake-run-seconds": "soon"}), json!({}))).await;
    world.create::<Pod>(pod("slow", json!({"windlass.dev/fake-run-seconds": "3600"}), never)).await;

    let failed = world.until("fails", |pod: &Pod| phase(pod) == Some("Failed")).await;
    let state = failed.status.unwrap().container_statuses.unwrap()[0].state.clone().unwrap();
    assert_eq!(state.terminated.unwrap().exit_code, 3);
    let reason = |pod: &Pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        status.state.as_ref()?.waiting.as_ref()?.reason.clone()
    };
    world.until("loops", |pod: &Pod| reason(pod).as_deref() == Some("CrashLoopBackOff")).await;
    let stuck = world.until("stuck", |pod: &Pod| reason(pod).as_deref() == Some("ImagePullBackOff")).await;
    assert_eq!(phase(&stuck), Some("Pending"));
    let unready = world.until("unready", |pod: &Pod| phase(pod) == Some("Running")).await;
    assert!(!is_ready(&unready));
    world.until_event("wrong", "FakeRuleInvalid").await;
    world.until("slow", is_ready).await;
    world.clock().advance(Duration::from_secs(3600));
    world.until("slow", |pod: &Pod| phase(pod) == Some("Succeeded")).await;
    world.stop().await;
}

#[tokio::test]
async fn a_job_of_a_program_that_serves_goes_on() {
    let world = nodes(1).await;
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}}}});
    world.create::<Job>(job).await;
    world.until("j", |job: &Job| job.status.as_ref().is_some_and(|status| status.ready == Some(1))).await;
    world.api::<Job>().delete("j", &DeleteParams::foreground()).await.unwrap();
    world.until_gone::<Job>("j").await;
    world.stop().await;
}

#[tokio::test]
async fn pods_leave_a_node_that_they_do_not_tolerate() {
    let world = nodes(1).await;
    let tolerating = |seconds: Option<i64>| json!({"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]});
    world.create::<Pod>(pod("stays", json!({}), tolerating(None))).await;
    world.create::<Pod>(pod("lingers", json!({}), tolerating(Some(600)))).await;
    let mut held = pod("goes", json!({}), json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Pod>(held).await;
    world.until_all(|pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await;

    patch_node(&world, "fake-node-0", json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})).await;
    let gone = world.until("goes", |pod: &Pod| pod.metadata.deletion_timestamp.is_some()).await;
    let conditions = gone.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.reason.as_deref(), Some("DeletionByTaintManager"));
    world.patch::<Pod>("goes", json!({"metadata": {"finalizers": null}})).await;
    world.until_gone::<Pod>("goes").await;

    world.clock().advance(Duration::from_secs(601));
    world.until_gone::<Pod>("lingers").await;
    assert_eq!(world.list::<Pod>().await.iter().map(|pod| pod.name_any()).collect::<Vec<_>>(), ["stays"]);
    world.stop().await;
}

#[tokio::test]
async fn a_node_that_falls_silent_loses_its_pods_and_may_come_back() {
    let world = nodes(2).await;
    let on_first = json!({"nodeName": "fake-node-0"});
    world.create::<Pod>(pod("lost", json!({}), on_first)).await;
    world.until("lost", is_ready).await;

    patch_node(&world, "fake-node-0", json!({"metadata": {"annotations": {"windlass.dev/fake-down": "true"}}})).await;
    let taints = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect::<Vec<_>>()
    };
    let api: Api<Node> = Api::all(world.client());
    let unreachable = ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"];
    let ticking = pass_time(&world, "fake-node-1");
    let first = |nodes: &[Node], wanted: &[&str]| {
        nodes.iter().any(|node| node.name_any() == "fake-node-0" && taints(node) == wanted)
    };
    tokio::select! {
        () = ticking => unreachable!("it does not end"),
        _ = windlass_testkit::until(api.clone(), |nodes: &[Node]| first(nodes, &unreachable)) => {}
    }
    let lost = world.until("lost", |pod: &Pod| !is_ready(pod)).await;
    assert!(lost.metadata.deletion_timestamp.is_none(), "it tolerates that for five minutes");
    world.clock().advance(Duration::from_secs(301));
    world.until("lost", |pod: &Pod| pod.metadata.deletion_timestamp.is_some()).await;

    patch_node(&world, "fake-node-0", json!({"metadata": {"annotations": null}})).await;
    windlass_testkit::until(api, |nodes: &[Node]| first(nodes, &[])).await;
    world.until_gone::<Pod>("lost").await;
    world.stop().await;
}

#[tokio::test]
async fn pods_of_a_node_that_is_gone_have_failed() {
    let world = nodes(1).await;
    let mut held = pod("orphan", json!({}), json!({"nodeName": "gone"}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Pod>(held).await;
    let ticking = pass_time(&world, "fake-node-0");
    let failed = tokio::select! {
        () = ticking => unreachable!("it does not end"),
        pod = world.until("orphan", |pod: &Pod| pod.metadata.deletion_timestamp.is_some()) => pod,
    };
    assert_eq!(phase(&failed), Some("Failed"));
    world.patch::<Pod>("orphan", json!({"metadata": {"finalizers": null}})).await;
    world.until_gone::<Pod>("orphan").await;
    world.stop().await;
}
