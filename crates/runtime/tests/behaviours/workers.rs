//! What holds of workers: whatever becomes of one object, the others are served.

use std::sync::Arc;
use std::time::Duration;

use crate::notes::{Note, Running, app, cluster_with, edit, message, note, says, settled, write};
use windlass::Program;
use windlass::prelude::*;
use windlass::serde_json::json;
use windlass_runtime::{Controller, Manager, ManagerConfig};
use windlass_testkit::TestCluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_for_one_object_leaves_the_others_untouched_and_is_told() {
    let (cluster, running) = cluster_with(app().workers(1)).await;
    let notes = cluster.api::<Note>();
    write(&notes, note("bad", "panic")).await;
    let bad = says(&notes, "bad", "Ready", "ReconcilePanicked").await;
    assert_eq!(message(&bad, "Ready"), "panic: the note says so");
    let event = cluster.until_event("bad", "ReconcilePanicked").await;
    assert_eq!(event.message.as_deref(), Some("panic: the note says so"));

    write(&notes, note("good", "hello")).await;
    settled(&notes, "good").await;
    assert!(running.metric(r#"controller_runtime_reconcile_panics_total{controller="note"}"#).unwrap() >= 1.0);

    edit(&notes, "bad", json!({"spec": {"text": "calm"}})).await;
    settled(&notes, "bad").await;
    running.end().await;
}

/// Never comes back for notes that say so.
struct Sleeper;

impl Reconcile for Sleeper {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, cx: &Context<Note>) -> Result<Action, Error> {
        if note.spec.text == "sleep" {
            std::future::pending::<()>().await;
        }
        cx.events().record(&*note, &(), Event::normal("Looked", "at it"));
        Ok(Action::Await)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_its_deadline_is_dropped_and_told() {
    let cluster = TestCluster::start().await;
    cluster.define(app().crds()).await;
    let mut manager = Manager::new(cluster.client(), ManagerConfig::new("test"));
    let controller = Controller::of(&manager, Sleeper).workers(1).deadline(Duration::from_millis(50));
    manager.add(controller);
    let running = Running::start(manager);
    let notes = cluster.api::<Note>();
    write(&notes, note("bad", "sleep")).await;
    write(&notes, note("good", "hello")).await;
    let event = cluster.until_event("bad", "ReconcileTimedOut").await;
    assert_eq!(event.message.as_deref(), Some("did not finish within 50ms"));
    cluster.until_event("good", "Looked").await;
    assert!(running.metric(r#"controller_runtime_reconcile_timeouts_total{controller="note"}"#).unwrap() >= 1.0);
    running.end().await;
}
