//! The status of policies that refuse: what is wrong with their expressions for the kinds that they are about.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass_store::{Entry, Store, WatchError, Write};

use super::type_check::warnings;
use crate::{object::Object, registry::Registry};

const PREFIX: &str = "/admissionregistration.k8s.io/validatingadmissionpolicies/";

/// Keeps the status of all policies up to date until `stop` is cancelled.
pub(crate) async fn keep_status(store: Store, registry: Arc<Registry>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let snapshot = store.snapshot();
        let Ok(mut watch) = store.watch(PREFIX, snapshot.revision()) else { continue };
        for (key, entry) in snapshot.range(PREFIX, None) {
            update(&store, &registry, key, entry).await;
        }
        drop(snapshot);
        loop {
            let event = tokio::select! {
                event = watch.next() => event,
                () = stop.cancelled() => return,
            };
            match event {
                Ok(event) => {
                    if let Some(entry) = &event.entry {
                        update(&store, &registry, &event.key, entry).await;
                    }
                }
                Err(WatchError::Closed) => return,
                Err(WatchError::Lagged) => break,
            }
        }
    }
}

/// Writes the status of one policy. Whoever was faster caused an event that leads here again.
async fn update(store: &Store, registry: &Registry, key: &str, entry: &Entry) {
    let Ok(mut policy) = serde_json::from_slice::<Value>(&entry.value) else { return };
    if is_seen(&policy) {
        return;
    }
    let generation = policy.generation();
    policy["status"]["observedGeneration"] = generation.into();
    let warnings = warnings(&policy, registry);
    policy["status"]["typeChecking"] =
        if warnings.is_empty() { json!({}) } else { json!({"expressionWarnings": warnings}) };
    let written = store.commit(vec![Write::update(key, entry.modified, policy.to_string())]).await;
    if let Err(error) = written {
        tracing::debug!(key, %error, "the status of a policy was not written");
    }
}

fn is_seen(policy: &Value) -> bool {
    let status = &policy["status"];
    status["observedGeneration"].as_i64() == Some(policy.generation()) && !status["typeChecking"].is_null()
}
