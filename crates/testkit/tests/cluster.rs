//! What a test can do with its cluster.

#![expect(clippy::unwrap_used, reason = "what does not hold fails the test")]

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig as KubeconfigFile};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use windlass_testkit::{Controller, Profile, TestCluster, until, until_gone};

fn config_map(name: &str, text: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"text": text}})
}

fn widgets() -> CustomResourceDefinition {
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
    .unwrap()
}

fn widget_api(client: Client) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    Api::namespaced_with(client, "default", &kind)
}

async fn create_widget(cluster: &TestCluster, name: &str) -> kube::Result<DynamicObject> {
    let widget =
        serde_json::from_value(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}));
    widget_api(cluster.client()).create(&PostParams::default(), &widget.unwrap()).await
}

#[tokio::test]
async fn clusters_share_nothing() {
    let (one, other) = (TestCluster::start().await, TestCluster::start().await);
    one.create::<ConfigMap>(config_map("mine", "1")).await;
    assert!(other.api::<ConfigMap>().get_opt("mine").await.unwrap().is_none());
}

#[tokio::test]
async fn namespaces_are_emptied() {
    let cluster = TestCluster::start().await;
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "brief"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let mut object = config_map("inside", "1");
    object["metadata"]["namespace"] = "brief".into();
    cluster.create::<ConfigMap>(object).await;
    namespaces.delete("brief", &DeleteParams::default()).await.unwrap();
    until_gone(namespaces, "brief").await;
    cluster.stop().await;
}

#[tokio::test]
async fn controllers_are_switched_one_by_one() {
    let cluster = TestCluster::builder().profile(Profile::Bare).with(Controller::ServiceAccount).start().await;
    cluster.until::<ServiceAccount>("default", |_| true).await;
    assert!(cluster.api::<ConfigMap>().list(&Default::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_user_has_only_the_rights_that_it_was_given() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    let ann: Api<ConfigMap> = Api::namespaced(cluster.client_as("ann", &["people"]), "default");
    let refused = ann.list(&Default::default()).await.unwrap_err().to_string();
    assert!(refused.contains("User \"ann\" cannot list resource \"configmaps\""), "{refused}");
    let master: Api<ConfigMap> = Api::namespaced(cluster.client_as("root", &["system:masters"]), "default");
    assert!(master.list(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_reset_brings_objects_back_and_watchers_see_how() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    cluster.create::<ConfigMap>(config_map("edited", "before")).await;
    let removed = cluster.create::<ConfigMap>(config_map("removed", "before")).await;
    let snapshot = cluster.snapshot();

    let api = cluster.api::<ConfigMap>();
    cluster.patch::<ConfigMap>("edited", json!({"data": {"text": "after"}})).await;
    api.delete("removed", &DeleteParams::default()).await.unwrap();
    let added = cluster.create::<ConfigMap>(config_map("added", "after")).await;
    let version = added.resource_version().unwrap();
    let mut events = std::pin::pin!(api.watch(&WatchParams::default(), &version).await.unwrap());

    cluster.reset(&snapshot).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => format!("added {}", object.name_any()),
            WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
            WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["deleted added", "modified edited", "added removed"]);
    assert_eq!(api.get("edited").await.unwrap().data.unwrap()["text"], "before");
    assert_eq!(api.get("removed").await.unwrap().uid(), removed.uid());
}

#[tokio::test]
async fn a_reset_counts_for_kinds_at_once() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    let empty = cluster.snapshot();
    cluster.define([widgets()]).await;
    create_widget(&cluster, "one").await.unwrap();
    let full = cluster.snapshot();
    for _ in 0..20 {
        cluster.reset(&empty).await;
        let gone = create_widget(&cluster, "two").await.unwrap_err();
        assert!(matches!(&gone, kube::Error::Api(status) if status.code == 404), "{gone}");
        cluster.reset(&full).await;
        assert!(widget_api(cluster.client()).get("one").await.is_ok());
    }
}

#[tokio::test]
async fn controllers_go_on_after_a_reset() {
    let cluster = TestCluster::start().await;
    let snapshot = cluster.snapshot();
    for _ in 0..3 {
        let owner = cluster.create::<ConfigMap>(config_map("owner", "1")).await;
        let mut child = config_map("child", "1");
        child["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid().unwrap()}]);
        cluster.create::<ConfigMap>(child).await;
        cluster.api::<ConfigMap>().delete("owner", &DeleteParams::background()).await.unwrap();
        cluster.until_gone::<ConfigMap>("child").await;
        cluster.reset(&snapshot).await;
    }
}

#[tokio::test]
async fn programs_outside_can_look_in() {
    let cluster = TestCluster::builder().profile(Profile::Bare).start().await;
    cluster.create::<ConfigMap>(config_map("seen", "1")).await;
    assert!(cluster.url().starts_with("https://127.0.0.1:"));
    assert_eq!(cluster.url(), cluster.kubeconfig().server, "it listens once");
    let file = KubeconfigFile::from_yaml(&cluster.kubeconfig().to_string()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    until(api, |objects: &[ConfigMap]| objects.iter().any(|object| object.name_any() == "seen")).await;
    cluster.stop().await;
}
