//! An operator of notes on clusters in this process: what the tests of the runtime share.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::kube::api::{Patch, PatchParams, PostParams};
use windlass::kube::{Api, Client};
use windlass::prelude::*;
use windlass::serde_json::Value;
use windlass::{App, Program, condition};
use windlass_runtime::engine::Style;
use windlass_runtime::tap::Tap;
use windlass_runtime::{Health, Manager, ManagerConfig, Metrics, Namespaces, RunError};
use windlass_testkit::{TestCluster, until};

/// Far more than anything here takes; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A note, kept in a ConfigMap, and in a Secret if it is secret.
#[derive(Resource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[resource(group = "notes.example.com", version = "v1", kind = "Note")]
pub(crate) struct NoteSpec {
    /// What to keep; `panic` makes the operator panic.
    pub(crate) text: String,
    /// Whether to keep it in a Secret, too.
    #[serde(default)]
    pub(crate) secret: bool,
    /// A ConfigMap whose `text` is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) appendix: Option<String>,
}

pub(crate) struct Notes;

impl Operator for Notes {
    type Resource = Note;

    fn desired(&self, note: &Note, world: &World) -> Outcome<NoStatus> {
        assert!(note.spec.text != "panic", "the note says so");
        let mut text = note.spec.text.clone();
        if let Some(name) = &note.spec.appendix {
            let Some(appendix) = world.get::<ConfigMap>(note.namespace().as_deref(), name) else {
                return Outcome::waiting("AppendixMissing", format!("there is no ConfigMap {name}"));
            };
            text += appendix.data.as_ref().and_then(|data| data.get("text")).map_or("", String::as_str);
        }
        let data = BTreeMap::from([("text".to_owned(), text)]);
        let config_map = ConfigMap { metadata: named(note.name_any()), data: Some(data.clone()), ..Default::default() };
        let secret = || Secret { metadata: named(note.name_any()), string_data: Some(data), ..Default::default() };
        Desired::new().child(config_map).child_if(note.spec.secret, secret).settled()
    }
}

/// The operator of notes.
pub(crate) fn app() -> App<Notes> {
    windlass::operator(Notes).owns::<ConfigMap>().owns::<Secret>()
}

/// A manager at work.
pub(crate) struct Running {
    pub(crate) tap: Tap,
    pub(crate) metrics: Metrics,
    pub(crate) health: Health,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// Puts a manager to work.
    pub(crate) fn start(manager: Manager) -> Self {
        let (tap, metrics, health) = (manager.tap().clone(), manager.metrics().clone(), manager.health().clone());
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.run(stop.clone()));
        Self { tap, metrics, health, stop, task }
    }

    /// Ends it in order.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Ends it as a power cut does.
    pub(crate) async fn kill(self) {
        self.tap.fence();
        self.task.abort();
        let _ = self.task.await;
    }

    /// How it ended by itself.
    pub(crate) async fn outcome(self) -> Result<(), RunError> {
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap()
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, series: &str) -> Option<f64> {
        let text = self.metrics.render();
        let line = text.lines().find_map(|line| line.strip_prefix(series))?;
        line.trim().parse().ok()
    }

    /// Waits until a check is well, or fails with a text that has `words` in it.
    pub(crate) async fn reports(&self, check: &str, words: Option<&str>) {
        let says = || {
            let report = self.health.report();
            let found = report.iter().find(|(name, _)| name == check).map(|(_, trouble)| trouble.clone());
            match (found, words) {
                (Some(Some(trouble)), Some(words)) => trouble.contains(words),
                (Some(None), None) => true,
                _ => false,
            }
        };
        eventually(&format!("{check} says {words:?}"), says).await;
    }
}

/// Waits for what nothing tells of.
pub(crate) async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let poll = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, poll).await.is_ok(), "not within {PATIENCE:?}: {what}");
}

/// A manager of this app.
pub(crate) fn manager_of<O: Style>(app: &App<O>, client: Client, namespaces: Namespaces) -> Manager {
    let mut manager = Manager::new(client, ManagerConfig::new(app.name()));
    app.install(&mut manager, namespaces);
    manager
}

/// A cluster that knows notes, and the operator at work in it.
pub(crate) async fn cluster_with<O: Style>(app: App<O>) -> (TestCluster, Running) {
    let cluster = TestCluster::start().await;
    cluster.define(app.crds()).await;
    let running = Running::start(manager_of(&app, cluster.client(), Namespaces::all()));
    (cluster, running)
}

/// A note in the namespace `default`.
pub(crate) fn note(name: &str, text: &str) -> Note {
    Note::new(name, NoteSpec { text: text.into(), secret: false, appendix: None })
}

pub(crate) async fn write(api: &Api<Note>, note: Note) {
    api.create(&PostParams::default(), &note).await.unwrap();
}

pub(crate) async fn edit(api: &Api<Note>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// Waits until a condition of the note's present generation has this reason.
pub(crate) async fn says(api: &Api<Note>, name: &str, type_: &str, reason: &str) -> Note {
    let is_it = |note: &Note| {
        let conditions = note.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        note.name_any() == name
            && condition::find(conditions, type_)
                .is_some_and(|it| it.reason == reason && it.observed_generation == note.metadata.generation)
    };
    let all = until(api.clone(), |notes: &[Note]| notes.iter().any(is_it)).await;
    all.into_iter().find(is_it).unwrap()
}

pub(crate) async fn settled(api: &Api<Note>, name: &str) -> Note {
    says(api, name, "Ready", "Settled").await
}

/// The message of a condition.
pub(crate) fn message(note: &Note, type_: &str) -> String {
    let conditions = &note.status.as_ref().unwrap().conditions;
    condition::find(conditions, type_).unwrap().message.clone()
}
