//! Claims and persistent volumes.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};
use windlass_testkit::Controller;
use windlass_testkit::explore::{Exploration, User};

use super::objects::template;
use super::{of, survives};

/// The class that claims have if they name none is there for all of them; whoever deletes it does not want it. A volume that
/// somebody deletes under its claim is lost for good.
fn volumes() -> Exploration {
    of([Controller::Volumes]).keeps::<StorageClass>().without(["delete", "delete-while-down"])
}

fn claim(name: &str) -> Value {
    json!({"metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

/// A claim gets a volume that is there, and leaves it; the volume goes.
async fn binds(user: User) {
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "right"},
        "spec": {"capacity": {"storage": "2Gi"}, "hostPath": {"path": "/data"},
            "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain"}});
    user.create_object(volume.clone()).await;
    user.settle().await;
    let mut data = claim("data");
    data["spec"]["storageClassName"] = json!("");
    user.create::<PersistentVolumeClaim>(data).await;
    user.settle().await;
    user.delete::<PersistentVolumeClaim>("data").await;
    user.settle().await;
    user.delete_object(&volume).await;
}

#[test]
fn a_claim_binds_to_a_volume_whatever_happens() {
    survives(&volumes(), binds);
}

/// A claim gets a volume of its own when a Pod uses it, grows, and goes with it.
async fn provides(user: User) {
    // The class that it is given is there.
    user.settle().await;
    user.create::<PersistentVolumeClaim>(claim("data")).await;
    let mut pod = template("user", "one");
    pod["metadata"]["name"] = json!("user");
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    user.create::<Pod>(pod).await;
    user.settle().await;
    let larger = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
    user.patch::<PersistentVolumeClaim>("data", larger).await;
    user.settle().await;
    user.delete::<PersistentVolumeClaim>("data").await;
    user.settle().await;
    user.delete::<Pod>("user").await;
}

#[test]
fn a_claim_gets_a_volume_whatever_happens() {
    // Without a history there is no class yet; a claim that is not bound cannot grow, so the user has to wait.
    survives(&volumes().without(["fresh", "user", "overtaken"]), provides);
}
