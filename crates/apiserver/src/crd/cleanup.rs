//! Deleting the objects of a definition that is deleted, and then the definition.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use windlass_clock::Clock;
use windlass_store::{CommitError, Entry, Snapshot, Store, Write};

use super::{
    conditions,
    controller::prefix,
    definition::{CLEANUP_FINALIZER, Condition, Definition},
};
use crate::{
    codec::json_bytes,
    object::{Object, timestamp},
};

/// How many objects one commit deletes.
const BATCH_MAX: usize = 64;
/// How long to wait for a change before looking again anyway.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How long to wait after a failure of the store.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Deletes all objects of the definition `name`, waits for their finalizers, then lets the definition go.
pub(super) async fn run(store: &Store, clock: &Clock, name: &str) {
    let key = format!("{}{name}", prefix());
    loop {
        let snapshot = store.snapshot();
        let Some((object, definition)) = read(&snapshot, &key) else { return };
        if !definition.is_deleting() || !definition.metadata.finalizers.iter().any(|it| it == CLEANUP_FINALIZER) {
            return;
        }
        let objects = format!("/{}/{}/", definition.spec.group, definition.spec.names.plural);
        let look = Look { store, snapshot: &snapshot, key: &key, now: clock.now() };
        let step = match snapshot.range(&objects, None).next() {
            None => finish(&look, object).await,
            Some(_) => delete_objects(&look, object, &objects).await,
        };
        match step {
            Ok(Step::Done) => return,
            Ok(Step::Again) => {}
            Ok(Step::Wait) => wait(store, &snapshot, &objects).await,
            Err(error) => {
                tracing::error!(definition = name, %error, "objects of the definition were not deleted; trying again");
                clock.sleep(RETRY_AFTER).await;
            }
        }
    }
}

/// One look at the definition.
struct Look<'a> {
    store: &'a Store,
    snapshot: &'a Snapshot,
    key: &'a str,
    now: Timestamp,
}

enum Step {
    /// The definition is gone or no longer ours.
    Done,
    /// Something changed: look again.
    Again,
    /// Only finalizers of others are left to wait for.
    Wait,
}

fn read(snapshot: &Snapshot, key: &str) -> Option<(Value, Definition)> {
    let object: Value = serde_json::from_slice(&snapshot.get(key)?.value).ok()?;
    let definition = Definition::read(&object).ok()?;
    Some((object, definition))
}

fn terminating(status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        r#type: "Terminating".into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// Takes our finalizer away; without another one the definition goes.
async fn finish(look: &Look<'_>, mut object: Value) -> Result<Step, CommitError> {
    let Look { store, snapshot, key, now } = *look;
    let Some(entry) = snapshot.get(key) else { return Ok(Step::Done) };
    let before = object.clone();
    conditions::set(&mut object, terminating("False", "InstanceDeletionCompleted", "removed all instances"), now);
    conditions::own(&before, &mut object, now);
    let left = object.finalizers().into_iter().filter(|it| *it != CLEANUP_FINALIZER).map(str::to_owned).collect();
    object.set_finalizers(left);
    let write = if object.finalizers().is_empty() {
        Write::delete(key, entry.modified)
    } else {
        Write::update(key, entry.modified, json_bytes(&object))
    };
    settle(store.commit(vec![write]).await).map(|committed| if committed { Step::Done } else { Step::Again })
}

async fn delete_objects(look: &Look<'_>, mut definition: Value, objects: &str) -> Result<Step, CommitError> {
    let Look { store, snapshot, key, now } = *look;
    let Some(entry) = snapshot.get(key) else { return Ok(Step::Done) };
    let before = definition.clone();
    conditions::set(
        &mut definition,
        terminating("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        now,
    );
    if definition != before {
        conditions::own(&before, &mut definition, now);
        settle(store.commit(vec![Write::update(key, entry.modified, json_bytes(&definition))]).await)?;
        return Ok(Step::Again);
    }
    let writes: Vec<Write> =
        snapshot.range(objects, None).filter_map(|(key, entry)| deletion(key, entry, now)).collect();
    if writes.is_empty() {
        return Ok(Step::Wait);
    }
    for batch in writes.chunks(BATCH_MAX) {
        if settle(store.commit(batch.to_vec()).await)? {
            continue;
        }
        // One of them changed; the others need not wait for it.
        for write in batch {
            settle(store.commit(vec![write.clone()]).await)?;
        }
    }
    Ok(Step::Again)
}

/// What deletes an object: it goes at once, or is marked for those who hold it.
fn deletion(key: &str, entry: &Entry, now: Timestamp) -> Option<Write> {
    let mut object: Value = serde_json::from_slice(&entry.value).ok()?;
    if object.finalizers().is_empty() {
        return Some(Write::delete(key, entry.modified));
    }
    if object.is_deleting() {
        return None;
    }
    object.set_meta("deletionTimestamp", timestamp(now));
    object.set_meta("deletionGracePeriodSeconds", 0);
    object.set_meta("generation", object.generation() + 1);
    Some(Write::update(key, entry.modified, json_bytes(&object)))
}

/// Whether the commit took place; a clash with another writer is no failure.
fn settle(outcome: Result<windlass_store::Revision, CommitError>) -> Result<bool, CommitError> {
    match outcome {
        Ok(_) => Ok(true),
        Err(CommitError::Precondition { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn wait(store: &Store, snapshot: &Snapshot, objects: &str) {
    let Ok(mut watch) = store.watch(objects, snapshot.revision()) else { return };
    // A watch that breaks is a reason to look again, as is one that stays silent.
    let _ = tokio::time::timeout(WAIT_MAX, watch.next()).await;
}
