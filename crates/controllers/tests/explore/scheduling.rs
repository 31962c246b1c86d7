//! The scheduler.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use windlass_testkit::Controller;
use windlass_testkit::explore::{User, World};

use super::{of, survives};

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": {
        "terminationGracePeriodSeconds": 1,
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "first"}}}]}},
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}})
}

/// Two Pods that cannot be together, and room for one of them.
async fn apart(user: User) {
    user.create::<Pod>(pod("first")).await;
    user.settle().await;
    user.create::<Pod>(pod("second")).await;
    user.settle().await;
    user.delete::<Pod>("first").await;
    user.settle().await;
    user.delete::<Pod>("second").await;
}

/// They are never together.
fn are_apart(world: &World) -> Result<(), String> {
    let placed = |name: &str| {
        let pod = world.get::<Pod>(name).filter(|pod| pod.metadata.deletion_timestamp.is_none());
        pod.and_then(|pod| pod.spec?.node_name)
    };
    match (placed("first"), placed("second")) {
        (Some(one), Some(other)) if one == other => Err(format!("both are on {one}")),
        _ => Ok(()),
    }
}

#[test]
fn pods_find_their_node_whatever_happens() {
    survives(&of([Controller::Scheduler]).invariant("apart", are_apart), apart);
}
