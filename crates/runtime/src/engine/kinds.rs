//! The kinds that an operator declared, as caches of any type.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde_json::Value;
use windlass_core::View;

use crate::cache::{Applied, Change, Glance};
use crate::informer::Informer;
use crate::key::ObjectKey;
use crate::object::{Known, Object};
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
    fn resource(&self) -> &ApiResource;
    fn live(&self, key: &ObjectKey) -> Option<Live>;
    /// What is known of an object without reading it.
    fn glance(&self, key: &ObjectKey) -> Option<Glance>;
    fn owned_by(&self, uid: &str) -> Vec<Known>;
    fn keys_owned_by(&self, uid: &str) -> Vec<Arc<ObjectKey>>;
    fn unseen(&self, namespace: Option<&str>) -> Option<String>;
}

/// An object that there is, and the fields of it that the operator applied.
pub(crate) struct Live {
    object: Known,
    applied: Option<Applied>,
}

impl Live {
    pub(crate) fn meta(&self) -> &ObjectMeta {
        self.object.metadata()
    }

    /// All of it as the API has it, but that of managed fields it has only those that `manager`, the operator, applied.
    pub(crate) fn value(&self, manager: &str) -> Value {
        let mut value = self.object.value();
        if let Some(applied) = &self.applied {
            applied.put(&mut value, manager);
        }
        value
    }
}

/// The objects of a kind that the operator owns.
pub(crate) struct Owned<K: Object> {
    resource: ApiResource,
    informer: Informer<K>,
}

impl<K: Object<DynamicType = ()>> Owned<K> {
    pub(crate) fn new(informer: Informer<K>) -> Self {
        Self { resource: ApiResource::erase::<K>(&()), informer }
    }
}

impl<K: Object> Children for Owned<K> {
    fn resource(&self) -> &ApiResource {
        &self.resource
    }

    fn live(&self, key: &ObjectKey) -> Option<Live> {
        let (object, applied) = self.informer.get_applied(key)?;
        Some(Live { object, applied })
    }

    fn glance(&self, key: &ObjectKey) -> Option<Glance> {
        self.informer.glance(key)
    }

    fn keys_owned_by(&self, uid: &str) -> Vec<Arc<ObjectKey>> {
        self.informer.keys_owned_by(uid)
    }

    fn owned_by(&self, uid: &str) -> Vec<Known> {
        self.informer.owned_by(uid).into_iter().map(|object| object as Known).collect()
    }

    fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        self.informer.unseen(namespace)
    }
}

/// The caches of owned kinds, by group and kind.
#[derive(Clone, Default)]
pub(crate) struct Nursery(BTreeMap<(String, String), Arc<dyn Children>>);

impl Nursery {
    pub(crate) fn add(&mut self, children: Arc<dyn Children>) {
        let ApiResource { group, kind, .. } = children.resource().clone();
        self.0.insert((group, kind), children);
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
