//! The garbage collector.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass_testkit::Controller;
use windlass_testkit::explore::{User, World};

use super::{of, survives};

/// A map below others; it is nobody's wish, since it may go with them.
async fn below(user: &User, name: &str, owners: &[&ConfigMap]) -> ConfigMap {
    let owner = |owner: &&ConfigMap| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "blockOwnerDeletion": true});
    let map = json!({"metadata": {"name": name, "ownerReferences": owners.iter().map(owner).collect::<Vec<Value>>()}});
    let map = serde_json::from_value(map).expect("it is a map");
    let maps: Api<ConfigMap> = Api::namespaced(user.client(), "default");
    maps.create(&PostParams::default(), &map).await.expect("it is accepted")
}

async fn root(user: &User, name: &str) -> ConfigMap {
    user.create::<ConfigMap>(json!({"metadata": {"name": name}})).await
}

/// Owners go in each of the three ways, one after the other.
async fn three_ways(user: User) {
    let (first, second, third) = (root(&user, "first").await, root(&user, "second").await, root(&user, "third").await);
    let middle = below(&user, "middle", &[&first]).await;
    below(&user, "leaf", &[&middle]).await;
    below(&user, "shared", &[&first, &second]).await;
    below(&user, "orphan", &[&third]).await;
    user.settle().await;
    user.delete_with::<ConfigMap>("third", &DeleteParams::orphan()).await;
    user.settle().await;
    user.delete_with::<ConfigMap>("first", &DeleteParams::foreground()).await;
    user.settle().await;
    user.delete_with::<ConfigMap>("second", &DeleteParams::background()).await;
}

/// In the foreground the owner goes last.
fn owner_last(world: &World) -> Result<(), String> {
    let is_there = |name: &str| world.get::<ConfigMap>(name).is_some();
    let is_alone = (is_there("leaf") && !is_there("middle")) || (is_there("middle") && !is_there("first"));
    if is_alone { Err("what is below the owner is still there".to_owned()) } else { Ok(()) }
}

/// Who has an owner left stays.
fn shared_stays(world: &World) -> Result<(), String> {
    let shared = world.get::<ConfigMap>("shared");
    let is_leaving = shared.is_some_and(|shared| shared.metadata.deletion_timestamp.is_some());
    if is_leaving && world.get::<ConfigMap>("second").is_some() { Err("it has an owner".to_owned()) } else { Ok(()) }
}

#[test]
fn garbage_goes_and_nothing_else_whatever_happens() {
    let exploration = of([Controller::GarbageCollector]);
    survives(
        &exploration.invariant("the owner goes last", owner_last).invariant("the shared stays", shared_stays),
        three_ways,
    );
}
