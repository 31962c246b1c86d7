//! A `Reconcile` as a program: its permissions, its definition, and the switches that every operator has.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;
use windlass::kube::Api;
use windlass::kube::api::{Patch, PatchParams};
use windlass::prelude::*;
use windlass::runtime::{Manager, ManagerConfig, Metrics, Namespaces};
use windlass::serde_json::{Value, json};
use windlass::{Program, condition, names};
use windlass_testkit::{Kind, PATIENCE, TestCluster};

/// A program that runs.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "example.com", version = "v1", kind = "Server")]
pub struct ServerSpec {
    /// What it serves.
    pub text: String,
}

/// Keeps a Deployment for each Server, or a ConfigMap's text in its own annotations; counts its runs.
#[derive(Clone, Default)]
struct Count {
    runs: Arc<AtomicUsize>,
    forced: Arc<AtomicUsize>,
}

impl Count {
    fn run<K: windlass::runtime::Object>(&self, cx: &Context<K>) {
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.forced.fetch_add(usize::from(cx.is_forced()), Ordering::SeqCst);
    }
}

fn deployment(owner: &impl windlass::kube::Resource<DynamicType = ()>, text: &str) -> Value {
    let labels = json!({"server": owner.meta().name});
    let container = json!({"name": "server", "image": "nginx", "args": [text]});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": owner.meta().name, "ownerReferences": [owner.controller_owner_ref(&()).unwrap()]},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}

async fn apply<K: windlass::runtime::Object>(deployment: Value, cx: &Context<K>) -> Result<(), Error> {
    let api: Api<Deployment> = Api::namespaced(cx.client(), "default");
    let name = deployment["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &PatchParams::apply(cx.name()).force(), &Patch::Apply(&deployment)).await?;
    Ok(())
}

struct Servers(Count);

impl Reconcile for Servers {
    type Resource = Server;

    async fn reconcile(&self, server: Arc<Server>, cx: &Context<Server>) -> Result<Action, Error> {
        self.0.run(cx);
        apply(deployment(&*server, &server.spec.text), cx).await?;
        Ok(Action::Await)
    }
}

/// The same for a kind that has no status.
struct Maps(Count);

impl Reconcile for Maps {
    type Resource = ConfigMap;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context<ConfigMap>) -> Result<Action, Error> {
        let Some(text) = map.data.as_ref().and_then(|data| data.get("serve")) else { return Ok(Action::Await) };
        self.0.run(cx);
        apply(deployment(&*map, text), cx).await?;
        Ok(Action::Await)
    }
}

async fn start(program: &dyn Program) -> (TestCluster, Metrics) {
    let cluster = TestCluster::start().await;
    cluster.define(program.crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new(program.name()));
    program.install(&mut manager, Namespaces::all());
    let metrics = manager.metrics().clone();
    tokio::spawn(manager.run(CancellationToken::new()));
    (cluster, metrics)
}

/// Waits until a metric has this value: nothing tells of it.
async fn counts(metrics: &Metrics, series: &str, value: &str) {
    let is_so = || {
        let text = metrics.render();
        text.lines().find_map(|line| line.strip_prefix(series)).is_some_and(|it| it.trim() == value)
    };
    let poll = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, poll).await.is_ok(), "{series} is not {value}");
}

async fn annotate<K: Kind>(cluster: &TestCluster, name: &str, key: &str, value: Value) {
    cluster.patch::<K>(name, json!({"metadata": {"annotations": {key: value}}})).await;
}

fn text(deployment: &Deployment) -> String {
    let pod = deployment.spec.clone().unwrap().template.spec.unwrap();
    pod.containers[0].args.clone().unwrap().join(" ")
}

fn restarted_at(deployment: &Deployment) -> Option<String> {
    let template = deployment.spec.clone().unwrap().template.metadata.unwrap();
    template.annotations.unwrap_or_default().remove(names::RESTARTED_AT)
}

