//! Garbage collection.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::until;

use super::world::{deployment, workloads};

fn map(name: &str, owners: &[&ConfigMap]) -> Value {
    let owner = |owner: &&ConfigMap| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "blockOwnerDeletion": true});
    json!({"metadata": {"name": name, "ownerReferences": owners.iter().map(owner).collect::<Vec<_>>()}})
}

#[tokio::test]
async fn everything_below_a_deployment_goes_with_it() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 2, "one")).await;
    world.until_all(|pods: &[Pod]| pods.len() == 2).await;
    world.api::<Deployment>().delete("web", &DeleteParams::background()).await.unwrap();
    world.until_all(|pods: &[Pod]| pods.is_empty()).await;
    world.until_all(|sets: &[ReplicaSet]| sets.is_empty()).await;
    world.stop().await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 2, "one")).await;
    world.until_all(|pods: &[Pod]| pods.len() == 2).await;
    world.api::<Deployment>().delete("web", &DeleteParams::foreground()).await.unwrap();
    world.until_gone::<Deployment>("web").await;
    assert!(world.list::<Pod>().await.is_empty());
    assert!(world.list::<ReplicaSet>().await.is_empty());
    world.stop().await;
}

#[tokio::test]
async fn orphans_live_on() {
    let world = workloads().await;
    world.create::<Deployment>(deployment("web", 2, "one")).await;
    world.until_all(|pods: &[Pod]| pods.len() == 2).await;
    world.api::<Deployment>().delete("web", &DeleteParams::orphan()).await.unwrap();
    world.until_gone::<Deployment>("web").await;
    let sets = world.list::<ReplicaSet>().await;
    assert!(sets.len() == 1 && sets[0].owner_references().is_empty(), "{sets:#?}");
    assert_eq!(world.list::<Pod>().await.len(), 2);
    // The same Deployment again takes them over.
    let again = world.create::<Deployment>(deployment("web", 2, "one")).await;
    world
        .until_all(|sets: &[ReplicaSet]| {
            sets.iter().all(|set| set.owner_references().iter().any(|o| Some(&o.uid) == again.uid().as_ref()))
        })
        .await;
    assert_eq!(world.list::<ReplicaSet>().await.len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn an_object_stays_while_one_owner_does() {
    let world = workloads().await;
    let one = world.create::<ConfigMap>(map("one", &[])).await;
    let two = world.create::<ConfigMap>(map("two", &[])).await;
    world.create::<ConfigMap>(map("child", &[&one, &two])).await;
    world.api::<ConfigMap>().delete("one", &DeleteParams::default()).await.unwrap();
    world.until("child", |child: &ConfigMap| child.owner_references().len() == 1).await;
    world.api::<ConfigMap>().delete("two", &DeleteParams::default()).await.unwrap();
    world.until_gone::<ConfigMap>("child").await;
    world.stop().await;
}

#[tokio::test]
async fn an_owner_that_never_was_is_an_owner_that_is_gone() {
    let world = workloads().await;
    let mut ghost = world.create::<ConfigMap>(map("real", &[])).await;
    ghost.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    world.create::<ConfigMap>(map("child", &[&ghost])).await;
    world.until_gone::<ConfigMap>("child").await;
    world.stop().await;
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let world = workloads().await;
    let mut elsewhere = map("owner", &[]);
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let owner = world.create::<ConfigMap>(elsewhere).await;
    world.create::<ConfigMap>(map("child", &[&owner])).await;
    world.until_gone::<ConfigMap>("child").await;
    world.until_event("child", "OwnerRefInvalidNamespace").await;
    world.stop().await;
}

#[tokio::test]
async fn a_circle_of_owners_ends() {
    let world = workloads().await;
    let one = world.create::<ConfigMap>(map("one", &[])).await;
    let two = world.create::<ConfigMap>(map("two", &[&one])).await;
    let three = world.create::<ConfigMap>(map("three", &[&two])).await;
    let back = map("one", &[&three])["metadata"]["ownerReferences"].clone();
    world.patch::<ConfigMap>("one", json!({"metadata": {"ownerReferences": back}})).await;
    world.api::<ConfigMap>().delete("one", &DeleteParams::foreground()).await.unwrap();
    for name in ["one", "two", "three"] {
        world.until_gone::<ConfigMap>(name).await;
    }
    world.stop().await;
}

#[tokio::test]
async fn kinds_that_appear_later_own_and_are_owned() {
    let world = workloads().await;
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}))
    .unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    until(definitions.clone(), |all: &[CustomResourceDefinition]| {
        let conditions = all.iter().filter_map(|one| one.status.as_ref()?.conditions.as_ref()).flatten();
        conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
    })
    .await;
    let resource = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    let widgets: Api<DynamicObject> = Api::namespaced_with(world.client(), "default", &resource);
    let widget = widgets.create(&PostParams::default(), &DynamicObject::new("owner", &resource)).await.unwrap();
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": widget.uid()}]);
    world.create::<ConfigMap>(json!({"metadata": {"name": "child", "ownerReferences": owner}})).await;
    let mut child = DynamicObject::new("child", &resource);
    child.metadata.owner_references = Some(serde_json::from_value(owner).unwrap());
    widgets.create(&PostParams::default(), &child).await.unwrap();

    widgets.delete("owner", &DeleteParams::background()).await.unwrap();
    world.until_gone::<ConfigMap>("child").await;
    let all: Api<DynamicObject> = Api::all_with(world.client(), &resource);
    tokio::time::timeout(std::time::Duration::from_secs(60), async {
        kube::runtime::wait::await_condition(widgets.clone(), "child", |child: Option<&DynamicObject>| child.is_none())
            .await
    })
    .await
    .unwrap()
    .unwrap();
    assert!(all.list(&Default::default()).await.unwrap().items.is_empty());
    world.stop().await;
}
