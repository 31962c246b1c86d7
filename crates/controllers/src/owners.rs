//! Owner references: who controls an object, and the reference that a controller puts on what it makes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

/// The reference to the controller among the owners, if there is one.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the object is controlled by the owner with that UID.
pub(crate) fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller(meta).is_some_and(|owner| owner.uid == uid)
}

/// The controller reference from a child to `owner`; deletion of the owner in the foreground waits for the child.
pub(crate) fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: owner.meta().name.clone().unwrap_or_default(),
        uid: owner.meta().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
