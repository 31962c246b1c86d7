//! Events about Pods, Services and the node: what happened, for people, counted when it repeats.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use tokio::sync::mpsc;

/// Events that wait to be written; more are dropped, as events are a courtesy.
const QUEUE_MAX: usize = 512;
/// Events remembered for counting repeats.
const REMEMBERED_MAX: usize = 4096;
const COMPONENT: &str = "kubelet";
/// What the API server accepts as the length of a message.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Normal,
    Warning,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry {
    kind: Kind,
    reason: String,
    message: String,
    about: (String, String, String, String),
    field: Option<String>,
    uid: Option<String>,
}

/// Records events without waiting for the API server.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    queue: mpsc::Sender<Entry>,
}

impl Recorder {
    /// Starts the writer; it ends with the last recorder.
    pub(crate) fn start(client: Client, host: String) -> Self {
        let (queue, entries) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(write_all(client, host, entries));
        Self { queue }
    }

    /// Records something that went as it should, about an object or one of its containers (`field`).
    pub(crate) fn normal<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        field: Option<&str>,
        reason: &str,
        message: String,
    ) {
        self.push(Entry::new(about, field, reason, message));
    }

    /// Records something that a person should look at.
    pub(crate) fn warning<K: Resource<DynamicType = ()>>(
        &self,
        about: &K,
        field: Option<&str>,
        reason: &str,
        message: String,
    ) {
        self.push(Entry { kind: Kind::Warning, ..Entry::new(about, field, reason, message) });
    }

    fn push(&self, entry: Entry) {
        if let Err(error) = self.queue.try_send(entry) {
            let reason = error.into_inner().reason;
            tracing::warn!(reason, "an event was dropped: too many wait to be written");
        }
    }
}

impl Entry {
    fn new<K: Resource<DynamicType = ()>>(about: &K, field: Option<&str>, reason: &str, message: String) -> Self {
        let namespace = about.namespace().unwrap_or_default();
        Self {
            kind: Kind::Normal,
            reason: reason.to_owned(),
            message: shorten(message),
            about: (K::api_version(&()).into_owned(), K::kind(&()).into_owned(), namespace, about.name_any()),
            field: field.map(str::to_owned),
            uid: about.uid(),
        }
    }
}

fn shorten(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX - 3).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
    }
    message
}

async fn write_all(client: Client, host: String, mut entries: mpsc::Receiver<Entry>) {
    let mut written: HashMap<Entry, (String, i32)> = HashMap::new();
    while let Some(entry) = entries.recv().await {
        if written.len() >= REMEMBERED_MAX {
            written.clear();
        }
        let seen = written.get(&entry).cloned();
        match write(&client, &host, &entry, seen).await {
            Ok(now) => drop(written.insert(entry, now)),
            Err(error) => tracing::debug!(%error, reason = entry.reason, "an event was not written"),
        }
    }
}

async fn write(client: &Client, host: &str, entry: &Entry, seen: Option<(String, i32)>) -> kube::Result<(String, i32)> {
    let (_, _, namespace, _) = &entry.about;
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let now = Time(Timestamp::now());
    if let Some((name, count)) = seen {
        let count = count + 1;
        let patch = serde_json::json!({ "count": count, "lastTimestamp": now });
        match events.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => return Ok((name, count)),
            // It expired: written anew below.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    let event = new_event(host, entry, namespace, now);
    let created = events.create(&PostParams::default(), &event).await?;
    Ok((created.name_any(), 1))
}

fn new_event(host: &str, entry: &Entry, namespace: &str, now: Time) -> Event {
    let (api_version, kind, object_namespace, name) = entry.about.clone();
    Event {
        metadata: ObjectMeta {
            // In the order of their names, which is how they are listed, events tell a story.
            name: Some(format!("{name}.{:016x}", Timestamp::now().as_nanosecond())),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(api_version),
            kind: Some(kind),
            namespace: Some(object_namespace).filter(|namespace| !namespace.is_empty()),
            name: Some(name),
            uid: entry.uid.clone(),
            field_path: entry.field.clone(),
            ..ObjectReference::default()
        },
        reason: Some(entry.reason.clone()),
        message: Some(entry.message.clone()),
        type_: Some(match entry.kind {
            Kind::Normal => "Normal".to_owned(),
            Kind::Warning => "Warning".to_owned(),
        }),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: Some(host.to_owned()) }),
        reporting_component: Some(COMPONENT.to_owned()),
        reporting_instance: Some(host.to_owned()),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let cut = shorten("é".repeat(2000));
        assert!(cut.len() <= MESSAGE_BYTES_MAX && cut.ends_with("..."));
        assert_eq!(shorten("short".to_owned()), "short");
    }
}
