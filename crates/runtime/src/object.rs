//! What the runtime can watch.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A kind that can be watched: typed, `DynamicObject`, or `PartialObjectMeta` for metadata only.
pub trait Object:
    Resource<DynamicType: Clone + Debug + Eq + Hash + Send + Sync, Scope: 'static>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
    K::Scope: 'static,
{
}

/// An object of any kind, as a cache has it.
pub(crate) type Known = Arc<dyn AnyObject>;

/// What can be asked of an object of any kind.
pub(crate) trait AnyObject: Send + Sync {
    fn metadata(&self) -> &ObjectMeta;
    /// All of it.
    fn value(&self) -> Value;
}

impl<K: Object> AnyObject for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}
