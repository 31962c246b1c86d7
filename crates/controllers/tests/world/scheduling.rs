//! The scheduler.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

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