/// Waits until a condition of the server has this reason and message.
async fn says(cluster: &TestCluster, type_: &str, reason: &str, message: &str) {
    let is_it = |server: &Server| {
        let conditions = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        condition::find(conditions, type_).is_some_and(|it| it.reason == reason && it.message.contains(message))
    };
    cluster.until("s", is_it).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_a_reconcile_are_paused_forced_and_restarted() {
    let count = Count::default();
    let app = windlass::reconcile(Servers(count.clone())).owns::<Deployment>();
    let (cluster, metrics) = start(&app).await;
    cluster.create::<Server>(json!({"metadata": {"name": "s"}, "spec": {"text": "one"}})).await;
    cluster.until("s", |deployment: &Deployment| text(deployment) == "one").await;

    annotate::<Server>(&cluster, "s", names::PAUSED, "true".into()).await;
    says(&cluster, "Paused", "Paused", "nothing is touched").await;
    counts(&metrics, r#"operator_paused_resources{controller="server"}"#, "1").await;
    let runs = count.runs.load(Ordering::SeqCst);
    cluster.patch::<Server>("s", json!({"spec": {"text": "two"}})).await;
    let seen = cluster.api::<Server>().get("s").await.unwrap().metadata.generation;
    let told = |server: &Server| {
        let conditions = server.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        condition::find(&conditions, "Paused").is_some_and(|it| it.observed_generation == seen)
    };
    cluster.until("s", told).await;
    assert_eq!(count.runs.load(Ordering::SeqCst), runs);
    annotate::<Server>(&cluster, "s", names::PAUSED, Value::Null).await;
    says(&cluster, "Paused", "Resumed", "").await;
    cluster.until("s", |deployment: &Deployment| text(deployment) == "two").await;
    counts(&metrics, r#"operator_paused_resources{controller="server"}"#, "0").await;

    for (value, total) in [("a", 1), ("b", 2)] {
        annotate::<Server>(&cluster, "s", names::FORCE, value.into()).await;
        says(&cluster, "Forced", "Forced", &format!("as asked by the value {value}")).await;
        assert_eq!(count.forced.load(Ordering::SeqCst), total, "once for each value");
    }
    counts(&metrics, r#"operator_switches_total{controller="server",switch="force"}"#, "2").await;

    annotate::<Server>(&cluster, "s", names::RESTARTED_AT, "today".into()).await;
    says(&cluster, "Restarted", "Restarted", "today").await;
    cluster.until("s", |deployment: &Deployment| restarted_at(deployment).as_deref() == Some("today")).await;
    counts(&metrics, r#"operator_switches_total{controller="server",switch="restart"}"#, "1").await;
    says(&cluster, "Forced", "Forced", "b").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_object_is_not_reconciled_for_its_deletion() {
    let count = Count::default();
    let app = windlass::reconcile(Servers(count.clone())).owns::<Deployment>();
    let (cluster, _) = start(&app).await;
    let metadata = json!({"name": "s", "finalizers": ["example.com/mine"], "annotations": {names::PAUSED: "true"}});
    cluster.create::<Server>(json!({"metadata": metadata, "spec": {"text": "one"}})).await;
    says(&cluster, "Paused", "Paused", "nothing is touched").await;
    cluster.api::<Server>().delete("s", &Default::default()).await.unwrap();
    // Another object that comes after it is served: the deletion was looked at.
    cluster.create::<Server>(json!({"metadata": {"name": "marker"}, "spec": {"text": "one"}})).await;
    cluster.until("marker", |deployment: &Deployment| text(deployment) == "one").await;
    assert!(cluster.api::<Deployment>().get_opt("s").await.unwrap().is_none(), "it was never reconciled");
    annotate::<Server>(&cluster, "s", names::PAUSED, Value::Null).await;
    cluster.until("s", |deployment: &Deployment| text(deployment) == "one").await;
    says(&cluster, "Paused", "Resumed", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_a_status_are_too_and_events_tell_of_it() {
    let count = Count::default();
    let app = windlass::controller(Maps(count.clone())).owns::<Deployment>();
    assert!(app.crds().is_empty());
    let (cluster, metrics) = start(&app).await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"serve": "one"}})).await;
    cluster.until("m", |deployment: &Deployment| text(deployment) == "one").await;
    annotate::<ConfigMap>(&cluster, "m", names::PAUSED, "true".into()).await;
    cluster.until_event("m", "Paused").await;
    counts(&metrics, r#"operator_paused_resources{controller="configmap"}"#, "1").await;
    annotate::<ConfigMap>(&cluster, "m", names::PAUSED, Value::Null).await;
    cluster.until_event("m", "Resumed").await;
    annotate::<ConfigMap>(&cluster, "m", names::FORCE, "now".into()).await;
    cluster.until_event("m", "Forced").await;
    annotate::<ConfigMap>(&cluster, "m", names::RESTARTED_AT, "today".into()).await;
    cluster.until_event("m", "Restarted").await;
    let deployment = cluster.api::<Deployment>().get("m").await.unwrap();
    assert_eq!(restarted_at(&deployment).as_deref(), Some("today"));
    assert_eq!(count.forced.load(Ordering::SeqCst), 1);
}

#[test]
fn its_definition_and_permissions_follow_from_its_kinds() {
    let app = windlass::reconcile(Servers(Count::default())).owns::<Deployment>();
    assert_eq!(app.name(), "server-operator");
    let names: Vec<String> = app.crds().iter().map(|definition| definition.name_any()).collect();
    assert_eq!(names, ["servers.example.com"]);
    let rules: Vec<String> = (app.rules().iter())
        .map(|rule| format!("{} {}", rule.resources.clone().unwrap().join(","), rule.verbs.join(",")))
        .collect();
    let expected = [
        "servers get,list,watch",
        "servers/status patch",
        "servers/finalizers update",
        "events create,patch",
        "deployments get,list,watch,create,patch,delete",
    ];
    assert_eq!(rules, expected);
    let foreign = windlass::controller(Maps(Count::default()));
    assert!(
        foreign.rules().iter().all(|rule| !rule.resources.clone().unwrap().contains(&"configmaps/status".to_owned()))
    );
}
