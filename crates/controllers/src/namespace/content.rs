//! What is left in a namespace that is on its way out, and what its conditions say about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NamespaceCondition, NamespaceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

/// What one round of deletion found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    /// Objects that are left, by kind (`pods.`, `deployments.apps`).
    remaining: BTreeMap<String, usize>,
    /// Objects that wait for a finalizer, by finalizer.
    finalizers: BTreeMap<String, usize>,
    /// What could not be listed or deleted.
    failures: Vec<String>,
}

impl Content {
    /// Counts an object that is left.
    pub(crate) fn remains(&mut self, kind: &str, meta: &ObjectMeta) {
        *self.remaining.entry(kind.to_owned()).or_default() += 1;
        for finalizer in meta.finalizers.iter().flatten() {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Notes a failure.
    pub(crate) fn failed(&mut self, why: String) {
        self.failures.push(why);
    }

    /// Whether nothing is left and nothing failed.
    pub(crate) fn is_empty(&self) -> bool {
        self.remaining.is_empty() && self.failures.is_empty()
    }

    /// Whether objects of some kind are left.
    pub(crate) fn has_objects(&self) -> bool {
        !self.remaining.is_empty()
    }

    /// The failures, if any.
    pub(crate) fn failure(&self) -> Option<String> {
        (!self.failures.is_empty()).then(|| self.failures.join("; "))
    }

    /// The status after this round, keeping the times of conditions that did not change.
    pub(crate) fn status(&self, before: Option<&NamespaceStatus>, now: Timestamp) -> NamespaceStatus {
        let known = before.and_then(|status| status.conditions.clone()).unwrap_or_default();
        let (mut conditions, others): (Vec<_>, Vec<_>) =
            known.into_iter().partition(|known| TYPES.contains(&known.type_.as_str()));
        let wanted = self.conditions();
        let stamp = |(type_, bad, reason, message): (&str, bool, &str, String)| {
            let status = if bad { "True" } else { "False" };
            let since = conditions.iter().position(|known| known.type_ == type_ && known.status == status);
            let since = since.map(|index| conditions.swap_remove(index)).and_then(|known| known.last_transition_time);
            NamespaceCondition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message),
                last_transition_time: since.or(Some(Time(now))),
            }
        };
        let conditions = others.into_iter().chain(wanted.into_iter().map(stamp).collect::<Vec<_>>()).collect();
        NamespaceStatus { phase: Some("Terminating".to_owned()), conditions: Some(conditions) }
    }

    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let list = |counts: &BTreeMap<String, usize>, link: &str| {
            let parts: Vec<String> =
                counts.iter().map(|(name, count)| format!("{name} {link} {count} resource instances")).collect();
            parts.join(", ")
        };
        let content = match self.failure() {
            Some(why) => {
                (TYPES[2], true, "ContentDeletionFailed", format!("Failed to delete all resource types: {why}"))
            }
            None => {
                let message = "All content successfully deleted, may be waiting on finalization".to_owned();
                (TYPES[2], false, "ContentDeleted", message)
            }
        };
        let remaining = if self.remaining.is_empty() {
            (TYPES[3], false, "ContentRemoved", "All content successfully removed".to_owned())
        } else {
            let message = format!("Some resources are remaining: {}", list(&self.remaining, "has"));
            (TYPES[3], true, "SomeResourcesRemain", message)
        };
        let finalizers = if self.finalizers.is_empty() {
            (TYPES[4], false, "ContentHasNoFinalizers", "All content-preserving finalizers finished".to_owned())
        } else {
            let message =
                format!("Some content in the namespace has finalizers remaining: {}", list(&self.finalizers, "in"));
            (TYPES[4], true, "SomeFinalizersRemain", message)
        };
        [
            (TYPES[0], false, "ResourcesDiscovered", "All resources successfully discovered".to_owned()),
            (TYPES[1], false, "ParsedGroupVersions", "All legacy kube types successfully parsed".to_owned()),
            content,
            remaining,
            finalizers,
        ]
    }
}

const TYPES: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_say_what_is_left() {
        let mut content = Content::default();
        assert!(content.is_empty());
        let held = ObjectMeta { finalizers: Some(vec!["example.com/hold".to_owned()]), ..ObjectMeta::default() };
        content.remains("widgets.example.com", &held);
        content.remains("pods.", &ObjectMeta::default());
        let status = content.status(None, Timestamp::UNIX_EPOCH);
        let told: Vec<(String, String)> = status
            .conditions
            .iter()
            .flatten()
            .filter(|condition| condition.status == "True")
            .map(|condition| (condition.type_.clone(), condition.message.clone().unwrap()))
            .collect();
        assert_eq!(told, [
            ("NamespaceContentRemaining".into(), "Some resources are remaining: pods. has 1 resource instances, widgets.example.com has 1 resource instances".into()),
            ("NamespaceFinalizersRemaining".into(), "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances".into()),
        ]);
        assert_eq!(content.status(Some(&status), Timestamp::now()), status, "no change, no new time");
    }
}
