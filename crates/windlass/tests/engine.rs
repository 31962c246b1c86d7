//! What the engine does with intents, on a cluster.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::TryStreamExt;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use windlass::kube::runtime::wait::await_condition;
use windlass::kube::runtime::{WatchStreamExt, watcher};
use windlass::kube::{Api, Client};
use windlass::prelude::*;
use windlass::runtime::tap::{Intercept, Tap};
use windlass::runtime::{Controller, Manager, ManagerConfig, Namespaces, RunError};
use windlass::serde_json::{Value, json};
use windlass::{Program, condition, names};
use windlass_testkit::{PATIENCE, TestCluster};

/// A note, kept in one ConfigMap or two.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, Schema)]
#[resource(group = "notes.example.com", version = "v1", kind = "Note")]
pub struct NoteSpec {
    /// What to keep.
    pub text: String,
    /// Whether to keep a copy.
    #[serde(default)]
    pub copy: bool,
}

struct Notes {
    cleanup_works: Arc<AtomicBool>,
}

impl Operator for Notes {
    type Resource = Note;

    fn desired(&self, note: &Note, _: &World) -> Outcome<NoStatus> {
        match note.spec.text.as_str() {
            "" => return Outcome::invalid("spec.text is empty: write something"),
            "later" => return Outcome::waiting("NotYet", "waits for a better text"),
            _ => {}
        }
        let config_map = |name: String| ConfigMap {
            metadata: named(name),
            data: Some([("text".to_owned(), note.spec.text.clone())].into()),
            ..ConfigMap::default()
        };
        Desired::new()
            .child(config_map(note.name_any()))
            .child_if(note.spec.copy, || config_map(format!("{}-copy", note.name_any())))
            .settled()
    }
}

impl Cleanup for Notes {
    async fn cleanup(&self, _: &Note, _: &Context<Note>) -> Result<(), Error> {
        if self.cleanup_works.load(Ordering::SeqCst) { Ok(()) } else { Err(Error::failed("the archive is closed")) }
    }
}

/// Counts the words of notes into an annotation: a controller beside the operator, on the same caches.
struct WordCount;

impl Reconcile for WordCount {
    type Resource = Note;

