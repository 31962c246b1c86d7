//! What a cache keeps of an object: no managed fields, but for those that its own operator applied.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde_json::{Value, json};

/// The operation of managed fields that were applied.
const APPLY: &str = "Apply";

/// An object in a cache. Without managed fields it can be written back without a word about who owns what.
#[derive(Debug)]
pub(crate) struct Kept<K> {
    pub(crate) object: Arc<K>,
    pub(crate) applied: Option<Applied>,
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), applied: self.applied.clone() }
    }
}

impl<K: Resource> Kept<K> {
    pub(super) fn new(mut object: K, manager: &str) -> Self {
        let applied = Applied::take(object.meta_mut(), manager);
        Self { object: Arc::new(object), applied }
    }
}

/// The fields that the operator applied to an object. As a text: values take ten times the memory, and they are looked at
/// only when the object is compared with what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied(Arc<str>);

impl Applied {
    /// Takes the managed fields out of `meta`. What was applied to a subresource is nobody's to compare.
    fn take(meta: &mut ObjectMeta, manager: &str) -> Option<Self> {
        let entries = meta.managed_fields.take()?;
        let is_ours = |entry: &ManagedFieldsEntry| {
            entry.manager.as_deref() == Some(manager)
                && entry.operation.as_deref() == Some(APPLY)
                && entry.subresource.as_deref().is_none_or(str::is_empty)
        };
        let fields = entries.into_iter().find(is_ours)?.fields_v1?;
        Some(Self(fields.0.to_string().into()))
    }

    /// Puts them back where the API has them.
    pub(crate) fn put(&self, object: &mut Value, manager: &str) {
        let fields: Value = serde_json::from_str(&self.0).unwrap_or_default();
        object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": APPLY, "fieldsV1": fields}]);
    }
}
