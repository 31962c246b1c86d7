//! The scheduler.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testkit::{Profile, TestCluster};

use super::world::{template, workloads};

fn reason(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|one| one.type_ == "PodScheduled" && one.status == "False")?.reason.clone()
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

#[tokio::test]
async fn a_pod_waits_for_a_node_that_suits_and_then_runs() {
    let world = workloads().await;
    let mut pod = template("a", "one");
    pod["metadata"]["name"] = json!("picky");
    pod["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    world.create::<Pod>(pod).await;
    world.until("picky", |pod: &Pod| reason(pod).as_deref() == Some("Unschedulable")).await;
    world.until_event("picky", "FailedScheduling").await;

    let nodes: Api<Node> = Api::all(world.client());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"disk": "ssd"}}}));
    nodes.patch("fake-node-0", &PatchParams::default(), &patch).await.unwrap();
    world.until("picky", is_running).await;
    world.until_event("picky", "Scheduled").await;
    world.stop().await;
}

#[tokio::test]
async fn a_gate_holds_a_pod() {
    let world = workloads().await;
    let mut pod = template("a", "one");
    pod["metadata"]["name"] = json!("gated");
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    world.create::<Pod>(pod).await;
    world.until("gated", |pod: &Pod| reason(pod).as_deref() == Some("SchedulingGated")).await;
    world.patch::<Pod>("gated", json!({"spec": {"schedulingGates": []}})).await;
    world.until("gated", is_running).await;
    world.stop().await;
}

/// A Pod that asks for `amount` of a resource that nodes have only if they are told so.
fn asking(name: &str, amount: &str, class: Option<&str>) -> Value {
    let mut pod = template(name, "one");
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["priorityClassName"] = json!(class);
    let resources = json!({"example.com/slot": amount});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": resources, "limits": resources});
    pod
}

#[tokio::test]
async fn an_important_pod_drives_a_lesser_one_away() {
    let world = workloads().await;
    let nodes: Api<Node> = Api::all(world.client());
    windlass_testkit::until(nodes.clone(), |nodes: &[Node]| !nodes.is_empty()).await;
    let capacity = Patch::Merge(json!({"status": {"capacity": {"example.com/slot": "5"}}}));
    nodes.patch_status("fake-node-0", &PatchParams::default(), &capacity).await.unwrap();
    let classes: Api<PriorityClass> = Api::all(world.client());
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    }
    let mut victim = asking("victim", "3", Some("low"));
    victim["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Pod>(victim).await;
    world.create::<Pod>(asking("bystander", "2", Some("high"))).await;
    world.until_all(|pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_running)).await;

    world.create::<Pod>(asking("important", "2", Some("high"))).await;
    let victim = world.until("victim", |pod: &Pod| pod.metadata.deletion_timestamp.is_some()).await;
    let conditions = victim.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.reason.as_deref(), Some("PreemptionByScheduler"));
    world.until("important", is_running).await;
    world.until_event("victim", "Preempted").await;
    world.patch::<Pod>("victim", json!({"metadata": {"finalizers": null}})).await;
    world.until_gone::<Pod>("victim").await;

    world.create::<Pod>(asking("equal", "2", Some("high"))).await;
    world.until("equal", |pod: &Pod| reason(pod).as_deref() == Some("Unschedulable")).await;
    assert_eq!(world.list::<Pod>().await.len(), 3);
    world.stop().await;
}

#[tokio::test]
async fn pods_that_shun_each_other_get_nodes_of_their_own() {
    let world = TestCluster::builder().profile(Profile::Workloads).nodes(2).start().await;
    for name in ["a", "b", "c"] {
        let mut pod = template("lone", "one");
        pod["metadata"]["name"] = json!(name);
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "lone"}}}]}});
        world.create::<Pod>(pod).await;
    }
    let is_placed = |pods: &[Pod]| pods.iter().filter(|pod| is_running(pod)).count() == 2;
    let pods = world.until_all(|pods: &[Pod]| is_placed(pods) && pods.iter().any(|pod| reason(pod).is_some())).await;
    let left = pods.iter().find(|pod| is_running(pod)).and_then(|pod| pod.metadata.name.clone()).unwrap();
    world.api::<Pod>().delete(&left, &DeleteParams::default()).await.unwrap();
    world.until_all(|pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_running)).await;
    world.stop().await;
}
