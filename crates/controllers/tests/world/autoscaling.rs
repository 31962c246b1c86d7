//! HorizontalPodAutoscalers, with what Pods use said by annotations.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::{TestCluster, until};

use super::world::{deployment, template, workloads};

/// A Deployment whose Pods ask for a tenth of a processor and use `cpu`.
fn load(replicas: i32, cpu: &str) -> Value {
    let mut object = deployment("web", replicas, "one");
    let template = &mut object["spec"]["template"];
    template["metadata"]["annotations"] = json!({"windlass.dev/fake-cpu": cpu});
    template["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "100m"}});
    object
}

fn autoscaler(name: &str, most: i32, metrics: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": most, "metrics": metrics}})
}

fn percent(target: i32) -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": target}}}])
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Waits until there are so many Pods, all ready, and lets so much time pass that what they use counts.
async fn settle(world: &TestCluster, count: usize) {
    world.until_all(|pods: &[Pod]| pods.len() == count && pods.iter().all(is_ready)).await;
    world.clock().advance(Duration::from_secs(20));
}

fn reason(autoscaler: &HorizontalPodAutoscaler, type_: &str) -> (String, String) {
    let status = autoscaler.status.clone().unwrap_or_default();
    let found = status.conditions.into_iter().flatten().find(|condition| condition.type_ == type_);
    found.map(|it| (it.status, it.reason.unwrap_or_default())).unwrap_or_default()
}

fn is(autoscaler: &HorizontalPodAutoscaler, type_: &str, status: &str, why: &str) -> bool {
    reason(autoscaler, type_) == (status.to_owned(), why.to_owned())
}

#[tokio::test]
async fn a_deployment_grows_with_its_load_and_shrinks_after_five_minutes() {
    let world = workloads().await;
    world.create::<Deployment>(load(1, "75m")).await;
    world.create::<HorizontalPodAutoscaler>(autoscaler("web", 4, percent(50))).await;
    // Each Pod uses half as much again as it should, however many there are.
    for count in [1, 2, 3] {
        settle(&world, count).await;
    }
    settle(&world, 4).await;
    let seen = world
        .until("web", |it: &HorizontalPodAutoscaler| {
            is(it, "ScalingLimited", "True", "TooManyReplicas") && it.status.as_ref().unwrap().desired_replicas == 4
        })
        .await;
    assert_eq!(reason(&seen, "ScalingActive"), ("True".to_owned(), "ValidMetricFound".to_owned()));
    let status = seen.status.unwrap();
    let current = status.current_metrics.unwrap()[0].resource.clone().unwrap().current;
    assert_eq!((current.average_utilization, current.average_value.unwrap().0), (Some(75), "75m".to_owned()));
    let event = world.until_event("web", "SuccessfulRescale").await;
    let text = event.message.unwrap();
    assert!(text.ends_with("reason: cpu resource utilization (percentage of request) above target"), "{text}");

    for pod in world.list::<Pod>().await {
        world.patch::<Pod>(&pod.name_any(), json!({"metadata": {"annotations": {"windlass.dev/fake-cpu": "0"}}})).await;
    }
    world.clock().advance(Duration::from_secs(20));
    world.until("web", |it: &HorizontalPodAutoscaler| is(it, "AbleToScale", "True", "ScaleDownStabilized")).await;
    world.clock().advance(Duration::from_secs(320));
    world.until_all(|pods: &[Pod]| pods.len() == 1).await;
    world
        .until("web", |it: &HorizontalPodAutoscaler| {
            it.status.as_ref().is_some_and(|status| status.current_replicas == Some(1))
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn what_cannot_be_measured_is_said_and_nothing_is_done() {
    let world = workloads().await;
    world.create::<HorizontalPodAutoscaler>(autoscaler("lost", 4, percent(50))).await;
    world.until("lost", |it: &HorizontalPodAutoscaler| is(it, "AbleToScale", "False", "FailedGetScale")).await;
    world.until_event("lost", "FailedGetScale").await;

    world.create::<Deployment>(load(2, "none")).await;
    settle(&world, 2).await;
    let failed = |it: &HorizontalPodAutoscaler| is(it, "ScalingActive", "False", "FailedGetResourceMetric");
    world.until("lost", failed).await;
    let event = world.until_event("lost", "FailedComputeMetricsReplicas").await;
    let expected = "invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed \
                    to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource \
                    metrics API";
    assert_eq!(event.message.unwrap(), expected);
    assert_eq!(world.list::<Pod>().await.len(), 2);

    world.patch::<Deployment>("web", json!({"spec": {"replicas": 0}})).await;
    world.until_all(|pods: &[Pod]| pods.is_empty()).await;
    world.clock().advance(Duration::from_secs(20));
    world.until("lost", |it: &HorizontalPodAutoscaler| is(it, "ScalingActive", "False", "ScalingDisabled")).await;
    world.patch::<Deployment>("web", json!({"spec": {"replicas": 9}})).await;
    world.clock().advance(Duration::from_secs(20));
    world.until_all(|pods: &[Pod]| pods.len() == 4).await;

    let pods = json!([{"type": "Pods", "pods": {"metric": {"name": "requests"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    world.patch::<HorizontalPodAutoscaler>("lost", json!({"spec": {"metrics": pods}})).await;
    world.until("lost", |it: &HorizontalPodAutoscaler| is(it, "ScalingActive", "False", "FailedGetPodsMetric")).await;
    let event = world.until_event("lost", "FailedGetPodsMetric").await;
    let expected = "unable to get metric requests: unable to fetch metrics from custom metrics API: no custom metrics API \
                    (custom.metrics.k8s.io) registered";
    assert_eq!(event.message.unwrap(), expected);
    world.stop().await;
}

#[tokio::test]
async fn two_autoscalers_do_not_scale_the_same_pods() {
    let world = workloads().await;
    world.create::<Deployment>(load(1, "75m")).await;
    settle(&world, 1).await;
    for name in ["one", "two"] {
        world.create::<HorizontalPodAutoscaler>(autoscaler(name, 1, percent(50))).await;
    }
    let ambiguous = |it: &HorizontalPodAutoscaler| is(it, "ScalingActive", "False", "AmbiguousSelector");
    world.until_all(|all: &[HorizontalPodAutoscaler]| all.iter().any(ambiguous)).await;
    world.clock().advance(Duration::from_secs(20));
    world.until_all(|all: &[HorizontalPodAutoscaler]| all.iter().all(ambiguous)).await;
    world.stop().await;
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": schema, "status": schema}}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}}]}})
}

#[tokio::test]
async fn anything_with_a_scale_is_scaled_by_memory_of_one_container() {
    let world = workloads().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition()).unwrap()).await.unwrap();
    until(definitions, |all: &[CustomResourceDefinition]| {
        let conditions = all.iter().filter_map(|it| it.status.as_ref()).flat_map(|it| it.conditions.iter().flatten());
        conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True")
    })
    .await;
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Thing"), "things");
    let things: Api<DynamicObject> = Api::namespaced_with(world.client(), "default", &kind);
    let mut thing = DynamicObject::new("t", &kind);
    thing.data = json!({"spec": {"replicas": 1}});
    things.create(&PostParams::default(), &thing).await.unwrap();
    let status = Patch::Merge(json!({"status": {"replicas": 1, "selector": "app=thing"}}));
    things.patch_status("t", &PatchParams::default(), &status).await.unwrap();

    let mut pod = template("thing", "one");
    pod["metadata"]["name"] = json!("p");
    pod["metadata"]["annotations"] =
        json!({"windlass.dev/fake-memory.main": "200Mi", "windlass.dev/fake-memory": "9Gi"});
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "beside", "image": "two"}));
    world.create::<Pod>(pod).await;
    world.until_all(|pods: &[Pod]| pods.len() == 1 && pods.iter().all(is_ready)).await;
    let mut object = autoscaler(
        "t",
        9,
        json!([{"type": "ContainerResource", "containerResource": {"name": "memory",
        "container": "main", "target": {"type": "AverageValue", "averageValue": "80Mi"}}}]),
    );
    object["spec"]["scaleTargetRef"] = json!({"apiVersion": "example.com/v1", "kind": "Thing", "name": "t"});
    world.create::<HorizontalPodAutoscaler>(object).await;
    until(things, |things: &[DynamicObject]| things.iter().any(|it| it.data["spec"]["replicas"] == 3)).await;
    let seen = world.until("t", |it: &HorizontalPodAutoscaler| is(it, "AbleToScale", "True", "SucceededRescale")).await;
    let current = seen.status.unwrap().current_metrics.unwrap()[0].container_resource.clone().unwrap().current;
    assert_eq!(current.average_value.unwrap().0, "200Mi");
    world.stop().await;
}
