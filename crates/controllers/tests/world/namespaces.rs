//! Namespaces, from what every one has to its end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use windlass_testkit::{TestCluster, until};

use super::world::{deployment, workloads};

async fn namespace(world: &TestCluster, name: &str) -> Api<Namespace> {
    let api: Api<Namespace> = Api::all(world.client());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    api
}

#[tokio::test]
async fn every_namespace_has_an_account_and_the_authority() {
    let world = workloads().await;
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
    let world = workloads().await;
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
    let world = workloads().await;
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

#[tokio::test]
async fn a_token_secret_is_filled_and_goes_with_its_account() {
    let world = workloads().await;
    world.create::<ServiceAccount>(json!({"metadata": {"name": "robot"}})).await;
    let secret = json!({"metadata": {"name": "robot-token", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"});
    world.create::<Secret>(secret).await;
    let has_token = |secret: &Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("token"));
    let secret = world.until("robot-token", has_token).await;
    let data = secret.data.unwrap();
    assert_eq!(data["namespace"].0, b"default");
    assert!(data["ca.crt"].0.starts_with(b"-----BEGIN CERTIFICATE-----"));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": String::from_utf8(data["token"].0.clone()).unwrap()}});
    let review: TokenReview = serde_json::from_value(review).unwrap();
    let reviews: Api<TokenReview> = Api::all(world.client());
    let judged = || async { reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap() };
    assert_eq!(judged().await.user.unwrap().username.unwrap(), "system:serviceaccount:default:robot");
    world.api::<ServiceAccount>().delete("robot", &DeleteParams::default()).await.unwrap();
    world.until_gone::<Secret>("robot-token").await;
    assert_ne!(judged().await.authenticated, Some(true));
    world.stop().await;
}
