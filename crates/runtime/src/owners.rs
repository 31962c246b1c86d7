//! From an object to the one that owns it.

use std::any::TypeId;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

use crate::cache::Change;
use crate::key::ObjectKey;
use crate::object::Object;

/// The reference to the controller of an object, if it has one.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether `owner` refers to the kind `K`. The version does not matter: a kind keeps its objects when it gets a new one.
pub fn refers_to<K: Resource>(owner: &OwnerReference, dyntype: &K::DynamicType) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    group == K::group(dyntype) && owner.kind == K::kind(dyntype)
}

/// The keys of the controllers of kind `O` that `child` has or had.
pub fn owner_keys<O: Object, C: Object>(change: &Change<C>, owner_type: &O::DynamicType) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    for child in change.states() {
        let meta = child.meta();
        let Some(owner) = controller_of(meta).filter(|owner| refers_to::<O>(owner, owner_type)) else { continue };
        let namespace = if is_cluster_scoped::<O>() { None } else { meta.namespace.clone() };
        let key = ObjectKey { namespace, name: owner.name.clone() };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Whether objects of kind `K` are known at compile time to live outside namespaces.
pub fn is_cluster_scoped<K: Object>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

    use super::*;

    fn replica_set(api_version: &str, kind: &str, controller: bool) -> ReplicaSet {
        let owner = OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "web".into(),
            uid: "1".into(),
            controller: Some(controller),
            block_owner_deletion: None,
        };
        let metadata = ObjectMeta {
            namespace: Some("a".into()),
            name: Some("web-1".into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        ReplicaSet { metadata, ..ReplicaSet::default() }
    }

    #[test]
    fn the_version_of_the_owner_does_not_matter_but_group_and_kind_do() {
        let rows = [
            ("apps/v1", "Deployment", true, 1),
            ("apps/v1beta1", "Deployment", true, 1),
            ("v1", "Deployment", true, 0),
            ("apps/v1", "StatefulSet", true, 0),
            ("apps/v1", "Deployment", false, 0),
        ];
        for (api_version, kind, controller, expected) in rows {
            let new = Some(Arc::new(replica_set(api_version, kind, controller)));
            let change = Change { old: None, new, listed: false };
            assert_eq!(owner_keys::<Deployment, _>(&change, &()).len(), expected, "{api_version} {kind} {controller}");
        }
    }

    #[test]
    fn an_owner_that_let_go_hears_of_it() {
        let mut orphan = replica_set("apps/v1", "Deployment", true);
        orphan.metadata.owner_references = None;
        let old = Some(Arc::new(replica_set("apps/v1", "Deployment", true)));
        let change = Change { old, new: Some(Arc::new(orphan)), listed: false };
        assert_eq!(owner_keys::<Deployment, _>(&change, &()), [ObjectKey::namespaced("a", "web")]);
    }
}
