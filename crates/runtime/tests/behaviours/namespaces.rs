//! What holds of namespaces: an operator of some serves those, and new ones as they come.

use crate::notes::{Note, Running, app, eventually, manager_of, note, settled, write};
use windlass::Program;
use windlass::k8s_openapi::api::core::v1::Namespace;
use windlass::kube::Api;
use windlass::kube::api::{Patch, PatchParams, PostParams};
use windlass::kube::core::Expression;
use windlass::prelude::*;
use windlass::serde_json::{Value, from_value, json};
use windlass_runtime::{Manager, ManagerConfig, Namespaces};
use windlass_testkit::TestCluster;

async fn cluster_with(namespaces: &[&str]) -> TestCluster {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    for name in namespaces {
        let namespace: Namespace = from_value(json!({"metadata": {"name": name}})).unwrap();
        Api::all(cluster.client()).create(&PostParams::default(), &namespace).await.unwrap();
    }
    cluster
}

async fn label(cluster: &TestCluster, namespace: &str, team: Value) {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let patch = json!({"metadata": {"labels": {"team": team}}});
    namespaces.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_added_at_run_time_is_served_and_one_taken_away_is_left_alone() {
    let cluster = cluster_with(&["a", "b", "c"]).await;
    let namespaces = Namespaces::only(["a", "b"]);
    let running = Running::start(manager_of(&app(), cluster.client(), namespaces.clone()));
    let api = |namespace: &str| cluster.api_in::<Note>(namespace);
    for namespace in ["a", "b", "c"] {
        write(&api(namespace), note("n", "hello")).await;
    }
    settled(&api("a"), "n").await;
    settled(&api("b"), "n").await;
    assert_eq!(api("c").get("n").await.unwrap().status.map(|status| status.conditions.len()), None);
    let calls = running.tap.journal().entries();
    let looked_wider = |namespace: Option<&str>| namespace.is_none() || namespace == Some("c");
    let wider = calls.iter().find(|entry| looked_wider(entry.call.namespace.as_deref()));
    assert!(wider.is_none(), "rights in a and b are enough: {wider:?}");

    namespaces.add("c");
    settled(&api("c"), "n").await;

    namespaces.remove("a");
    let is_watched = || running.health.report().iter().any(|(check, _)| check.ends_with(" in a"));
    eventually("a is not watched", || !is_watched()).await;
    write(&api("a"), note("late", "hello")).await;
    write(&api("b"), note("late", "hello")).await;
    settled(&api("b"), "late").await;
    assert!(api("a").get("late").await.unwrap().status.is_none());
    assert!(cluster.api_in::<ConfigMap>("a").get_opt("n").await.unwrap().is_some(), "what was made there stays");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_served_by_their_labels() {
    let cluster = cluster_with(&["a", "b"]).await;
    label(&cluster, "a", "blue".into()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("note-operator"));
    let blue = Expression::Equal("team".into(), "blue".into()).into();
    let namespaces = Namespaces::labelled(&manager.handle(), blue);
    app().install(&mut manager, namespaces);
    let running = Running::start(manager);
    let api = |namespace: &str| cluster.api_in::<Note>(namespace);
    write(&api("b"), note("n", "hello")).await;
    write(&api("a"), note("n", "hello")).await;
    settled(&api("a"), "n").await;
    assert!(api("b").get("n").await.unwrap().status.is_none());

    label(&cluster, "b", "blue".into()).await;
    settled(&api("b"), "n").await;
    label(&cluster, "a", Value::Null).await;
    let is_watched = || running.health.report().iter().any(|(check, _)| check.ends_with(" in a"));
    eventually("a is not watched", || !is_watched()).await;
    running.end().await;
}
