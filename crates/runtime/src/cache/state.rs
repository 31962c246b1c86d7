//! What a cache holds, and how news change it.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use super::Change;
use super::applied::Kept;
use super::index::{IndexId, IndexValues, Indexes};
use crate::key::ObjectKey;
use crate::owners::controller_of;

/// How many deletions are remembered: own ones until the watch confirms them, others until own writes have been answered.
const TOMBSTONES_MAX: usize = 4096;

/// Keys in order; each is kept once, whatever it is found by.
pub(super) type Keys = BTreeSet<Arc<ObjectKey>>;

#[derive(Debug)]
pub(super) struct State<K> {
    pub(super) objects: HashMap<Arc<ObjectKey>, Kept<K>>,
    pub(super) by_uid: HashMap<Box<str>, Arc<ObjectKey>>,
    pub(super) by_owner: HashMap<Box<str>, Keys>,
    /// The objects that no controller has, by namespace.
    pub(super) free: HashMap<Option<String>, Keys>,
    indexes: Indexes<K>,
    /// Uids that this process deleted, and their namespaces, while the watch may still tell of their lives.
    deleted: VecDeque<(String, Option<String>)>,
    /// Uids that the watch said are gone, oldest first, and at which revision: the answer to an own write may come later.
    gone: VecDeque<(String, u64)>,
    /// Lists in progress by the namespace that they are of.
    listings: BTreeMap<Option<String>, Listing<K>>,
}

/// A list in progress. Own writes made meanwhile may be newer than what it will say.
#[derive(Debug)]
struct Listing<K> {
    seen: HashMap<ObjectKey, Kept<K>>,
    written: HashMap<ObjectKey, Kept<K>>,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            objects: HashMap::new(),
            by_uid: HashMap::new(),
            by_owner: HashMap::new(),
            free: HashMap::new(),
            indexes: Indexes::default(),
            deleted: VecDeque::new(),
            gone: VecDeque::new(),
            listings: BTreeMap::new(),
        }
    }
}

impl<K: Resource> State<K> {
    pub(super) fn begin_list(&mut self, namespace: Option<&str>) {
        let listing = Listing { seen: HashMap::new(), written: HashMap::new() };
        self.listings.insert(namespace.map(Into::into), listing);
    }

