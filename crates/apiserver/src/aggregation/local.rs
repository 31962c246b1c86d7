//! The APIServices of the groups that this server answers for itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_store::{CommitError, Snapshot, Store, Write};

use super::PREFIX;
use crate::{
    codec::json_bytes,
    object::{Object, now},
    registry::{Catalog, Registry},
};

/// The label of objects that are kept here, and its values for built-in kinds and for definitions.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const FOLLOWED: &str = "true";
/// The group that APIServices themselves are in, which is not told of.
const OWN_GROUP: &str = "apiregistration.k8s.io";
/// Which groups clients prefer, as upstream has it.
const GROUP_PRIORITIES: [(&str, u32); 22] = [
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("internal.apiserver.k8s.io", 16_000),
    ("metrics.k8s.io", 100),
];
/// What groups of definitions have.
const CUSTOM_PRIORITIES: (u32, u32) = (1_000, 100);
/// What built-in groups have that are not listed.
const OTHER_PRIORITY: u32 = 15_000;

/// Keeps the objects in step with the kinds that are served, until `stop`.
pub(crate) async fn keep(store: Store, registry: std::sync::Arc<Registry>, stop: CancellationToken) {
    let mut changes = registry.changes();
    loop {
        changes.mark_unchanged();
        let snapshot = store.snapshot();
        let Ok(mut watch) = store.watch(PREFIX, snapshot.revision()) else { continue };
        if let Err(error) = settle(&store, &snapshot, &registry.catalog()).await {
            tracing::debug!(%error, "APIServices changed while they were kept");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            _ = changes.changed() => {}
            event = watch.next() => if event == Err(windlass_store::WatchError::Closed) { return },
        }
    }
}

async fn settle(store: &Store, snapshot: &Snapshot, catalog: &Catalog) -> Result<(), CommitError> {
    let writes = writes(snapshot, &served(catalog));
    if writes.is_empty() { Ok(()) } else { store.commit(writes).await.map(drop) }
}

/// A group and version, and whether a definition made it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Served {
    group: String,
    version: String,
    custom: bool,
}

fn served(catalog: &Catalog) -> BTreeSet<Served> {
    let kinds = catalog.kinds().filter(|kind| kind.group != OWN_GROUP);
    let mut served: BTreeSet<Served> = BTreeSet::new();
    for kind in kinds {
        // Built-in kinds come first; a definition in their group changes nothing.
        let known = served.iter().any(|known| known.group == kind.group && known.version == kind.version);
        if !known {
            let custom = kind.custom().is_some();
            served.insert(Served { group: kind.group.clone(), version: kind.version.clone(), custom });
        }
    }
    served
}

/// The writes that a new cluster begins with.
pub(crate) fn builtin_writes(snapshot: &Snapshot) -> Vec<Write> {
    served(&Registry::new().catalog()).iter().filter_map(|served| write(snapshot, served)).collect()
}

fn writes(snapshot: &Snapshot, served: &BTreeSet<Served>) -> Vec<Write> {
    let mut writes: Vec<Write> = served.iter().filter_map(|served| write(snapshot, served)).collect();
    for (key, entry) in snapshot.range(PREFIX, None) {
        let Ok(object) = serde_json::from_slice::<Value>(&entry.value) else { continue };
        let kept = served.iter().any(|served| served.name() == object.name());
        let own = object.label(AUTOMANAGED).is_some_and(|label| [ON_START, FOLLOWED].contains(&label));
        if own && !kept && object["spec"]["service"].is_null() {
            writes.push(Write::delete(&**key, entry.modified));
        }
    }
    writes
}

fn write(snapshot: &Snapshot, served: &Served) -> Option<Write> {
    let key = format!("{PREFIX}{}", served.name());
    let Some(entry) = snapshot.get(&key) else {
        let mut object = served.object();
        object.set_meta("uid", uuid::Uuid::new_v4().to_string());
        object.set_meta("creationTimestamp", now());
        return Some(Write::create(key, json_bytes(&object)));
    };
    let mut live: Value = serde_json::from_slice(&entry.value).ok()?;
    // Whoever gives the group to another server means it.
    let available = |live: &Value| live["status"]["conditions"].as_array().is_some_and(|all| !all.is_empty());
    if !live["spec"]["service"].is_null() || available(&live) {
        return None;
    }
    live["status"] = served.object()["status"].clone();
    Some(Write::update(key, entry.modified, json_bytes(&live)))
}

impl Served {
    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    fn priorities(&self) -> (u32, u32) {
        if self.custom {
            return CUSTOM_PRIORITIES;
        }
        let group = GROUP_PRIORITIES.iter().find(|(group, _)| *group == self.group);
        let version = match (self.group.as_str(), self.version.as_str()) {
            ("", _) => 1,
            ("metrics.k8s.io", _) => 100,
            ("autoscaling", "v2") => 30,
            ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", "v1") => 21,
            (_, version) if version.contains("alpha") || version.contains("beta") => 9,
            _ => 15,
        };
        (group.map_or(OTHER_PRIORITY, |(_, priority)| *priority), version)
    }

    fn object(&self) -> Value {
        let (group_priority, version_priority) = self.priorities();
        let mut spec = json!({
            "version": self.version, "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
        });
        if !self.group.is_empty() {
            spec["group"] = self.group.as_str().into();
        }
        let condition = json!({
            "type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": now(),
            "message": "Local APIServices are always available",
        });
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": self.name(), "labels": {AUTOMANAGED: if self.custom { FOLLOWED } else { ON_START }},
            },
            "spec": spec,
            "status": {"conditions": [condition]},
        })
    }
}
