//! Storing an object together with what it costs: one commit, so that neither is there without the other.

use jiff::Timestamp;
use serde_json::Value;
use windlass_store::{CommitError, Revision, Write};

use super::{scope::Scope, storage};
use crate::{
    ApiError, Subject,
    admission::{Charge, Operation, Plugin, quota_prefix},
};

/// How often a commit is tried again when a quota changed under it.
const TRIES_MAX: usize = 32;

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is stored, as this revision.
    Stored(Revision),
    /// Nothing: the key of the object was not as expected.
    Clash,
}

/// What is stored; `old` is `Null` for a new object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transition<'a> {
    pub(crate) object: &'a Value,
    pub(crate) old: &'a Value,
}

/// Stores `write`, and charges the quotas for it.
pub(crate) async fn commit(scope: &Scope, transition: Transition<'_>, write: Write) -> Result<Outcome, ApiError> {
    let charge = charge(scope, transition);
    if !has_quotas(scope, &charge) {
        return commit_once(scope, vec![write]).await.map(|outcome| outcome.unwrap_or(Outcome::Clash));
    }
    // Writes that all want the same quota changed would only get in each other's way.
    let _turn = scope.api.quota_turn(charge.namespace).await;
    let own = write.key.clone();
    for _ in 0..TRIES_MAX {
        let snapshot = scope.api.store().snapshot();
        let mut writes = charge.writes(&snapshot)?;
        // First, so that a clash of the object is what is found.
        writes.insert(0, write.clone());
        match commit_once(scope, writes).await? {
            Ok(outcome) => return Ok(outcome),
            Err(key) if key == own => return Ok(Outcome::Clash),
            Err(_) => {}
        }
    }
    Err(ApiError::modified(Subject { group: "", resource: "resourcequotas" }, charge.namespace))
}

/// Refuses what the quotas have no room for, without storing anything.
pub(crate) fn check(scope: &Scope, transition: Transition<'_>) -> Result<(), ApiError> {
    let charge = charge(scope, transition);
    if has_quotas(scope, &charge) { charge.writes(&scope.api.store().snapshot()).map(drop) } else { Ok(()) }
}

/// Whether there is a quota that could matter.
fn has_quotas(scope: &Scope, charge: &Charge<'_>) -> bool {
    scope.api.config().plugins.has(Plugin::ResourceQuota)
        && charge.applies()
        && scope.api.store().snapshot().range(&quota_prefix(charge.namespace), None).next().is_some()
}

fn charge<'a>(scope: &'a Scope, transition: Transition<'a>) -> Charge<'a> {
    let operation = if transition.old.is_null() { Operation::Create } else { Operation::Update };
    Charge {
        operation,
        subject: scope.subject(),
        // An update that makes an object is a create of the object itself.
        subresource: if operation == Operation::Create { "" } else { &scope.request.subresource },
        namespace: scope.namespace(),
        object: transition.object,
        old: transition.old,
        now: Timestamp::now(),
    }
}

/// The inner error is the key that was not as expected.
async fn commit_once(scope: &Scope, writes: Vec<Write>) -> Result<Result<Outcome, String>, ApiError> {
    match scope.api.store().commit(writes).await {
        Ok(revision) => Ok(Ok(Outcome::Stored(revision))),
        Err(CommitError::Precondition { key, .. }) => Ok(Err(key)),
        Err(error) => Err(storage::store_error(error)),
    }
}
