//! What the runtime can watch.

use std::borrow::Cow;
use std::fmt::Debug;
use std::hash::Hash;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

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

/// What a watch delivers: an object whose scope is known only at run time, so that one code path watches kinds of
/// every scope.
pub(crate) trait Delivery<K>:
    Resource<DynamicType = K::DynamicType, Scope = DynamicResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
where
    K: Object,
{
    /// The object, or what is known of one that cannot be read.
    fn open(self) -> Result<K, Unreadable>;
}

/// An object that is not what its type says.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub(crate) meta: Box<ObjectMeta>,
    pub(crate) why: String,
}

/// An object that can be read, or the watch fails: fast, and true of all objects whose schema the type follows.
#[derive(Clone, Debug)]
pub(crate) struct Plain<K>(K);

/// An object that may be unreadable without harm to the others.
#[derive(Clone, Debug)]
pub(crate) struct Guarded<K>(Result<K, Unreadable>);

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Plain<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::deserialize(deserializer).map(Self)
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match K::deserialize(&value) {
            Ok(object) => Ok(Self(Ok(object))),
            Err(error) => {
                let meta = Box::<ObjectMeta>::deserialize(&value["metadata"]).map_err(serde::de::Error::custom)?;
                Ok(Self(Err(Unreadable { meta, why: error.to_string() })))
            }
        }
    }
}

impl<K: Object> Delivery<K> for Plain<K> {
    fn open(self) -> Result<K, Unreadable> {
        Ok(self.0)
    }
}

impl<K: Object> Delivery<K> for Guarded<K> {
    fn open(self) -> Result<K, Unreadable> {
        self.0
    }
}

/// The kind of a delivery is that of its object.
macro_rules! delivers {
    ($delivery:ident, $self:ident, $meta:expr, $meta_mut:expr) => {
        impl<K: Resource> Resource for $delivery<K> {
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

            fn meta(&$self) -> &ObjectMeta {
                $meta
            }

            fn meta_mut(&mut $self) -> &mut ObjectMeta {
                $meta_mut
            }
        }
    };
}

delivers!(Plain, self, self.0.meta(), self.0.meta_mut());
delivers!(
    Guarded,
    self,
    self.0.as_ref().map_or_else(|bad| &*bad.meta, Resource::meta),
    match &mut self.0 {
        Ok(object) => object.meta_mut(),
        Err(bad) => &mut bad.meta,
    }
);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_that_cannot_be_read_keeps_its_name_and_the_others_readable() {
        let list = json!([
            {"metadata": {"name": "good"}, "data": {"a": "b"}},
            {"metadata": {"name": "bad"}, "data": {"a": 5}},
        ]);
        assert!(serde_json::from_value::<Vec<Plain<ConfigMap>>>(list.clone()).is_err());
        let opened: Vec<_> = serde_json::from_value::<Vec<Guarded<ConfigMap>>>(list).unwrap();
        let names: Vec<_> = opened.iter().map(|delivery| delivery.meta().name.clone().unwrap()).collect();
        assert_eq!(names, ["good", "bad"]);
        let readable: Vec<_> = opened.into_iter().map(|delivery| delivery.open().is_ok()).collect();
        assert_eq!(readable, [true, false]);
    }
}
