//! ControllerRevisions: the templates that a StatefulSet or DaemonSet had, as `kubectl rollout` reads them.

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::{hash, owners};

/// The label of a Pod that names its revision, and of a revision that holds its hash.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";

/// What to do so that a revision for the current template exists.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// The newest revision has it.
    Keep(Box<ControllerRevision>),
    /// An older revision has it: it becomes the newest.
    Renew(Box<ControllerRevision>),
    /// None has it.
    Create(Box<ControllerRevision>),
}

impl Step {
    /// The revision of the current template.
    pub(crate) fn revision(&self) -> &ControllerRevision {
        match self {
            Self::Keep(revision) | Self::Renew(revision) | Self::Create(revision) => revision,
        }
    }
}

/// Finds or makes the revision of `template` for `owner`.
pub(crate) fn current<K: Resource<DynamicType = ()>>(
    owner: &K,
    template: &PodTemplateSpec,
    known: &[&ControllerRevision],
    collisions: i32,
) -> Step {
    let data = data(template);
    let mut known = known.to_vec();
    known.sort_by_key(|revision| (revision.revision, revision.creation_timestamp()));
    let next = known.last().map_or(1, |last| last.revision + 1);
    let equal = |revision: &&&ControllerRevision| revision.data.as_ref().map(|data| &data.0) == Some(&data);
    match known.iter().rev().find(equal) {
        Some(found) if found.revision + 1 == next => Step::Keep(Box::new((**found).clone())),
        Some(found) => Step::Renew(Box::new(ControllerRevision { revision: next, ..(**found).clone() })),
        None => Step::Create(Box::new(make(owner, template, data, next, collisions))),
    }
}

/// The template that a revision holds.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// Revisions beyond `limit`, oldest first, without those in use.
pub(crate) fn beyond_history(known: &[&ControllerRevision], in_use: &[String], limit: usize) -> Vec<String> {
    let mut idle: Vec<&ControllerRevision> =
        known.iter().copied().filter(|revision| !in_use.contains(&revision.name_any())).collect();
    idle.sort_by_key(|revision| revision.revision);
    let surplus = idle.len().saturating_sub(limit);
    idle.into_iter().take(surplus).map(|revision| revision.name_any()).collect()
}

/// The patch that brings the template back; `kubectl rollout undo` sends it as it is.
fn data(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).expect("a template is plain data");
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

fn make<K: Resource<DynamicType = ()>>(
    owner: &K,
    template: &PodTemplateSpec,
    data: Value,
    number: i64,
    collisions: i32,
) -> ControllerRevision {
    let hash = hash::of(template, collisions);
    let mut labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", owner.name_any())),
            namespace: owner.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owners::controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision: number,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::StatefulSet;

    use super::*;

    fn spec(image: &str) -> PodTemplateSpec {
        serde_json::from_value(
            json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": image}]}}),
        )
        .unwrap()
    }

    #[test]
    fn a_template_that_comes_back_keeps_its_name_and_gets_the_next_number() {
        let owner = StatefulSet::default();
        let Step::Create(first) = current(&owner, &spec("a"), &[], 0) else { panic!("nothing is known") };
        assert_eq!(current(&owner, &spec("a"), &[&first], 0), Step::Keep(first.clone()));
        let Step::Create(second) = current(&owner, &spec("b"), &[&first], 0) else { panic!("another template") };
        assert_eq!((first.revision, second.revision), (1, 2));
        let Step::Renew(again) = current(&owner, &spec("a"), &[&first, &second], 0) else { panic!("it is known") };
        assert_eq!((again.name_any(), again.revision), (first.name_any(), 3));
        assert_eq!(template(&again), Some(spec("a")));
    }

    #[test]
    fn history_forgets_the_oldest_that_nobody_uses() {
        let revision = |number: i64| ControllerRevision {
            metadata: ObjectMeta { name: Some(number.to_string()), ..ObjectMeta::default() },
            revision: number,
            data: None,
        };
        let known: Vec<_> = (1..=5).map(revision).collect();
        let known: Vec<&ControllerRevision> = known.iter().collect();
        assert_eq!(beyond_history(&known, &["1".to_owned(), "5".to_owned()], 1), ["2", "3"]);
        assert_eq!(beyond_history(&known, &[], 10), Vec::<String>::new());
    }
}
