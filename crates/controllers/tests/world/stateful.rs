//! StatefulSets and DaemonSets.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

use super::world::{template, workloads};

fn image(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_stateful_set_has_names_claims_and_revisions() {
    let world = workloads().await;
    let object = json!({"metadata": {"name": "db"}, "spec": {"replicas": 3, "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}});
    world.create::<StatefulSet>(object).await;
    let is_done = |set: &StatefulSet| {
        let status = set.status.clone().unwrap_or_default();
        let wanted = set.spec.as_ref().and_then(|spec| spec.replicas);
        status.observed_generation == set.metadata.generation
            && status.ready_replicas == wanted
            && status.updated_replicas == wanted
            && status.current_revision == status.update_revision
    };
    let first = world.until("db", is_done).await;
    let names = |pods: &[Pod]| pods.iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
    assert_eq!(names(&world.until_all(|pods: &[Pod]| pods.len() == 3).await), ["db-0", "db-1", "db-2"]);

    world.patch::<StatefulSet>("db", json!({"spec": {"template": template("db", "two")}})).await;
    let second = world.until("db", |set: &StatefulSet| {
        is_done(set) && set.status.as_ref().unwrap().current_revision != first.status.as_ref().unwrap().current_revision
    });
    second.await;
    let pods = world.until_all(|pods: &[Pod]| pods.len() == 3 && pods.iter().all(|pod| image(pod) == "two")).await;
    assert_eq!(names(&pods), ["db-0", "db-1", "db-2"]);
    assert_eq!(world.list::<ControllerRevision>().await.len(), 2);

    world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
    world.until_all(|pods: &[Pod]| names(pods) == ["db-0"]).await;
    let claims = world.list::<PersistentVolumeClaim>().await;
    assert_eq!(claims.len(), 3, "data outlives its Pod");
    world.stop().await;
}

#[tokio::test]
async fn a_daemon_set_runs_on_each_node_and_updates() {
    let world = workloads().await;
    let object = json!({"metadata": {"name": "agent"}, "spec": {
        "selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", "one")}});
    world.create::<DaemonSet>(object).await;
    let is_ready = |set: &DaemonSet| {
        let status = set.status.clone().unwrap_or_default();
        status.observed_generation == set.metadata.generation
            && status.desired_number_scheduled == 1
            && status.number_available == Some(1)
            && status.updated_number_scheduled == Some(1)
    };
    world.until("agent", is_ready).await;
    world.patch::<DaemonSet>("agent", json!({"spec": {"template": template("agent", "two")}})).await;
    world.until_all(|pods: &[Pod]| pods.len() == 1 && image(&pods[0]) == "two").await;
    world.until("agent", is_ready).await;
    world.stop().await;
}

#[tokio::test]
async fn claims_go_with_their_pods_and_their_set_where_that_is_wanted() {
    let world = workloads().await;
    let object = json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"},
        "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}});
    world.create::<StatefulSet>(object).await;
    let is_ready =
        |ready: i32| move |set: &StatefulSet| set.status.as_ref().is_some_and(|it| it.ready_replicas == Some(ready));
    world.until("db", is_ready(2)).await;
    world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
    let names = |claims: &[PersistentVolumeClaim]| claims.iter().map(|claim| claim.name_any()).collect::<Vec<_>>();
    world.until_all(|claims: &[PersistentVolumeClaim]| names(claims) == ["data-db-0"]).await;
    world.api::<StatefulSet>().delete("db", &DeleteParams::background()).await.unwrap();
    world.until_all(|claims: &[PersistentVolumeClaim]| claims.is_empty()).await;
    world.stop().await;
}
