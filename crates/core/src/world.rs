//! The state of the world as an operator sees it: caches, without I/O.

use std::any::{Any, TypeId, type_name};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;

use crate::pods::Pods;

/// Objects of one kind.
pub trait View<K>: Send + Sync {
    /// The object with this name.
    fn get(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>>;
    /// The objects with an owner reference to this uid.
    fn owned_by(&self, uid: &str) -> Vec<Arc<K>>;
    /// All objects.
    fn all(&self) -> Vec<Arc<K>>;
    /// Why the objects of `namespace` (of all, if it is `None`) cannot be seen; `None` if they can.
    fn unseen(&self, namespace: Option<&str>) -> Option<String> {
        let _ = namespace;
        None
    }
}

/// What is known of the world; cheap to clone.
#[derive(Clone)]
pub struct World {
    views: Arc<Views>,
    now: Timestamp,
    /// The first thing that it was asked for and could not see.
    blind: Arc<OnceLock<String>>,
}

#[derive(Clone, Default)]
struct Views {
    /// `Arc<dyn View<K>>` by the type `K`.
    by_type: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    lineages: BTreeMap<&'static str, Arc<dyn Lineage>>,
    /// Whether a kind that is not there is a mistake of the author, and not just empty.
    strict: bool,
}

/// Uids by the uid of their owner.
trait Lineage: Send + Sync {
    fn uids_owned_by(&self, uid: &str) -> Vec<String>;
}

struct ViewLineage<K>(Arc<dyn View<K>>);

impl<K: Resource + Send + Sync> Lineage for ViewLineage<K> {
    fn uids_owned_by(&self, uid: &str) -> Vec<String> {
        self.0.owned_by(uid).iter().filter_map(|object| object.meta().uid.clone()).collect()
    }
}

impl Default for World {
    fn default() -> Self {
        Self { views: Arc::default(), now: Timestamp::UNIX_EPOCH, blind: Arc::default() }
    }
}

impl World {
    /// An empty world, to be filled by [`World::with`]: for tests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same world with `object` in it: for tests.
    #[must_use]
    pub fn with<K: Resource + Send + Sync + 'static>(self, object: K) -> Self {
        let mut objects = self.view::<K>().map(|view| view.all()).unwrap_or_default();
        objects.push(Arc::new(object));
        self.with_view(Arc::new(Objects(objects)))
    }

    /// The same world with a view of the kind `K`.
    #[must_use]
    pub fn with_view<K: Resource + Send + Sync + 'static>(mut self, view: Arc<dyn View<K>>) -> Self {
        let views = Arc::make_mut(&mut self.views);
        views.lineages.insert(type_name::<K>(), Arc::new(ViewLineage(view.clone())));
        views.by_type.insert(TypeId::of::<K>(), Arc::new(view));
        self
    }

    /// The same world, in which asking for a kind that was not declared is a mistake that shows.
    #[must_use]
    pub fn strict(mut self) -> Self {
        Arc::make_mut(&mut self.views).strict = true;
        self
    }

    /// The same world at another time, of which nothing was asked yet.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = now;
        self.blind = Arc::default();
        self
    }

    /// What it was asked for and could not see, because the watch of it fails: then "not there" means nothing.
    pub fn blind(&self) -> Option<&str> {
        self.blind.get().map(String::as_str)
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The object of kind `K` with this name; the namespace is not looked at for cluster-scoped kinds.
    pub fn get<K: Resource + 'static>(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.look::<K>(namespace)?.get(namespace, name)
    }

    /// All objects of kind `K` that the operator sees.
    pub fn all<K: Resource + 'static>(&self) -> Vec<Arc<K>> {
        self.look::<K>(None).map(|view| view.all()).unwrap_or_default()
    }

    /// The objects of kind `K` that `owner` owns.
    pub fn children<K: Resource + 'static>(&self, owner: &impl Resource) -> Vec<Arc<K>> {
        let meta = owner.meta();
        let (Some(view), Some(uid)) = (self.look::<K>(meta.namespace.as_deref()), meta.uid.as_deref()) else {
            return Vec::new();
        };
        view.owned_by(uid)
    }

    /// The object of kind `K` called `name` that `owner` owns.
    pub fn child<K: Resource + 'static>(&self, owner: &impl Resource, name: &str) -> Option<Arc<K>> {
        self.children::<K>(owner).into_iter().find(|child| child.meta().name.as_deref() == Some(name))
    }

    /// The objects of kind `K` in `namespace` that carry all of `labels`.
    pub fn labelled<K: Resource + 'static>(
        &self,
        namespace: Option<&str>,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<K>> {
        let matches = |object: &Arc<K>| {
            let meta = object.meta();
            let own = meta.labels.as_ref();
            let carries = |(key, value): (&String, &String)| own.and_then(|own| own.get(key)) == Some(value);
            meta.namespace.as_deref() == namespace && labels.iter().all(carries)
        };
        self.look::<K>(namespace).map(|view| view.all()).unwrap_or_default().into_iter().filter(matches).collect()
    }

    /// The Pods that `owner` owns, directly or through workloads (Deployment, ReplicaSet, Pod).
    pub fn pods_of(&self, owner: &impl Resource) -> Pods {
        let meta = owner.meta();
        let (Some(pods), Some(uid)) = (self.look::<Pod>(meta.namespace.as_deref()), meta.uid.clone()) else {
            return Pods::default();
        };
        let mut family = HashSet::from([uid.clone()]);
        let mut generation = vec![uid];
        while !generation.is_empty() {
            let children = generation.iter().flat_map(|uid| self.uids_owned_by(uid)).collect::<Vec<_>>();
            generation = children.into_iter().filter(|uid| family.insert(uid.clone())).collect();
        }
        family.iter().flat_map(|uid| pods.owned_by(uid)).collect()
    }

    fn uids_owned_by(&self, uid: &str) -> Vec<String> {
        self.views.lineages.values().flat_map(|lineage| lineage.uids_owned_by(uid)).collect()
    }

    /// The view of a kind, for somebody who takes what is there for the truth.
    fn look<K: 'static>(&self, namespace: Option<&str>) -> Option<Arc<dyn View<K>>> {
        let view = self.view::<K>()?;
        if let Some(why) = view.unseen(namespace) {
            self.blind.get_or_init(|| why);
        }
        Some(view)
    }

    /// The objects of kind `K` that `owner` owns, if the kind was declared.
    pub(crate) fn known_children<K: Resource + 'static>(&self, owner: &impl Resource) -> Vec<Arc<K>> {
        if self.declared::<K>().is_some() { self.children(owner) } else { Vec::new() }
    }

    fn declared<K: 'static>(&self) -> Option<Arc<dyn View<K>>> {
        let view = self.views.by_type.get(&TypeId::of::<K>());
        view.map(|view| view.downcast_ref::<Arc<dyn View<K>>>().expect("the key is the type").clone())
    }

    fn view<K: 'static>(&self) -> Option<Arc<dyn View<K>>> {
        let view = self.declared::<K>();
        assert!(
            view.is_some() || !self.views.strict,
            "{} was not declared: add .owns, .reads or .pods to the operator",
            type_name::<K>()
        );
        view
    }
}

