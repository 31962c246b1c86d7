//! What is reported of workloads: counts that are no nonsense.

use super::cursor::{At, not_negative};
use crate::{FieldError, Kind};

const REPLICAS: &str = "cannot be greater than status.replicas";

/// The counts of a kind, and which of them is at most which other.
struct Counts {
    kind: (&'static str, &'static str),
    names: &'static [&'static str],
    bounds: &'static [(&'static str, &'static str, &'static str)],
}

const COUNTS: [Counts; 6] = [
    Counts {
        kind: ("apps", "Deployment"),
        names: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        bounds: &[
            ("updatedReplicas", "replicas", REPLICAS),
            ("readyReplicas", "replicas", REPLICAS),
            ("availableReplicas", "replicas", REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
        ],
    },
    Counts {
        kind: ("apps", "ReplicaSet"),
        names: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        bounds: &[
            ("fullyLabeledReplicas", "replicas", REPLICAS),
            ("readyReplicas", "replicas", REPLICAS),
            ("availableReplicas", "replicas", REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
        ],
    },
    Counts {
        kind: ("apps", "StatefulSet"),
        names: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        bounds: &[
            ("readyReplicas", "replicas", REPLICAS),
            ("currentReplicas", "replicas", REPLICAS),
            ("updatedReplicas", "replicas", REPLICAS),
            ("availableReplicas", "replicas", REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
        ],
    },
    Counts {
        kind: ("apps", "DaemonSet"),
        names: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        bounds: &[],
    },
    Counts { kind: ("batch", "Job"), names: &["active", "succeeded", "failed", "ready", "terminating"], bounds: &[] },
    Counts {
        kind: ("policy", "PodDisruptionBudget"),
        names: &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
        bounds: &[],
    },
];

/// Checks the status of a workload against itself and against what it was.
pub(super) fn counts(kind: &Kind, object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let own = (kind.group.as_str(), kind.kind.as_str());
    let Some(counts) = COUNTS.iter().find(|counts| counts.kind == own) else { return };
    let status = object.member("status");
    let count = |name: &str| status.member(name).int().unwrap_or_default();
    not_negative(&status, counts.names, errors);
    for (name, bound, detail) in counts.bounds {
        if count(name) > count(bound) {
            errors.push(FieldError::invalid(status.member(name).path, count(name), *detail));
        }
    }
    let before = old.and_then(|old| old.at("status.collisionCount").int());
    if before.is_some_and(|before| count("collisionCount") < before) {
        let path = status.member("collisionCount").path;
        errors.push(FieldError::invalid(path, count("collisionCount"), "cannot be decremented"));
    }
}
