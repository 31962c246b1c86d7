//! The kinds that an operator declared, as caches of any type.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;
use windlass_core::View;

use crate::cache::Change;
use crate::informer::Informer;
use crate::key::ObjectKey;
use crate::object::Object;
use crate::owners::{controller_of, is_cluster_scoped, refers_to};

/// More steps than this between a Pod and its resource are taken for a circle.
const LINEAGE_MAX: usize = 8;

impl<K: Object> View<K> for Informer<K> {
    fn get(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        let namespace = namespace.filter(|_| !is_cluster_scoped::<K>());
        (**self).get(&ObjectKey { namespace: namespace.map(Into::into), name: name.into() })
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        (**self).owned_by(uid)
    }

    fn all(&self) -> Vec<Arc<K>> {
        (**self).all()
    }

    fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        Informer::unseen(self, namespace.filter(|_| !is_cluster_scoped::<K>()))
    }
}

/// A cache of a kind whose objects the operator makes.
pub(crate) trait Children: Send + Sync {
    fn resource(&self) -> ApiResource;
    fn live(&self, key: &ObjectKey) -> Option<Value>;
    fn owned_by(&self, uid: &str) -> Vec<ObjectMeta>;
    fn unseen(&self, namespace: Option<&str>) -> Option<String>;
}

impl<K: Object<DynamicType = ()> + Serialize> Children for Informer<K> {
    fn resource(&self) -> ApiResource {
        ApiResource::erase::<K>(&())
    }

    fn live(&self, key: &ObjectKey) -> Option<Value> {
        (**self).get(key).and_then(|object| serde_json::to_value(&*object).ok())
    }

    fn owned_by(&self, uid: &str) -> Vec<ObjectMeta> {
        (**self).owned_by(uid).iter().map(|object| object.meta().clone()).collect()
    }

    fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        Informer::unseen(self, namespace)
    }
}

/// The caches of owned kinds, by group and kind.
#[derive(Clone, Default)]
pub(crate) struct Nursery(BTreeMap<(String, String), Arc<dyn Children>>);

impl Nursery {
    pub(crate) fn add(&mut self, children: Arc<dyn Children>) {
        let resource = children.resource();
        self.0.insert((resource.group, resource.kind), children);
    }

    pub(crate) fn of(&self, resource: &ApiResource) -> Option<&Arc<dyn Children>> {
        self.0.get(&(resource.group.clone(), resource.kind.clone()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Children>> {
        self.0.values()
    }
}

/// Metadata by uid.
pub(crate) trait Ancestors: Send + Sync {
    fn meta(&self, uid: &str) -> Option<ObjectMeta>;
}

impl<K: Object> Ancestors for Informer<K> {
    fn meta(&self, uid: &str) -> Option<ObjectMeta> {
        self.by_uid(uid).map(|object| object.meta().clone())
    }
}

/// All caches of an operator, to walk from a child to its resource.
#[derive(Clone, Default)]
pub(crate) struct Family(Vec<Arc<dyn Ancestors>>);

impl Family {
    pub(crate) fn add(&mut self, ancestors: Arc<dyn Ancestors>) {
        self.0.push(ancestors);
    }

    /// The resources of kind `O` above the changed object. A link that is not known yet is made up for when it becomes
    /// known, since that is a change, too.
    pub(crate) fn heads<O: Object<DynamicType = ()>, K: Object>(&self, change: &Change<K>) -> Vec<ObjectKey> {
        let mut heads = Vec::new();
        for object in change.states() {
            let head = self.head::<O>(object.meta().clone());
            heads.extend(head.filter(|head| !heads.contains(head)));
        }
        heads
    }

    fn head<O: Object<DynamicType = ()>>(&self, mut meta: ObjectMeta) -> Option<ObjectKey> {
        for _ in 0..LINEAGE_MAX {
            let owner = controller_of(&meta)?;
            if refers_to::<O>(owner, &()) {
                let namespace = meta.namespace.clone().filter(|_| !is_cluster_scoped::<O>());
                return Some(ObjectKey { namespace, name: owner.name.clone() });
            }
            meta = self.0.iter().find_map(|ancestors| ancestors.meta(&owner.uid))?;
        }
        None
    }
}
