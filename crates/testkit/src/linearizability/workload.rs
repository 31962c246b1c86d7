//! Clients that write and read a few objects at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::history::{Action, History, Outcome, Version};

/// What the names of the objects begin with, and what marks them.
const PREFIX: &str = "linearizable-";
const LABEL: &str = "windlass.dev/linearizable";
/// How long an answer may take; one that is later is none.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// A pause after no answer at all, so that a server that starts again finds somebody.
const PAUSE: Duration = Duration::from_millis(50);

/// What is asked of a server, and by how many.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Clients at once.
    pub clients: usize,
    /// Operations of each.
    pub operations: usize,
    /// Objects that they share.
    pub objects: usize,
    /// The namespace of the objects.
    pub namespace: String,
}

impl Default for Workload {
    fn default() -> Self {
        Self { clients: 8, operations: 100, objects: 5, namespace: "default".to_owned() }
    }
}

impl Workload {
    /// Lets all clients do what they do, and gives what they did.
    pub async fn run(&self, client: &Client) -> Arc<History> {
        let history = Arc::new(History::default());
        let written = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..self.clients)
            .map(|number| {
                let worker = Worker {
                    api: Api::namespaced(client.clone(), &self.namespace),
                    history: Arc::clone(&history),
                    written: Arc::clone(&written),
                    objects: self.objects,
                    last: BTreeMap::new(),
                };
                tokio::spawn(worker.run(number, self.operations))
            })
            .collect();
        for task in tasks {
            task.await.expect("a client of a workload does not panic");
        }
        history
    }
}

/// One client.
struct Worker {
    api: Api<ConfigMap>,
    history: Arc<History>,
    written: Arc<AtomicU64>,
    objects: usize,
    /// What it last saw of each object; `None` if it is not there.
    last: BTreeMap<String, Option<u64>>,
}

impl Worker {
    async fn run(mut self, number: usize, operations: usize) {
        for step in 0..operations {
            // Spread without chance: the interleaving is what differs.
            let mix = number.wrapping_mul(31).wrapping_add(step.wrapping_mul(17));
            let key = format!("{PREFIX}{}", mix / 7 % self.objects.max(1));
            match mix % 20 {
                0..5 => self.get(&key).await,
                5 => self.list().await,
                6 => self.write(&key, true).await,
                _ => self.write(&key, false).await,
            }
        }
    }

    async fn get(&mut self, key: &str) {
        let begun = self.history.now();
        let outcome = match self.timed(self.api.get_opt(key)).await {
            Some(Ok(found)) => {
                let found = found.as_ref().and_then(version);
                self.last.insert(key.to_owned(), found.as_ref().map(|version| version.revision));
                Outcome::Found(found)
            }
            _ => Outcome::Unknown,
        };
        self.history.note(begun, Action::Get { key: key.to_owned() }, outcome);
    }

    async fn list(&mut self) {
        let begun = self.history.now();
        let outcome = match self.timed(self.api.list(&ListParams::default().labels(LABEL))).await {
            Some(Ok(list)) => {
                let revision = list.metadata.resource_version.as_deref().and_then(|text| text.parse().ok());
                let all = list.items.iter().filter_map(|item| Some((item.name_any(), version(item)?))).collect();
                Outcome::Listed(revision.unwrap_or_default(), all)
            }
            _ => Outcome::Unknown,
        };
        self.history.note(begun, Action::List, outcome);
    }

    /// Writes on top of what it last saw; what is refused it reads again.
    async fn write(&mut self, key: &str, deletes: bool) {
        let Some(&expected) = self.last.get(key) else { return self.get(key).await };
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let value = (!deletes || expected.is_none()).then(|| format!("v{number}"));
        let begun = self.history.now();
        let outcome = match (&value, expected) {
            (Some(value), None) => self.create(key, value).await,
            (Some(value), Some(revision)) => self.replace(key, value, revision).await,
            (None, revision) => self.delete(key, revision.unwrap_or_default()).await,
        };
        match &outcome {
            Outcome::Written(version) => drop(self.last.insert(key.to_owned(), Some(version.revision))),
            Outcome::Deleted => drop(self.last.insert(key.to_owned(), None)),
            _ => drop(self.last.remove(key)),
        }
        self.history.note(begun, Action::Write { key: key.to_owned(), value, expected }, outcome);
    }

    async fn create(&self, key: &str, value: &str) -> Outcome {
        self.written(self.api.create(&PostParams::default(), &object(key, value, None))).await
    }

    async fn replace(&self, key: &str, value: &str, revision: u64) -> Outcome {
        self.written(self.api.replace(key, &PostParams::default(), &object(key, value, Some(revision)))).await
    }

    async fn delete(&self, key: &str, revision: u64) -> Outcome {
        let expected = Preconditions { resource_version: Some(revision.to_string()), uid: None };
        let parameters = DeleteParams { preconditions: Some(expected), ..DeleteParams::default() };
        match self.timed(self.api.delete(key, &parameters)).await {
            Some(Ok(_)) => Outcome::Deleted,
            Some(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Outcome::Refused,
            _ => Outcome::Unknown,
        }
    }

    async fn written(&self, call: impl Future<Output = kube::Result<ConfigMap>>) -> Outcome {
        match self.timed(call).await {
            Some(Ok(object)) => version(&object).map_or(Outcome::Unknown, Outcome::Written),
            Some(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Outcome::Refused,
            _ => Outcome::Unknown,
        }
    }

    /// The answer, if one comes in time; a server that is not there is given a moment.
    async fn timed<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Option<kube::Result<T>> {
        let answer = tokio::time::timeout(ANSWER_LIMIT, call).await.ok();
        if !matches!(&answer, Some(Ok(_) | Err(kube::Error::Api(_)))) {
            tokio::time::sleep(PAUSE).await;
        }
        answer
    }
}

fn object(key: &str, value: &str, revision: Option<u64>) -> ConfigMap {
    let revision = revision.map(|revision| revision.to_string());
    let metadata = json!({"name": key, "labels": {LABEL: "true"}, "resourceVersion": revision});
    serde_json::from_value(json!({"metadata": metadata, "data": {"value": value}})).expect("a ConfigMap")
}

fn version(object: &ConfigMap) -> Option<Version> {
    let revision = object.resource_version()?.parse().ok()?;
    Some(Version { revision, value: object.data.as_ref()?.get("value")?.clone() })
}
