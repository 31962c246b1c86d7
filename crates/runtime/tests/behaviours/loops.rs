//! What holds of hot loops: they are noticed, the field is named, and they cool down.

use crate::notes::{Note, app, cluster_with, message, note, says, settled, write};
use windlass::kube::api::{Patch, PatchParams};
use windlass::prelude::*;
use windlass::serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_over_a_field_is_noticed_named_and_cooled_down() {
    let (cluster, running) = cluster_with(app()).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("n", "mine")).await;
    settled(&notes, "n").await;

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
    let before = cluster.api::<ConfigMap>().get("n").await.unwrap();
    opponent.abort();
    cluster.patch::<Note>("n", json!({"metadata": {"labels": {"look": "again"}}})).await;
    write(&notes, note("other", "hello")).await;
    settled(&notes, "other").await;
    let after = cluster.api::<ConfigMap>().get("n").await.unwrap();
    assert_eq!(before.data.unwrap()["text"], "theirs");
    assert_eq!(after.data.unwrap()["text"], "theirs");
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
