//! The last known state of the objects of one watch, with the process's own writes already in it.

mod applied;
mod index;
mod state;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher::Event;

pub(crate) use applied::{Applied, Kept};
pub(crate) use index::{IndexId, IndexValues};

use self::state::{State, revision};
use crate::key::ObjectKey;

/// What happened to an object.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// The object before, `None` if it was not known.
    pub old: Option<Arc<K>>,
    /// The object after, `None` if it is gone.
    pub new: Option<Arc<K>>,
    /// Whether it comes from a list rather than from news.
    pub listed: bool,
}

impl<K: Resource> Change<K> {
    /// The newest state that is known.
    pub fn object(&self) -> &Arc<K> {
        self.new.as_ref().or(self.old.as_ref()).expect("a change has an old or a new object")
    }

    /// The key of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&**self.object())
    }

    /// Both states, old first: a mapper that looks at references must see the ones that went away, too.
    pub fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(self.new.iter())
    }
}

/// Objects by key, uid and owner, and those without one by namespace. They have no managed fields.
#[derive(Debug)]
pub struct Cache<K> {
    /// The operator's name, by which it knows the fields that it applied.
    manager: String,
    state: RwLock<State<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self::of(String::new())
    }
}

impl<K> Cache<K> {
    /// The cache of an operator of this name.
    pub(crate) fn of(manager: String) -> Self {
        Self { manager, state: RwLock::default() }
    }
}

impl<K: Resource> Cache<K> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().objects.get(key).map(|kept| kept.object.clone())
    }

    /// The object with this key, and the fields of it that the operator applied.
    pub(crate) fn get_applied(&self, key: &ObjectKey) -> Option<(Arc<K>, Option<Applied>)> {
        self.read().objects.get(key).map(|kept| (kept.object.clone(), kept.applied.clone()))
    }

    /// Whether what `head` names is known, or something newer of the same name.
    pub(crate) fn is_known(&self, head: &ObjectMeta) -> bool {
        self.read().is_known(&ObjectKey::of_meta(head), head)
    }

    /// Takes in that a list has what `head` names; `false` if that is not what is known.
    pub(crate) fn relist(&self, namespace: Option<&str>, head: &ObjectMeta) -> bool {
        self.write().relist(namespace, ObjectKey::of_meta(head), head)
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<K>> {
        let state = self.read();
        state.by_uid.get(uid).and_then(|key| state.object(key)).cloned()
    }

    /// The objects that have an owner reference to `uid`, in order of their keys.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.object(key)).cloned().collect()
    }

    /// The objects that a controller with this uid has or might take: those with an owner reference to it, and those of the
    /// namespace that no controller has. In order of their keys, the former first.
    pub fn claimable(&self, uid: &str, namespace: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let owned = state.by_owner.get(uid);
        let free = state.free.get(&Some(namespace.to_owned())).into_iter().flatten();
        let free = free.filter(|key| !owned.is_some_and(|owned| owned.contains(*key)));
        owned.into_iter().flatten().chain(free).filter_map(|key| state.object(key)).cloned().collect()
    }

    /// The objects for which `wanted` holds, in order of their keys; keep it cheap, the cache is locked meanwhile.
    pub fn filter(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        let state = self.read();
        let mut found: Vec<_> = state.objects.iter().filter(|(_, kept)| wanted(&kept.object)).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, kept)| kept.object.clone()).collect()
    }

    /// The objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.filter(|object| object.meta().namespace.as_deref() == Some(namespace))
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.filter(|_| true)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes in what a watch of all objects says, and returns what is news.
    pub fn observe(&self, event: Event<K>) -> Vec<Change<K>> {
        self.observe_in(None, event)
    }

    /// Takes in what the watch of one namespace says: its lists say nothing of the others.
    pub(crate) fn observe_in(&self, namespace: Option<&str>, event: Event<K>) -> Vec<Change<K>> {
        let mut state = self.write();
        match event {
            Event::Apply(object) => state.applied(self.keep(object)).into_iter().collect(),
            Event::Delete(object) => state.vanished(object.meta()).into_iter().collect(),
            Event::Init => {
                state.begin_list(namespace);
                Vec::new()
            }
            Event::InitApply(object) => {
                state.list(namespace, self.keep(object));
                Vec::new()
            }
            Event::InitDone => state.listed(namespace),
        }
    }

    /// Takes in that a namespace is watched no longer.
    pub(crate) fn leave(&self, namespace: &str) -> Vec<Change<K>> {
        self.write().leave(namespace)
    }

    /// Keeps an index of the objects by what `values` finds in them, until it is dropped.
    pub(crate) fn add_index(&self, values: IndexValues<K>) -> IndexId {
        self.write().add_index(values)
    }

    pub(crate) fn drop_index(&self, id: IndexId) {
        self.write().drop_index(id);
    }

    pub(crate) fn indexed(&self, id: IndexId, value: &str) -> Vec<Arc<K>> {
        self.read().indexed(id, value)
    }

    /// Takes in the answer to an own write. `known_only` is for watches whose selector cannot be judged here.
    pub(crate) fn wrote(&self, kept: Kept<K>, known_only: bool) -> Option<Change<K>> {
        let mut state = self.write();
        let key = ObjectKey::of(&*kept.object);
        if state.is_gone(kept.object.meta()) || (known_only && !state.objects.contains_key(&key)) {
            return None;
        }
        state.wrote_while_listing(key, &kept);
        revision(kept.object.meta())?;
        state.applied(kept)
    }

    /// Takes in that the object that `head` names is gone.
    pub(crate) fn vanished(&self, head: &ObjectMeta) -> Option<Change<K>> {
        self.write().vanished(head)
    }

    /// Takes in that an own deletion removed `uid`, which was in `namespace`, at once.
    pub fn deleted(&self, uid: &str, namespace: Option<&str>) -> Option<Change<K>> {
        let mut state = self.write();
        state.bury(uid, namespace);
        let key = state.by_uid.get(uid).cloned()?;
        let old = state.remove(&key)?.object;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// Takes in that the object with this key can no longer be read.
    pub(crate) fn unreadable(&self, key: &ObjectKey) -> Option<Change<K>> {
        let old = self.write().remove(key)?.object;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// As it is kept here.
    pub(crate) fn keep(&self, object: K) -> Kept<K> {
        Kept::new(object, &self.manager)
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().expect("no code that can panic runs under this lock")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().expect("no code that can panic runs under this lock")
    }
}

#[cfg(test)]
mod tests;
