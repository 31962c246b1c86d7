//! What a pass enters into the journal.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_core::{Child, Outcome};

use super::act::Trouble;
use super::parts::Standing;
use crate::cache::Glance;
use crate::journal::{self, Seen, Turn};

/// Enters into the journal what was decided.
pub(super) fn note<S>(outcome: &Outcome<S>, carried: Option<&Result<Standing, Trouble>>) {
    if let Some(Ok(standing)) = carried {
        match (standing.failed.first(), standing.waiting.first()) {
            (Some(what), _) => return journal::decided(Turn::Failed, "PartFailed", what),
            (None, Some(what)) => return journal::decided(Turn::Waiting, "WaitingForParts", what),
            (None, None) => {}
        }
    }
    let trouble = carried.and_then(|carried| carried.as_ref().err());
    match (trouble, outcome) {
        (Some(trouble), _) => {
            let turn = if trouble.needs_a_person() { Turn::Refused } else { Turn::Failed };
            journal::decided(turn, trouble.reason(), &trouble.in_short());
        }
        (None, Outcome::Settled(_)) => journal::decided(Turn::Settled, "Settled", "all is as declared"),
        (None, Outcome::Waiting { reason, message, .. }) => journal::decided(Turn::Waiting, reason, message),
        (None, Outcome::Retry { message, .. }) => journal::decided(Turn::Failed, "Retrying", message),
        (None, Outcome::Invalid { message }) => journal::decided(Turn::Invalid, "Invalid", message),
    }
}

/// The version of a child that a pass looks at.
pub(super) fn seen(child: &Child, live: Option<&ObjectMeta>) -> Seen {
    let version = live.and_then(|meta| meta.resource_version.clone()).unwrap_or_default();
    of_version(child, version, live.and_then(|meta| meta.generation))
}

/// The version of a child that need not be looked at more closely.
pub(super) fn glimpsed(child: &Child, glance: &Glance) -> Seen {
    of_version(child, glance.version.clone(), glance.generation)
}

fn of_version(child: &Child, version: String, generation: Option<i64>) -> Seen {
    Seen { kind: child.resource.kind.clone(), name: child.name.clone(), version, generation }
}
