//! What holds of hot loops: they are noticed, the field is named, and they cool down.

use std::sync::Arc;

use crate::notes::{Note, Running, app, cluster_with, edit, message, note, says, write};
use windlass::App;
use windlass::kube::api::{Patch, PatchParams};
use windlass::kube::{Api, Resource as _};
use windlass::prelude::*;
use windlass::runtime::engine::Style;
use windlass::serde_json::json;
use windlass_testkit::TestCluster;

/// Lets an operator that keeps a note in a ConfigMap fight over it; what becomes of that holds however it is written.
async fn fight<O: Style<Resource = Note>>(app: App<O>) -> (TestCluster, Running) {
    let (cluster, running) = cluster_with(app).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "mine")).await;
    cluster.until("n", |_: &ConfigMap| true).await;

    // Somebody else wants it otherwise, each time that it is put right.
    let maps = cluster.api::<ConfigMap>();
    let opponent = tokio::spawn(async move {
        loop {
            let map = maps.get("n").await.unwrap();
            if map.data.unwrap()["text"] == "mine" {
                let patch = json!({"data": {"text": "theirs"}});
                maps.patch("n", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    let hot = says(&notes, "n", "Degraded", "HotLoop").await;
    let text = message(&hot, "Degraded");
    let expected = r#"data.text of ConfigMap n was changed from "theirs" to "mine" 5 times"#;
    assert!(text.starts_with(expected), "{text}");
    let event = cluster.until_event("n", "HotLoop").await;
    assert!(event.message.unwrap().contains("data.text of ConfigMap n"));
    assert_eq!(running.metric(r#"operator_hot_loops_total{kind="ConfigMap"}"#), Some(1.0));

    // It is not fought over while it cools down: what others write stays.
    cluster.until("n", |map: &ConfigMap| map.data.as_ref().unwrap()["text"] == "theirs").await;
    opponent.abort();
    edit(&notes, "n", json!({"metadata": {"labels": {"look": "again"}}})).await;
    write(&notes, note("other", "hello")).await;
    cluster.until("other", |_: &ConfigMap| true).await;
    let after = cluster.api::<ConfigMap>().get("n").await.unwrap();
    assert_eq!(after.data.unwrap()["text"], "theirs");
    (cluster, running)
}

/// A new spec may be what ends the loop: it is acted on at once.
async fn a_new_spec_counts(cluster: &TestCluster) {
    edit(&cluster.api(), "n", json!({"spec": {"text": "new"}})).await;
    cluster.until("n", |map: &ConfigMap| map.data.as_ref().unwrap()["text"] == "new").await;
}

fn map_of(note: &Note) -> ConfigMap {
    let metadata =
        ObjectMeta { owner_references: Some(vec![note.controller_owner_ref(&()).unwrap()]), ..named(note.name_any()) };
    ConfigMap { metadata, data: Some([("text".to_owned(), note.spec.text.clone())].into()), ..ConfigMap::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_over_a_field_is_noticed_named_and_cooled_down() {
    let (cluster, running) = fight(app()).await;
    a_new_spec_counts(&cluster).await;
    says(&cluster.api(), "n", "Degraded", "LoopEnded").await;
    running.end().await;
}

async fn keep(note: Arc<Note>, cx: HandlerContext<Note>) -> Result<(), Failure> {
    cx.apply(ConfigMap { metadata: named(note.name_any()), ..map_of(&note) }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_that_fights_cools_down_too() {
    let often = Duration::from_millis(5);
    let app = windlass::handlers::<Note>("note-operator").owns::<ConfigMap>().timer("keep", often, keep);
    let (cluster, running) = fight(app).await;
    a_new_spec_counts(&cluster).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_fights_cools_down_too() {
    let guard = async |note: Arc<Note>, cx: HandlerContext<Note>| {
        while cx.sleep(Duration::from_millis(5)).await {
            keep(note.clone(), cx.clone()).await?;
        }
        Ok(())
    };
    let guard = move |note, cx| guard(note, cx);
    let (_cluster, running) =
        fight(windlass::handlers::<Note>("note-operator").owns::<ConfigMap>().daemon("guard", guard)).await;
    running.end().await;
}

struct Keeper;

impl Reconcile for Keeper {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, cx: &Context<Note>) -> Result<Action, Error> {
        let maps: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let params = PatchParams::apply(cx.name()).force();
        maps.patch(&note.name_any(), &params, &Patch::Apply(map_of(&note))).await?;
        Ok(Action::Await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_that_fights_cools_down_too() {
    let (cluster, running) = fight(windlass::reconcile(Keeper).owns::<ConfigMap>()).await;
    a_new_spec_counts(&cluster).await;
    says(&cluster.api(), "n", "Degraded", "LoopEnded").await;
    running.end().await;
}

/// What a restless resource reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RestlessStatus {
    /// Never the same twice.
    pub(crate) seen: String,
}

/// A resource whose status is new in every pass: the classic mistake.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "notes.example.com", version = "v1", kind = "Restless", status = RestlessStatus)]
pub(crate) struct RestlessSpec {}

struct Restlessness;

impl Operator for Restlessness {
    type Resource = Restless;

    fn desired(&self, _: &Restless, world: &World) -> Outcome<RestlessStatus> {
        Desired::new().status(RestlessStatus { seen: world.now().to_string() }).settled()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_is_new_in_every_pass_is_noticed() {
    let (cluster, running) = cluster_with(windlass::operator(Restlessness)).await;
    cluster.create::<Restless>(json!({"metadata": {"name": "r"}, "spec": {}})).await;
    let event = cluster.until_event("r", "HotLoop").await;
    let text = event.message.unwrap();
    assert!(text.starts_with("status.seen of Restless r has got a new value 60 times"), "{text}");
    running.end().await;
}
