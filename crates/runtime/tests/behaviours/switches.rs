//! What holds of the switches that every resource has: pause, force, restart.

use crate::notes::{Note, Running, app, cluster_with, edit, eventually, note, says, settled, write};
use windlass::kube::api::{Patch, PatchParams};
use windlass::prelude::*;
use windlass::serde_json::{Value, json};

async fn annotate<K: windlass_testkit::Kind>(
    cluster: &windlass_testkit::TestCluster,
    name: &str,
    key: &str,
    value: Value,
) {
    let patch = json!({"metadata": {"annotations": {key: value}}});
    cluster.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn applies(running: &Running) -> usize {
    let entries = running.tap.journal().writes();
    entries.iter().filter(|entry| entry.call.verb == "patch" && entry.call.resource == "configmaps").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_resource_is_left_alone_until_it_is_resumed() {
    let (cluster, running) = cluster_with(app()).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "hello")).await;
    settled(&notes, "n").await;
    annotate::<Note>(&cluster, "n", "windlass.dev/paused", "true".into()).await;
    says(&notes, "n", "Paused", "Paused").await;
    eventually("it is counted", || running.metric(r#"operator_paused_resources{controller="note"}"#) == Some(1.0))
        .await;
    edit(&notes, "n", json!({"spec": {"text": "bye"}})).await;
    says(&notes, "n", "Paused", "Paused").await;
    assert_eq!(cluster.api::<ConfigMap>().get("n").await.unwrap().data.unwrap()["text"], "hello");

    annotate::<Note>(&cluster, "n", "windlass.dev/paused", Value::Null).await;
    says(&notes, "n", "Paused", "Resumed").await;
    assert_eq!(cluster.api::<ConfigMap>().get("n").await.unwrap().data.unwrap()["text"], "bye");
    eventually("it is counted", || running.metric(r#"operator_paused_resources{controller="note"}"#) == Some(0.0))
        .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_of_the_force_switch_applies_everything_anew_once() {
    let (cluster, running) = cluster_with(app()).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "hello")).await;
    settled(&notes, "n").await;
    assert_eq!(applies(&running), 1);
    for (value, total) in [("one", 2), ("two", 3)] {
        annotate::<Note>(&cluster, "n", "windlass.dev/reconcile", value.into()).await;
        let wanted = format!("as asked by the value {value}");
        cluster
            .until("n", |note: &Note| {
                let conditions = &note.status.as_ref().unwrap().conditions;
                windlass::condition::find(conditions, "Forced").is_some_and(|it| it.message == wanted)
            })
            .await;
        assert_eq!(applies(&running), total, "everything is as wanted, and applied all the same");
    }
    // Something else that changes does not force again.
    edit(&notes, "n", json!({"metadata": {"labels": {"a": "b"}}})).await;
    write(&notes, note("marker", "hello")).await;
    settled(&notes, "marker").await;
    assert_eq!(applies(&running), 4, "that of the marker");
    assert_eq!(running.metric(r#"operator_switches_total{controller="note",switch="force"}"#), Some(2.0));
    running.end().await;
}

/// A program that runs.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "notes.example.com", version = "v1", kind = "Server")]
pub(crate) struct ServerSpec {}

struct Servers;

impl Operator for Servers {
    type Resource = Server;

    fn desired(&self, server: &Server, _: &World) -> Outcome<NoStatus> {
        let labels = std::collections::BTreeMap::from([("server".to_owned(), server.name_any())]);
        let container = Container { name: "server".into(), image: Some("server".into()), ..Container::default() };
        let spec = DeploymentSpec {
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        };
        let deployment = Deployment { metadata: named(server.name_any()), spec: Some(spec), ..Deployment::default() };
        Desired::new().child(deployment).settled()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_value_of_the_restart_switch_rolls_the_workloads_and_taking_it_away_does_not() {
    let (cluster, running) = cluster_with(windlass::operator(Servers).owns::<Deployment>()).await;
    cluster.create::<Server>(json!({"metadata": {"name": "s"}, "spec": {}})).await;
    let restarted_at = |deployment: &Deployment| {
        let template = deployment.spec.as_ref().unwrap().template.metadata.clone().unwrap();
        template.annotations.unwrap_or_default().remove("kubectl.kubernetes.io/restartedAt")
    };
    cluster.until("s", |deployment: &Deployment| restarted_at(deployment).is_none()).await;
    annotate::<Server>(&cluster, "s", "kubectl.kubernetes.io/restartedAt", "today".into()).await;
    cluster.until("s", |deployment: &Deployment| restarted_at(deployment).as_deref() == Some("today")).await;
    let served = |server: &Server| {
        let conditions = server.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        windlass::condition::find(conditions, "Restarted").is_some_and(|it| it.message.ends_with("today"))
    };
    cluster.until("s", served).await;
    let generation = cluster.api::<Deployment>().get("s").await.unwrap().metadata.generation;
    annotate::<Server>(&cluster, "s", "kubectl.kubernetes.io/restartedAt", Value::Null).await;
    cluster.create::<Server>(json!({"metadata": {"name": "marker"}, "spec": {}})).await;
    cluster.until("marker", |_: &Deployment| true).await;
    let deployment = cluster.api::<Deployment>().get("s").await.unwrap();
    assert_eq!((deployment.metadata.generation, restarted_at(&deployment).as_deref()), (generation, Some("today")));
    assert_eq!(running.metric(r#"operator_switches_total{controller="server",switch="restart"}"#), Some(1.0));
    running.end().await;
}
