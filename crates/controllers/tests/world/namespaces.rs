//! Namespaces, from what every one has to its end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::world::{World, deployment, until};

async fn namespace(world: &World, name: &str) -> Api<Namespace> {
    let api: Api<Namespace> = Api::all(world.client());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    api
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_authority() {
    let world = World::start().await;
    namespace(&world, "team").await;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client(), "team");
    until(accounts.clone(), |all: &[ServiceAccount]| all.iter().any(|one| one.name_any() == "default")).await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), "team");
    let has_ca = |all: &[ConfigMap]| {
        let found = all.iter().find(|one| one.name_any() == "kube-root-ca.crt");
        found.and_then(|one| one.data.as_ref()?.get("ca.crt")).is_some_and(|pem| pem.contains("BEGIN CERTIFICATE"))
    };
    until(maps.clone(), has_ca).await;

    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    until(accounts, |all: &[ServiceAccount]| all.iter().any(|one| one.name_any() == "default")).await;
    let patch = Patch::Merge(json!({"data": {"ca.crt": "forged"}}));
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &patch).await.unwrap();
    until(maps, has_ca).await;
    world.stop().await;
}

#[tokio::test]
async fn a_namespace_takes_its_content_with_it() {
    let world = World::start().await;
    let namespaces = namespace(&world, "team").await;
    let mut object = deployment("web", 2, "one");
    object["metadata"]["namespace"] = json!("team");
    world.create::<Deployment>(object).await;
    let pods: Api<Pod> = Api::namespaced(world.client(), "team");
    until(pods.clone(), |pods: &[Pod]| pods.len() == 2).await;

    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    until(namespaces, |all: &[Namespace]| all.iter().all(|one| one.name_any() != "team")).await;
    assert!(pods.list(&Default::default()).await.unwrap().items.is_empty());
    let deployments: Api<Deployment> = Api::namespaced(world.client(), "team");
    assert!(deployments.list(&Default::default()).await.unwrap().items.is_empty());
    world.stop().await;
}

#[tokio::test]
async fn a_finalizer_holds_a_namespace_and_the_conditions_say_so() {
    let world = World::start().await;
    let namespaces = namespace(&world, "team").await;
    let held = json!({"metadata": {"name": "held", "namespace": "team", "finalizers": ["example.com/hold"]}});
    world.create::<ConfigMap>(held).await;
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let all = until(namespaces.clone(), |all: &[Namespace]| {
        let team = all.iter().find(|one| one.name_any() == "team");
        let conditions = team.and_then(|team| team.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|one| one.type_ == "NamespaceFinalizersRemaining" && one.status == "True")
    })
    .await;
    let team = all.iter().find(|one| one.name_any() == "team").unwrap();
    assert_eq!(team.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));

    let maps: Api<ConfigMap> = Api::namespaced(world.client(), "team");
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &patch).await.unwrap();
    until(namespaces, |all: &[Namespace]| all.iter().all(|one| one.name_any() != "team")).await;
    world.stop().await;
}
