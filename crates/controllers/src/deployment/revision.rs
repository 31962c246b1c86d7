//! The revisions of a Deployment, as `kubectl rollout history` and `undo` read them from annotations.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube::ResourceExt;

use super::scale;

/// The number of the revision, on the Deployment and on each ReplicaSet.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier numbers of a ReplicaSet that became current again.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The replicas of the Deployment when the ReplicaSet was last scaled.
pub(crate) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The same with the surge.
pub(crate) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of a Deployment that its ReplicaSets do not inherit.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

const HISTORY_LENGTH_MAX: usize = 2000;

/// The revision of a ReplicaSet; 0 when it has none.
pub(crate) fn of(set: &ReplicaSet) -> i64 {
    set.annotations().get(REVISION).and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

/// The revision that the current ReplicaSet has to have: one more than all others.
pub(crate) fn next(others: &[&ReplicaSet]) -> i64 {
    others.iter().map(|set| of(set)).max().unwrap_or(0) + 1
}

/// Puts the annotations of the Deployment and `revision` on its current ReplicaSet.
pub(crate) fn annotate(deployment: &Deployment, set: &mut ReplicaSet, revision: i64) {
    let before = of(set);
    let is_new = set.annotations().get(DESIRED_REPLICAS).is_none();
    let annotations = set.annotations_mut();
    for (key, value) in deployment.annotations() {
        if !OWN.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    if before < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string());
        if before > 0 {
            remember(annotations.entry(HISTORY.to_owned()).or_default(), before);
        }
    }
    if is_new {
        scale::annotate(deployment, set);
    }
}

fn remember(history: &mut String, revision: i64) {
    if !history.is_empty() {
        history.push(',');
    }
    history.push_str(&revision.to_string());
    while history.len() > HISTORY_LENGTH_MAX {
        let Some(cut) = history.find(',') else { return };
        history.drain(..=cut);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(revision: &str) -> ReplicaSet {
        let mut set = ReplicaSet::default();
        set.annotations_mut().insert(REVISION.to_owned(), revision.to_owned());
        set
    }

    #[test]
    fn an_old_set_that_becomes_current_gets_the_next_number() {
        let mut old = set("1");
        let (second, third) = (set("2"), set("3"));
        let mut deployment = Deployment::default();
        deployment.annotations_mut().insert("note".to_owned(), "x".to_owned());
        deployment.annotations_mut().insert(REVISION.to_owned(), "3".to_owned());
        annotate(&deployment, &mut old, next(&[&second, &third]));
        assert_eq!(of(&old), 4);
        assert_eq!(old.annotations()[HISTORY], "1");
        assert_eq!(old.annotations()["note"], "x");
        annotate(&deployment, &mut old, 4);
        assert_eq!(old.annotations()[HISTORY], "1");
    }

    #[test]
    fn the_history_forgets_the_oldest() {
        let mut history = String::new();
        for revision in 0..1000 {
            remember(&mut history, revision);
        }
        assert!(history.len() <= HISTORY_LENGTH_MAX && history.ends_with(",999"));
    }
}
