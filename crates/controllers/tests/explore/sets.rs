//! StatefulSets with their claims.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};
use windlass_testkit::Controller;
use windlass_testkit::explore::User;

use super::objects::template;
use super::{of, survives};

fn set(replicas: u32, when_scaled: &str) -> Value {
    json!({"metadata": {"name": "db"}, "spec": {"replicas": replicas, "serviceName": "db",
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": when_scaled},
        "selector": {"matchLabels": {"app": "db"}}, "template": template("db", "one"),
        "volumeClaimTemplates": [{"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})
}

async fn resized(user: &User, replicas: u32) {
    user.patch::<StatefulSet>("db", json!({"spec": {"replicas": replicas}})).await;
    user.settle().await;
}

/// It is made, grows, shrinks, grows again, and goes; claims go with their Pods.
async fn sizes(user: User) {
    user.create::<StatefulSet>(set(1, "Delete")).await;
    user.settle().await;
    resized(&user, 3).await;
    resized(&user, 1).await;
    resized(&user, 2).await;
    user.delete::<StatefulSet>("db").await;
}

#[test]
fn a_stateful_set_changes_its_size_whatever_happens() {
    survives(&of([Controller::StatefulSet]), sizes);
}

/// Claims stay where Pods go, and are there for the next ones; then the Pods get another image, one by one.
async fn kept(user: User) {
    user.create::<StatefulSet>(set(2, "Retain")).await;
    user.settle().await;
    resized(&user, 1).await;
    resized(&user, 2).await;
    user.patch::<StatefulSet>("db", json!({"spec": {"template": template("db", "two")}})).await;
    user.settle().await;
}

#[test]
fn data_outlives_pods_whatever_happens() {
    // Revisions are history, and a claim that somebody deletes goes only when its Pod does.
    let exploration = of([Controller::StatefulSet]).without(["fresh", "delete", "delete-while-down"]);
    survives(&exploration.keeps::<PersistentVolumeClaim>(), kept);
}
