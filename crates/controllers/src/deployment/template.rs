//! The Pod template of a Deployment: its hash, and the ReplicaSet that carries it.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::{revision, scale};
use crate::{hash, owners};

/// The label that tells the ReplicaSets of one Deployment apart, and their Pods.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// The longest name that leaves room for `-` and the suffix of a Pod.
const NAME_LENGTH_MAX: usize = 253 - 6 - 1 - hash::LENGTH;

/// Whether the two templates make the same Pods.
pub(crate) fn same(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    without_hash(a) == without_hash(b)
}

/// The ReplicaSet that has the template of the Deployment: the oldest one, should there be several.
pub(crate) fn current<'a>(deployment: &Deployment, sets: &[&'a ReplicaSet]) -> Option<&'a ReplicaSet> {
    let wanted = without_hash(&deployment.spec.as_ref()?.template);
    let mut sets = sets.to_vec();
    sets.sort_by_key(|set| (set.creation_timestamp(), set.name_any()));
    sets.into_iter().find(|set| {
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        template.is_some_and(|template| without_hash(template) == wanted)
    })
}

/// A new ReplicaSet for the template of the Deployment. `others` are the ReplicaSets that exist.
pub(crate) fn replica_set(deployment: &Deployment, others: &[&ReplicaSet], revision: i64) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let hash = hash::of(&spec.template, collisions);
    let label = (HASH_LABEL.to_owned(), hash.clone());

    let mut template = spec.template;
    let template_meta = template.metadata.get_or_insert_default();
    template_meta.labels.get_or_insert_default().extend([label.clone()]);
    let labels = template_meta.labels.clone();
    let mut selector = spec.selector;
    selector.match_labels.get_or_insert_default().extend([label]);

    let mut prefix = deployment.name_any();
    prefix.truncate(NAME_LENGTH_MAX);
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: deployment.namespace(),
            labels,
            owner_references: Some(vec![owners::controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    };
    let replicas = scale::new_set_replicas(deployment, 0, others);
    set.spec.get_or_insert_default().replicas = Some(replicas);
    revision::annotate(deployment, &mut set, revision);
    set
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH_LABEL);
    }
    // An empty map and an absent one are the same template.
    meta.labels.take_if(|labels| labels.is_empty());
    meta.annotations.take_if(|annotations| annotations.is_empty());
    template
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(image: &str) -> PodTemplateSpec {
        serde_json::from_value(
            json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": image}]}}),
        )
        .unwrap()
    }

    #[test]
    fn a_template_is_recognised_under_its_hash_label() {
        let mut labelled = template("a");
        labelled.metadata.get_or_insert_default().labels.get_or_insert_default().insert(HASH_LABEL.into(), "x".into());
        assert!(same(&labelled, &template("a")));
        assert!(!same(&labelled, &template("b")));
    }
}
