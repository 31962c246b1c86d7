//! What a cache keeps of an object: no managed fields, but for those that its own operator applied.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::{Value, json};

use super::head::Head;
use super::packed::{self, Packed};
use crate::key::ObjectKey;
use crate::object::Object;
use crate::packer::Packer;
use crate::slim::{APPLY, Slim};

/// An object in a cache: as it is, packed, or both on its way into the cache.
#[derive(Debug)]
pub(crate) struct Kept<K> {
    pub(super) head: Head,
    pub(super) open: Option<Open<K>>,
    pub(super) packed: Option<Packed>,
}

/// An object as it is. Without managed fields it can be written back without a word about who owns what.
#[derive(Debug)]
pub(crate) struct Open<K> {
    pub(crate) object: Arc<K>,
    pub(crate) applied: Option<Applied>,
}

impl<K> Clone for Kept<K> {
    fn clone(&self) -> Self {
        Self { head: self.head.clone(), open: self.open.clone(), packed: self.packed.clone() }
    }
}

impl<K> Clone for Open<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), applied: self.applied.clone() }
    }
}

impl<K: Object> Kept<K> {
    /// An object that is there as it is alone.
    pub(super) fn new(mut object: K, manager: &str) -> Self {
        let applied = Applied::take(object.meta_mut(), manager);
        let head = Head::of(object.meta());
        Self { head, open: Some(Open { object: Arc::new(object), applied }), packed: None }
    }

    /// Reads an object, and packs it if it is to rest in `packer`'s cache.
    pub(super) fn read(text: &str, manager: &str, packer: Option<&Packer>) -> serde_json::Result<Self> {
        let slim = Slim::of(text, manager)?;
        let object: K = serde_json::from_str(&slim.text)?;
        let (head, packed) = (Head::of(object.meta()), packer.map(|packer| packed::pack(packer, &slim)));
        let applied = slim.applied.as_deref().map(Applied::of);
        Ok(Self { head, open: Some(Open { object: Arc::new(object), applied }), packed })
    }

    /// The object as it is.
    pub(super) fn open(&self, packer: &Packer) -> Option<Open<K>> {
        self.open.clone().or_else(|| packed::open(packer, self.packed.as_ref()?))
    }

    /// The key of an object that has not been put away yet.
    pub(super) fn key(&self) -> Option<ObjectKey> {
        self.object().map(|object| ObjectKey::of(&**object))
    }

    /// The object as it was read, if it has not been put away since.
    pub(crate) fn object(&self) -> Option<&Arc<K>> {
        self.open.as_ref().map(|open| &open.object)
    }
}

/// The fields that the operator applied to an object. As a text: values take ten times the memory, and they are looked at
/// only when the object is compared with what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied(Arc<str>);

impl Applied {
    pub(super) fn of(fields: &str) -> Self {
        Self(fields.into())
    }

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
