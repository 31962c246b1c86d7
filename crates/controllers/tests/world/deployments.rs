//! Deployments and ReplicaSets.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;
use windlass_testkit::until;

use super::world::{deployment, template, workloads};

fn available(deployment: &Deployment) -> i32 {
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation != deployment.metadata.generation {
        return -1;
    }
    status.available_replicas.unwrap_or(0)
}

fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    available(deployment) == wanted && status.updated_replicas == Some(wanted) && status.replicas == Some(wanted)
}

fn image(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_deployment_rolls_out_updates_and_back() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 3, "one")).await;
    let first = world.until("web", is_rolled_out).await;
    assert_eq!(first.annotations()["deployment.kubernetes.io/revision"], "1");
    world.until_event("web", "ScalingReplicaSet").await;

    world.patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}})).await;
    world.until("web", |deployment| image_of(deployment) == "two" && is_rolled_out(deployment)).await;
    let pods = world.until_all(|pods: &[Pod]| pods.len() == 3).await;
    assert!(pods.iter().all(|pod| image(pod) == "two"), "{pods:#?}");

    world.patch::<Deployment>("web", json!({"spec": {"template": template("web", "one")}})).await;
    let third = world
        .until("web", |deployment: &Deployment| {
            deployment.annotations().get("deployment.kubernetes.io/revision").is_some_and(|number| number == "3")
                && is_rolled_out(deployment)
        })
        .await;
    let reasons: Vec<_> =
        third.status.unwrap().conditions.unwrap().into_iter().map(|condition| condition.reason.unwrap()).collect();
    assert_eq!(reasons, ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    let sets = world.list::<ReplicaSet>().await;
    assert_eq!(sets.len(), 2, "the first ReplicaSet is used again");
    world.stop().await;
}

fn image_of(deployment: &Deployment) -> String {
    let template = deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    template.spec.and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
}

#[tokio::test]
async fn never_more_than_surge_nor_less_than_unavailable_permits() {
    let world = workloads().await;
    let mut object = deployment("web", 4, "one");
    object["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    world.create::<Deployment>(object).await;
    world.until("web", is_rolled_out).await;
    world.patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}})).await;
    let watched = until(world.api::<ReplicaSet>(), |sets: &[ReplicaSet]| {
        let sizes: Vec<i32> = sets.iter().map(|set| set.spec.as_ref().unwrap().replicas.unwrap()).collect();
        assert!(sizes.iter().sum::<i32>() <= 5, "{sizes:?}");
        sets.len() == 2 && sizes.contains(&0) && sizes.contains(&4)
    });
    watched.await;
    world
        .until("web", |deployment: &Deployment| {
            assert!(available(deployment) == -1 || available(deployment) >= 4);
            is_rolled_out(deployment)
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_deleted_pod_comes_back_and_scaling_is_exact() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 3, "one")).await;
    world.until("web", is_rolled_out).await;
    let pods = world.list::<Pod>().await;
    world.api::<Pod>().delete(&pods[0].name_any(), &DeleteParams::default()).await.unwrap();
    world.until_gone::<Pod>(&pods[0].name_any()).await;
    world.until("web", is_rolled_out).await;

    world.patch::<Deployment>("web", json!({"spec": {"replicas": 20}})).await;
    world.until("web", |deployment| is_rolled_out(deployment) && available(deployment) == 20).await;
    assert_eq!(world.list::<Pod>().await.len(), 20);
    world.patch::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
    world.until_all(|pods: &[Pod]| pods.len() == 1).await;
    world.patch::<Deployment>("web", json!({"spec": {"replicas": 0}})).await;
    world.until_all(|pods: &[Pod]| pods.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn recreate_never_mixes_templates() {
    let world = workloads().await;
    let mut object = deployment("web", 2, "one");
    object["spec"]["strategy"] = json!({"type": "Recreate"});
    world.create::<Deployment>(object).await;
    world.until("web", is_rolled_out).await;
    world.patch::<Deployment>("web", json!({"spec": {"template": template("web", "two")}})).await;
    world
        .until_all(|pods: &[Pod]| {
            let images: std::collections::BTreeSet<String> = pods.iter().map(image).collect();
            assert!(images.len() <= 1, "{images:?}");
            pods.len() == 2 && images.contains("two")
        })
        .await;
    world.until("web", is_rolled_out).await;
    world.stop().await;
}

#[tokio::test]
async fn a_paused_deployment_scales_and_keeps_its_template() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 2, "one")).await;
    world.until("web", is_rolled_out).await;
    let patch = json!({"spec": {"paused": true, "replicas": 3, "template": template("web", "two")}});
    world.patch::<Deployment>("web", patch).await;
    world.until("web", |deployment: &Deployment| available(deployment) == 3).await;
    assert!(world.list::<Pod>().await.iter().all(|pod| image(pod) == "one"));
    world.patch::<Deployment>("web", json!({"spec": {"paused": false}})).await;
    world.until("web", is_rolled_out).await;
    world.until_all(|pods: &[Pod]| pods.len() == 3 && pods.iter().all(|pod| image(pod) == "two")).await;
    world.stop().await;
}

#[tokio::test]
async fn pods_are_adopted_and_released_by_label() {
    let world = workloads().await;
    let mut pod = template("web", "one");
    pod["metadata"]["name"] = json!("stray");
    world.create::<Pod>(pod).await;
    world
        .create::<ReplicaSet>(json!({"metadata": {"name": "web"}, "spec": {"replicas": 2,
            "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "one")}}))
        .await;
    let pods =
        world.until_all(|pods: &[Pod]| pods.len() == 2 && pods.iter().all(|pod| !pod.owner_references().is_empty()));
    assert!(pods.await.iter().any(|pod| pod.name_any() == "stray"), "the stray Pod is one of the two");

    world.patch::<Pod>("stray", json!({"metadata": {"labels": {"app": "other"}}})).await;
    world.until("stray", |pod: &Pod| pod.owner_references().is_empty()).await;
    world.until_all(|pods: &[Pod]| pods.len() == 3).await;
    world.stop().await;
}

#[tokio::test]
async fn what_cannot_be_made_is_told() {
    let world = workloads().await;
    let mut object = deployment("web", 1, "one");
    object["spec"]["template"]["spec"]["serviceAccountName"] = json!("nobody");
    world.create::<Deployment>(object).await;
    let set = world
        .until_all(|sets: &[ReplicaSet]| {
            sets.iter().any(|set| set.status.as_ref().is_some_and(|status| status.conditions.is_some()))
        })
        .await;
    let condition = &set[0].status.as_ref().unwrap().conditions.as_ref().unwrap()[0];
    assert_eq!((condition.type_.as_str(), condition.reason.as_deref()), ("ReplicaFailure", Some("FailedCreate")));
    world.until_event(&set[0].name_any(), "FailedCreate").await;
    world
        .until("web", |deployment: &Deployment| {
            let status = deployment.status.clone().unwrap_or_default();
            status.conditions.iter().flatten().any(|condition| condition.type_ == "ReplicaFailure")
        })
        .await;
    world.stop().await;
}
