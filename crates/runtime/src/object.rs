//! What the runtime can watch.

use std::borrow::Cow;
use std::fmt::Debug;
use std::hash::Hash;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A kind that can be watched: typed, `DynamicObject`, or `PartialObjectMeta` for metadata only.
pub trait Object:
    Resource<DynamicType: Clone + Debug + Eq + Hash + Send + Sync, Scope: 'static>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
    K::Scope: 'static,
{
}

/// An object whose scope is known only at run time, so that one code path watches kinds of every scope.
#[derive(Clone, Debug)]
pub(crate) struct AnyScope<K>(pub(crate) K);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for AnyScope<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::deserialize(deserializer).map(Self)
    }
}

impl<K: Resource> Resource for AnyScope<K> {
    type DynamicType = K::DynamicType;
    type Scope = DynamicResourceScope;

    fn kind(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(dyntype)
    }

    fn group(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::group(dyntype)
    }

    fn version(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::version(dyntype)
    }

    fn plural(dyntype: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(dyntype)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}