    async fn reconcile(&self, note: Arc<Note>, cx: &Context<Note>) -> Result<Action, Error> {
        let words = note.spec.text.split_whitespace().count().to_string();
        if note.annotations().get("words") == Some(&words) || note.metadata.deletion_timestamp.is_some() {
            return Ok(Action::Await);
        }
        let notes: Api<Note> = Api::namespaced(cx.client(), &note.namespace().unwrap());
        let patch = json!({"metadata": {"annotations": {"words": words}}});
        notes.patch(&note.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let seen = cx.cache().get(&ObjectKey::of(&*note)).unwrap();
        assert_eq!(seen.annotations().get("words"), Some(&words), "an own write is in the cache when it returns");
        Ok(Action::Await)
    }
}

struct Fixture {
    cluster: TestCluster,
    client: Client,
    cleanup_works: Arc<AtomicBool>,
    tap: Tap,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl Fixture {
    async fn start() -> Self {
        let cluster = TestCluster::start().await;
        let client = cluster.client();
        let cleanup_works = Arc::new(AtomicBool::new(true));
        let app = windlass::operator(Notes { cleanup_works: cleanup_works.clone() })
            .owns::<ConfigMap>()
            .cleanup()
            .with(|manager, _, _| {
                let controller = Controller::of(manager, WordCount).named("words");
                manager.add(controller);
            });
        cluster.define(app.crds()).await;
        let mut manager = Manager::new(client.clone(), ManagerConfig::new(app.name()));
        app.install(&mut manager, Namespaces::all());
        let (tap, stop) = (manager.tap().clone(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        Self { cluster, client, cleanup_works, tap, stop, running }
    }

    fn notes(&self) -> Api<Note> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn write(&self, name: &str, text: &str, copy: bool) {
        let note = Note::new(name, NoteSpec { text: text.into(), copy });
        self.notes().create(&PostParams::default(), &note).await.unwrap();
    }

    async fn edit(&self, name: &str, patch: Value) {
        self.notes().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Waits until the condition of the note's present generation has this reason.
    async fn says(&self, name: &str, type_: &str, reason: &str) -> Note {
        let is_said = |note: &Note| {
            let status = note.status.as_ref();
            let found = status.and_then(|status| condition::find(&status.conditions, type_));
            found.is_some_and(|it| it.reason == reason && it.observed_generation == note.metadata.generation)
        };
        let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let found = async {
            let mut notes = std::pin::pin!(watcher(self.notes(), only).applied_objects());
            loop {
                let note = notes.try_next().await.unwrap().unwrap();
                if is_said(&note) {
                    return note;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap()
    }

    async fn gone(&self, name: &str) {
        let gone = await_condition(self.config_maps(), name, |object: Option<&ConfigMap>| object.is_none());
        tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap().unwrap();
        self.cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_wanted_is_pruned_but_only_by_a_complete_intent() {
    let fixture = Fixture::start().await;
    fixture.write("n", "hello", true).await;
    fixture.says("n", "Ready", "Settled").await;
    assert!(fixture.config_maps().get_opt("n-copy").await.unwrap().is_some());

    fixture.edit("n", json!({"spec": {"text": "later", "copy": false}})).await;
    fixture.says("n", "Ready", "NotYet").await;
    assert!(fixture.config_maps().get_opt("n-copy").await.unwrap().is_some(), "nothing was said about the copy");
    fixture.edit("n", json!({"spec": {"text": ""}})).await;
    let note = fixture.says("n", "Stalled", "Invalid").await;
    let conditions = note.status.unwrap().conditions;
    assert_eq!(condition::find(&conditions, "Stalled").unwrap().message, "spec.text is empty: write something");
    assert!(fixture.config_maps().get_opt("n-copy").await.unwrap().is_some());

    fixture.edit("n", json!({"spec": {"text": "again"}})).await;
    fixture.says("n", "Ready", "Settled").await;
    fixture.gone("n-copy").await;
    let kept = fixture.config_maps().get("n").await.unwrap();
    assert_eq!(kept.data.unwrap()["text"], "again");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_others_are_left_and_own_ones_are_put_right() {
    let fixture = Fixture::start().await;
    fixture.write("n", "hello", false).await;
    fixture.says("n", "Ready", "Settled").await;
    let patch = json!({"data": {"text": "changed", "theirs": "kept"}});
    fixture.config_maps().patch("n", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let is_right = |object: Option<&ConfigMap>| {
        object.and_then(|object| object.data.as_ref()).is_some_and(|data| data["text"] == "hello")
    };
    let right = await_condition(fixture.config_maps(), "n", is_right);
    let healed = tokio::time::timeout(PATIENCE, right).await.unwrap().unwrap().unwrap();
    assert_eq!(healed.data.unwrap()["theirs"], "kept");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_beside_the_operator_sees_its_own_writes_at_once() {
    let fixture = Fixture::start().await;
    fixture.write("n", "one two three", false).await;
    fixture.says("n", "Ready", "Settled").await;
    for (text, words) in [("one", "1"), ("one two", "2")] {
        fixture.edit("n", json!({"spec": {"text": text}})).await;
        let is_counted = move |note: Option<&Note>| {
            note.is_some_and(|note| note.annotations().get("words").is_some_and(|count| count == words))
        };
        let counted = await_condition(fixture.notes(), "n", is_counted);
        tokio::time::timeout(PATIENCE, counted).await.unwrap().unwrap();
    }
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_goes_when_its_cleanup_succeeds_and_not_before() {
    let fixture = Fixture::start().await;
    fixture.write("n", "hello", false).await;
    let note = fixture.says("n", "Ready", "Settled").await;
    assert_eq!(note.metadata.finalizers.as_deref(), Some([names::FINALIZER.to_owned()].as_slice()));

    fixture.cleanup_works.store(false, Ordering::SeqCst);
    fixture.notes().delete("n", &DeleteParams::default()).await.unwrap();
    let note = fixture.says("n", "DeletionBlocked", "CleanupFailed").await;
    let conditions = note.status.unwrap().conditions;
    assert_eq!(condition::find(&conditions, "DeletionBlocked").unwrap().message, "the archive is closed");

    fixture.cleanup_works.store(true, Ordering::SeqCst);
    let gone = await_condition(fixture.notes(), "n", |note: Option<&Note>| note.is_none());
    tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
    fixture.gone("n").await;
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_resource_is_not_cleaned_up_before_it_is_resumed() {
    let fixture = Fixture::start().await;
    fixture.write("n", "hello", false).await;
    fixture.says("n", "Ready", "Settled").await;
    fixture.edit("n", json!({"metadata": {"annotations": {names::PAUSED: "true"}}})).await;
    fixture.says("n", "Paused", "Paused").await;
    fixture.notes().delete("n", &DeleteParams::default()).await.unwrap();
    fixture.says("n", "DeletionBlocked", "Paused").await;
    assert_eq!(fixture.config_maps().get("n").await.unwrap().data.unwrap()["text"], "hello");

    fixture.cleanup_works.store(false, Ordering::SeqCst);
    fixture.edit("n", json!({"metadata": {"annotations": {names::PAUSED: null}}})).await;
    let note = fixture.says("n", "DeletionBlocked", "CleanupFailed").await;
    assert!(!condition::is_true(&note.status.unwrap().conditions, "Paused"), "it goes on, and says so");
    fixture.cleanup_works.store(true, Ordering::SeqCst);
    let gone = await_condition(fixture.notes(), "n", |note: Option<&Note>| note.is_none());
    tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap();
    fixture.end().await;
}

/// How a call fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It never arrives.
    Lost,
    /// It is carried out, but its answer never arrives.
    AnswerLost,
}

/// Makes the write with this number fail, counted from zero, once.
fn fail_one_write(number: usize, fault: Fault) -> (Intercept, Arc<AtomicUsize>) {
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let intercept: Intercept = Arc::new(move |call, request, next| {
        // Events are told in the background and may be lost without harm.
        let is_it = call.is_write() && call.resource != "events" && counted.fetch_add(1, Ordering::SeqCst) == number;
        match (is_it, fault) {
            (false, _) => next(request),
            (true, Fault::Lost) => Box::pin(async { Err("lost".into()) }),
            (true, Fault::AnswerLost) => Box::pin(async {
                next(request).await?;
                Err("the answer was lost".into())
            }),
        }
    });
    (intercept, writes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_any_one_write_is_overcome() {
    let fixture = Fixture::start().await;
    for fault in [Fault::Lost, Fault::AnswerLost] {
        for number in 0.. {
            let name = format!("n-{number}-{fault:?}").to_lowercase();
            let (intercept, writes) = fail_one_write(number, fault);
            fixture.tap.intercept(Some(intercept));
            fixture.write(&name, "hello", true).await;
            fixture.says(&name, "Ready", "Settled").await;
            fixture.edit(&name, json!({"spec": {"text": "bye", "copy": false}})).await;
            fixture.says(&name, "Ready", "Settled").await;
            fixture.gone(&format!("{name}-copy")).await;
            let kept = fixture.config_maps().get(&name).await.unwrap();
            assert_eq!(kept.data.unwrap()["text"], "bye", "{name}");
            fixture.notes().delete(&name, &DeleteParams::default()).await.unwrap();
            fixture.gone(&name).await;
            if writes.load(Ordering::SeqCst) <= number {
                assert!(number > 5, "only {number} writes were made");
                break;
            }
        }
    }
    fixture.end().await;
}