/// A fixed set of objects.
struct Objects<K>(Vec<Arc<K>>);

impl<K: Resource + Send + Sync> View<K> for Objects<K> {
    fn get(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        let is_it = |object: &&Arc<K>| {
            let meta = object.meta();
            meta.name.as_deref() == Some(name) && (meta.namespace.is_none() || meta.namespace.as_deref() == namespace)
        };
        self.0.iter().find(is_it).cloned()
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let owns = |object: &&Arc<K>| object.meta().owner_references.iter().flatten().any(|owner| owner.uid == uid);
        self.0.iter().filter(owns).cloned().collect()
    }

    fn all(&self) -> Vec<Arc<K>> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

    use super::*;

    fn meta(uid: &str, owner: &str) -> ObjectMeta {
        let owner = OwnerReference { uid: owner.into(), ..OwnerReference::default() };
        ObjectMeta {
            name: Some(uid.into()),
            uid: Some(uid.into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn pods_are_found_through_their_workloads_and_no_others() {
        let world = World::new()
            .with(Deployment { metadata: meta("d", "owner"), ..Default::default() })
            .with(ReplicaSet { metadata: meta("r", "d"), ..Default::default() })
            .with(Pod { metadata: meta("p", "r"), ..Default::default() })
            .with(Pod { metadata: meta("direct", "owner"), ..Default::default() })
            .with(Pod { metadata: meta("stranger", "other"), ..Default::default() });
        let owner = Pod { metadata: meta("owner", "nobody"), ..Default::default() };
        assert_eq!(world.pods_of(&owner).names(), ["direct", "p"]);
    }

    #[test]
    fn labels_select_in_one_namespace() {
        let pod = |namespace: &str, app: &str| {
            let labels = BTreeMap::from([("app".to_owned(), app.to_owned()), ("more".into(), "yes".into())]);
            let metadata = ObjectMeta { namespace: Some(namespace.into()), labels: Some(labels), ..meta(app, "") };
            Pod { metadata, ..Default::default() }
        };
        let world = World::new().with(pod("a", "web")).with(pod("a", "db")).with(pod("b", "web"));
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        assert_eq!(world.labelled::<Pod>(Some("a"), &labels).len(), 1);
        assert_eq!(world.labelled::<Pod>(Some("a"), &BTreeMap::new()).len(), 2);
    }

    #[test]
    #[should_panic(expected = "was not declared")]
    fn a_kind_that_was_not_declared_is_a_mistake_that_shows() {
        let _ = World::new().strict().get::<Deployment>(Some("a"), "b");
    }
}
