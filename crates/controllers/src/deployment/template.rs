//! The Pod template of a Deployment: its hash, and the ReplicaSet that carries it.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use sha2::{Digest, Sha256};

use super::{revision, scale};
use crate::owners;

/// The label that tells the ReplicaSets of one Deployment apart, and their Pods.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// No vowels, and nothing that looks like another letter: a hash never spells a word.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const HASH_LENGTH: usize = 10;

/// The longest name that leaves room for `-` and the suffix of a Pod.
const NAME_LENGTH_MAX: usize = 253 - 6 - 1 - HASH_LENGTH;

/// A stable hash of the template; `collisions` makes another one when a name is taken.
pub(crate) fn hash(template: &PodTemplateSpec, collisions: i32) -> String {
    let json = serde_json::to_vec(template).expect("a template is plain data");
    let mut digest = Sha256::new();
    digest.update(&json);
    if collisions > 0 {
        digest.update(collisions.to_be_bytes());
    }
    let letter = |byte: u8| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]);
    digest.finalize().iter().take(HASH_LENGTH).map(|byte| letter(*byte)).collect()
}

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
    let hash = hash(&spec.template, collisions);
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
    fn the_hash_is_stable_and_a_collision_changes_it() {
        // Renaming every ReplicaSet at an upgrade would restart every Pod: the value is part of the contract.
        assert_eq!(hash(&template("a"), 0), hash(&template("a"), 0));
        assert_ne!(hash(&template("a"), 0), hash(&template("a"), 1));
        assert_ne!(hash(&template("a"), 0), hash(&template("b"), 0));
        assert_eq!(hash(&template("a"), 0).len(), HASH_LENGTH);
    }

    #[test]
    fn a_template_is_recognised_under_its_hash_label() {
        let mut labelled = template("a");
        labelled.metadata.get_or_insert_default().labels.get_or_insert_default().insert(HASH_LABEL.into(), "x".into());
        assert!(same(&labelled, &template("a")));
        assert!(!same(&labelled, &template("b")));
    }
}