    pub(super) fn object(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key).map(|kept| &kept.object)
    }

    /// Whether what `head` names is known, or something newer under its key.
    pub(super) fn is_known(&self, key: &ObjectKey, head: &ObjectMeta) -> bool {
        self.object(key).is_some_and(|known| !is_newer(head, known.meta()))
    }

    pub(super) fn list(&mut self, namespace: Option<&str>, kept: Kept<K>) {
        if let Some(listing) = self.listings.get_mut(&namespace.map(str::to_owned)) {
            listing.seen.insert(ObjectKey::of(&*kept.object), kept);
        }
    }

    /// Takes in that a list has what is known already; `false` if that is not so.
    pub(super) fn relist(&mut self, namespace: Option<&str>, key: ObjectKey, head: &ObjectMeta) -> bool {
        let is_it = |kept: &&Kept<K>| {
            let known = kept.object.meta();
            known.uid == head.uid && known.resource_version == head.resource_version
        };
        let Some(kept) = self.objects.get(&key).filter(is_it).cloned() else { return false };
        self.list(namespace, kept);
        true
    }

    pub(super) fn wrote_while_listing(&mut self, key: ObjectKey, kept: &Kept<K>) {
        for (namespace, listing) in &mut self.listings {
            if namespace.is_none() || *namespace == key.namespace {
                listing.written.insert(key.clone(), kept.clone());
            }
        }
    }

    /// Remembers an own deletion.
    pub(super) fn bury(&mut self, uid: &str, namespace: Option<&str>) {
        if self.deleted.len() == TOMBSTONES_MAX {
            self.deleted.pop_front();
        }
        self.deleted.push_back((uid.to_owned(), namespace.map(Into::into)));
    }

    pub(super) fn applied(&mut self, kept: Kept<K>) -> Option<Change<K>> {
        let meta = kept.object.meta();
        let is_deleted = |uid: &str| self.deleted.iter().any(|(deleted, _)| deleted == uid);
        let key = ObjectKey::of_meta(meta);
        if meta.uid.as_deref().is_some_and(is_deleted) || self.is_known(&key, meta) {
            return None;
        }
        let new = Some(kept.object.clone());
        let old = self.insert(key, kept);
        Some(Change { old, new, listed: false })
    }

    /// Whether the watch has told the end of the life that `object` is a state of.
    pub(super) fn is_gone(&self, meta: &ObjectMeta) -> bool {
        let uid = meta.uid.as_deref();
        let ended = |(gone, at): &(String, u64)| Some(gone.as_str()) == uid && revision(meta) <= Some(*at);
        self.gone.iter().rev().any(ended)
    }

    pub(super) fn vanished(&mut self, meta: &ObjectMeta) -> Option<Change<K>> {
        if let Some(uid) = meta.uid.as_deref() {
            self.deleted.retain(|(deleted, _)| deleted != uid);
            if self.gone.len() == TOMBSTONES_MAX {
                self.gone.pop_front();
            }
            self.gone.extend(revision(meta).map(|revision| (uid.to_owned(), revision)));
        }
        let key = ObjectKey::of_meta(meta);
        // An older deletion than what is known is that of a predecessor, or of a state that has left the selector and come back.
        if revision(meta) < revision(self.object(&key)?.meta()) {
            return None;
        }
        let old = self.remove(&key)?.object;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// Takes in a complete list of `namespace`, or of all.
    pub(super) fn listed(&mut self, namespace: Option<&str>) -> Vec<Change<K>> {
        let is_in = |other: Option<&str>| namespace.is_none() || namespace == other;
        let Some(listing) = self.listings.remove(&namespace.map(str::to_owned)) else { return Vec::new() };
        let Listing { mut seen, written } = listing;
        for (key, kept) in written {
            if seen.get(&key).is_none_or(|listed| is_newer(kept.object.meta(), listed.object.meta())) {
                seen.insert(key, kept);
            }
        }
        let deleted = &self.deleted;
        let is_deleted = |uid: &String| deleted.iter().any(|(deleted, _)| deleted == uid);
        seen.retain(|_, kept| !kept.object.meta().uid.as_ref().is_some_and(is_deleted));
        self.deleted.retain(|(_, namespace)| !is_in(namespace.as_deref()));

        let is_gone = |key: &&Arc<ObjectKey>| is_in(key.namespace.as_deref()) && !seen.contains_key(&***key);
        let mut gone: Vec<_> = self.objects.keys().filter(is_gone).cloned().collect();
        gone.sort_unstable();
        let mut changes = self.let_go(&gone);
        // In order, so that what follows does not depend on chance.
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (key, kept) in seen {
            let known = self.object(&key);
            if known.is_some_and(|known| known.meta().resource_version == kept.object.meta().resource_version) {
                continue;
            }
            let new = Some(kept.object.clone());
            let old = self.insert(key, kept);
            changes.push(Change { old, new, listed: true });
        }
        changes
    }

    /// Takes in that `namespace` is watched no longer.
    pub(super) fn leave(&mut self, namespace: &str) -> Vec<Change<K>> {
        self.listings.remove(&Some(namespace.to_owned()));
        let is_there = |key: &&Arc<ObjectKey>| key.namespace.as_deref() == Some(namespace);
        let left: Vec<_> = self.objects.keys().filter(is_there).cloned().collect();
        self.let_go(&left)
    }

    fn let_go(&mut self, keys: &[Arc<ObjectKey>]) -> Vec<Change<K>> {
        let gone = keys.iter().filter_map(|key| self.remove(key));
        gone.map(|old| Change { old: Some(old.object), new: None, listed: true }).collect()
    }

    pub(super) fn add_index(&mut self, values: IndexValues<K>) -> IndexId {
        self.indexes.add(values, &self.objects)
    }

    pub(super) fn drop_index(&mut self, id: IndexId) {
        self.indexes.remove(id);
    }

    pub(super) fn indexed(&self, id: IndexId, value: &str) -> Vec<Arc<K>> {
        self.indexes.keys(id, value).filter_map(|key| self.object(key)).cloned().collect()
    }

    fn insert(&mut self, key: ObjectKey, kept: Kept<K>) -> Option<Arc<K>> {
        let old = self.remove(&key);
        let (key, meta) = (Arc::new(key), kept.object.meta());
        if let Some(uid) = &meta.uid {
            self.by_uid.insert(uid.as_str().into(), key.clone());
        }
        for owner in meta.owner_references.iter().flatten() {
            self.by_owner.entry(owner.uid.as_str().into()).or_default().insert(key.clone());
        }
        if controller_of(meta).is_none() {
            self.free.entry(meta.namespace.clone()).or_default().insert(key.clone());
        }
        self.indexes.insert(&key, &kept.object);
        self.objects.insert(key, kept);
        old.map(|kept| kept.object)
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Kept<K>> {
        let old = self.objects.remove(key)?;
        let meta = old.object.meta();
        if let Some(uid) = &meta.uid {
            self.by_uid.remove(uid.as_str());
        }
        for owner in meta.owner_references.iter().flatten() {
            take(&mut self.by_owner, owner.uid.as_str(), key);
        }
        take(&mut self.free, &meta.namespace, key);
        self.indexes.take(key, &old.object);
        Some(old)
    }
}

/// Takes `key` out of the set at `at`, and the set if it is empty then.
pub(super) fn take<I, Q>(index: &mut HashMap<I, Keys>, at: &Q, key: &ObjectKey)
where
    I: Borrow<Q> + Hash + Eq,
    Q: Hash + Eq + ?Sized,
{
    if let Some(keys) = index.get_mut(at) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(at);
        }
    }
}

/// The resource version as a number; Kubernetes promises that those of one kind can be compared.
pub(super) fn revision(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}

/// Whether `a` is newer than `b`; a version that is not a number is taken for new.
fn is_newer(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    match (revision(a), revision(b)) {
        (Some(a), Some(b)) => a > b,
        _ => true,
    }
}
