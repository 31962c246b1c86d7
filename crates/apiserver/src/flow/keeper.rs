//! Keeps the flows current: what is in force, the conditions of schemas, and the objects that no cluster may lack.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_store::{CommitError, Snapshot, Store, Write};

use super::{Flows, LEVELS, PREFIX, SCHEMAS};
use crate::{bootstrap::flow_writes, codec::json_bytes, object::now};

/// Works until `stop`.
pub(crate) async fn keep(store: Store, flows: impl AsRef<Flows>, stop: CancellationToken) {
    loop {
        let snapshot = store.snapshot();
        let Ok(mut watch) = store.watch(PREFIX, snapshot.revision()) else { continue };
        flows.as_ref().read(&snapshot);
        if let Err(error) = settle(&store, &snapshot).await {
            tracing::debug!(%error, "flow schemas changed while their conditions were written");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            event = watch.next() => if event == Err(windlass_store::WatchError::Closed) { return },
        }
    }
}

async fn settle(store: &Store, snapshot: &Snapshot) -> Result<(), CommitError> {
    // A store that was never a cluster stays as it is.
    if snapshot.range(PREFIX, None).next().is_none() {
        return Ok(());
    }
    let mut writes = flow_writes(snapshot);
    if writes.is_empty() {
        writes = conditions(snapshot);
    }
    if writes.is_empty() { Ok(()) } else { store.commit(writes).await.map(drop) }
}

/// What a schema says of its level.
pub(crate) fn condition(level: &str, exists: bool) -> Value {
    let (status, reason, words) =
        if exists { ("False", "Found", "it exists") } else { ("True", "NotFound", "there is no such object") };
    let message =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} and {words}");
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message, "lastTransitionTime": now()})
}

/// The writes that say of each schema whether its level exists.
fn conditions(snapshot: &Snapshot) -> Vec<Write> {
    let write = |(key, entry): (&std::sync::Arc<str>, &windlass_store::Entry)| {
        let mut schema: Value = serde_json::from_slice(&entry.value).ok()?;
        let level = schema.pointer("/spec/priorityLevelConfiguration/name")?.as_str()?;
        let exists = snapshot.get(&format!("{LEVELS}{level}")).is_some();
        let condition = condition(level, exists);
        let conditions = schema.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let is_dangling = |condition: &&Value| condition["type"] == "Dangling";
        if conditions.iter().find(is_dangling).is_some_and(|known| known["status"] == condition["status"]) {
            return None;
        }
        let others = conditions.iter().filter(|condition| !is_dangling(condition)).cloned();
        schema["status"]["conditions"] = others.chain([condition]).collect();
        Some(Write::update(&**key, entry.modified, json_bytes(&schema)))
    };
    snapshot.range(SCHEMAS, None).filter_map(write).collect()
}
