//! Persistent volumes and claims.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::{Profile, TestCluster, until, until_gone};

use super::world::{template, workloads};

fn claim(name: &str, spec: Value) -> Value {
    let mut all = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    spec.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
    json!({"metadata": {"name": name}, "spec": all})
}

fn user(name: &str, claim: &str) -> Value {
    let mut pod = template("user", "one");
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

fn volume_phase(volume: &PersistentVolume) -> Option<&str> {
    volume.status.as_ref()?.phase.as_deref()
}

async fn class_is_there(world: &TestCluster) {
    let classes: Api<StorageClass> = Api::all(world.client());
    until(classes, |classes: &[StorageClass]| !classes.is_empty()).await;
}

#[tokio::test]
async fn a_claim_gets_a_volume_where_its_first_pod_goes() {
    let world = TestCluster::builder().profile(Profile::Workloads).nodes(2).start().await;
    class_is_there(&world).await;
    world.create::<PersistentVolumeClaim>(claim("data", json!({}))).await;
    world.until_event("data", "WaitForFirstConsumer").await;
    world.create::<Pod>(user("first", "data")).await;
    let first = world.until("first", is_running).await;
    let bound = world.until("data", |claim: &PersistentVolumeClaim| phase(claim) == Some("Bound")).await;
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "1Gi");
    world.create::<Pod>(user("second", "data")).await;
    let second = world.until("second", is_running).await;
    assert_eq!(first.spec.unwrap().node_name, second.spec.unwrap().node_name, "the volume is there");

    world
        .patch::<PersistentVolumeClaim>("data", json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}))
        .await;
    let capacity = |claim: &PersistentVolumeClaim| claim.status.as_ref()?.capacity.as_ref()?.get("storage").cloned();
    world.until("data", |claim: &PersistentVolumeClaim| capacity(claim).is_some_and(|size| size.0 == "3Gi")).await;

    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    world.api::<Pod>().delete("first", &DeleteParams::default()).await.unwrap();
    world.until_gone::<Pod>("first").await;
    let held = world.api::<PersistentVolumeClaim>().get("data").await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some(), "a Pod uses it");
    world.api::<Pod>().delete("second", &DeleteParams::default()).await.unwrap();
    world.until_gone::<PersistentVolumeClaim>("data").await;
    let volumes: Api<PersistentVolume> = Api::all(world.client());
    until(volumes, |volumes: &[PersistentVolume]| volumes.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn a_claim_finds_a_volume_that_suits_and_leaves_it_as_the_policy_says() {
    let world = workloads().await;
    let volumes: Api<PersistentVolume> = Api::all(world.client());
    for (name, size) in [("large", "9Gi"), ("right", "2Gi"), ("small", "1Mi")] {
        let volume = json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": size}, "hostPath": {"path": "/data"},
            "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain"}});
        volumes.create(&PostParams::default(), &serde_json::from_value(volume).unwrap()).await.unwrap();
    }
    let all_free = |volumes: &[PersistentVolume]| {
        volumes.len() == 3 && volumes.iter().all(|volume| volume_phase(volume) == Some("Available"))
    };
    until(volumes.clone(), all_free).await;
    world.create::<PersistentVolumeClaim>(claim("data", json!({"storageClassName": ""}))).await;
    let bound = world.until("data", |claim: &PersistentVolumeClaim| phase(claim) == Some("Bound")).await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("right"));
    world.create::<PersistentVolumeClaim>(claim("none", json!({"storageClassName": "absent"}))).await;
    world.until_event("none", "ProvisioningFailed").await;

    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.unwrap();
    world.until_gone::<PersistentVolumeClaim>("data").await;
    let released = |volumes: &[PersistentVolume]| {
        volumes.iter().any(|volume| volume.name_any() == "right" && volume_phase(volume) == Some("Released"))
    };
    until(volumes.clone(), released).await;
    volumes.delete("right", &DeleteParams::default()).await.unwrap();
    until_gone(volumes.clone(), "right").await;

    world.create::<PersistentVolumeClaim>(claim("holds", json!({"storageClassName": "", "volumeName": "large"}))).await;
    world.until("holds", |claim: &PersistentVolumeClaim| phase(claim) == Some("Bound")).await;
    volumes.delete("large", &DeleteParams::default()).await.unwrap();
    let held = volumes.get("large").await.unwrap();
    assert!(held.metadata.deletion_timestamp.is_some(), "a claim has it");
    world.api::<PersistentVolumeClaim>().delete("holds", &DeleteParams::default()).await.unwrap();
    until_gone(volumes, "large").await;
    world.stop().await;
}

#[tokio::test]
async fn a_pod_brings_its_own_claim_and_takes_it_along() {
    let world = workloads().await;
    class_is_there(&world).await;
    let mut pod = user("lone", "unused");
    pod["spec"]["volumes"] = json!([{"name": "data", "ephemeral": {"volumeClaimTemplate": {
        "metadata": {"labels": {"of": "lone"}}, "spec": claim("", json!({}))["spec"]}}}]);
    world.create::<Pod>(pod).await;
    world.until("lone", is_running).await;
    let made = world.until("lone-data", |claim: &PersistentVolumeClaim| phase(claim) == Some("Bound")).await;
    assert_eq!(made.labels()["of"], "lone");
    world.api::<Pod>().delete("lone", &DeleteParams::default()).await.unwrap();
    world.until_gone::<PersistentVolumeClaim>("lone-data").await;
    world.stop().await;
}
