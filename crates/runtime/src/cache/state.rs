//! What a cache holds, and how news change it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::change::Pending;
use super::head::{Uid, Version};
use super::index::{IndexId, IndexValues, Indexes};
use super::kept::{Kept, Open};
use super::keys::{Keys, put, take};
use super::packed::AtHand;
use crate::key::ObjectKey;
use crate::object::Object;
use crate::packer::Packer;

/// How many deletions are remembered: own ones until the watch confirms them, others until own writes have been answered.
const TOMBSTONES_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct State<K> {
    pub(super) objects: HashMap<Arc<ObjectKey>, Kept<K>>,
    pub(super) by_uid: HashMap<Uid, Arc<ObjectKey>>,
    pub(super) by_owner: HashMap<Uid, Keys>,
    /// The objects that no controller has, by namespace.
    pub(super) free: HashMap<Option<String>, Keys>,
    indexes: Indexes<K>,
    /// Uids that this process deleted, and their namespaces, while the watch may still tell of their lives.
    deleted: VecDeque<(Uid, Option<String>)>,
    /// Uids that the watch said are gone, oldest first, and at which revision: the answer to an own write may come later.
    gone: VecDeque<(Uid, u64)>,
    /// Lists in progress by the namespace that they are of.
    listings: BTreeMap<Option<String>, Listing<K>>,
    /// Whether objects are packed.
    is_compact: bool,
    pub(super) packer: Arc<Packer>,
    at_hand: Mutex<AtHand<K>>,
}

/// A list in progress. Own writes made meanwhile may be newer than what it will say.
#[derive(Debug)]
struct Listing<K> {
    seen: HashMap<ObjectKey, Kept<K>>,
    written: HashMap<ObjectKey, Kept<K>>,
}

impl<K> State<K> {
    pub(super) fn new(is_compact: bool) -> Self {
        Self {
            objects: HashMap::new(),
            by_uid: HashMap::new(),
            by_owner: HashMap::new(),
            free: HashMap::new(),
            indexes: Indexes::default(),
            deleted: VecDeque::new(),
            gone: VecDeque::new(),
            listings: BTreeMap::new(),
            is_compact,
            packer: Arc::default(),
            at_hand: Mutex::default(),
        }
    }

    /// What packs objects, if they are packed.
    pub(super) fn compact_packer(&self) -> Option<Arc<Packer>> {
        self.is_compact.then(|| self.packer.clone())
    }

    /// Whether a list is under way.
    pub(super) fn is_listing(&self) -> bool {
        !self.listings.is_empty()
    }

    fn at_hand(&self) -> MutexGuard<'_, AtHand<K>> {
        self.at_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Object> State<K> {
    pub(super) fn begin_list(&mut self, namespace: Option<&str>) {
        let listing = Listing { seen: HashMap::new(), written: HashMap::new() };
        self.listings.insert(namespace.map(Into::into), listing);
    }

    /// The object as it is.
    pub(super) fn open(&self, key: &ObjectKey) -> Option<Open<K>> {
        let kept = self.objects.get(key)?;
        if kept.open.is_some() {
            return kept.open.clone();
        }
        let at_hand = self.at_hand().get(key);
        at_hand.or_else(|| {
            let open = kept.open(&self.packer)?;
            self.at_hand().put(key, open.clone());
            Some(open)
        })
    }

    /// Packs nothing from now on: objects are read so often that packing costs more than it saves.
    pub(super) fn keep_open(&mut self) {
        self.is_compact = false;
        let packer = self.packer.clone();
        self.objects.values_mut().for_each(|kept| unpack(kept, &packer));
        *self.at_hand() = AtHand::default();
    }

    /// Whether what `head` names is known, or something newer under its key.
    pub(super) fn is_known(&self, key: &ObjectKey, head: &ObjectMeta) -> bool {
        self.is_old(key, &Version::of(head))
    }

    fn is_old(&self, key: &ObjectKey, version: &Version) -> bool {
        self.objects.get(key).is_some_and(|known| !version.is_newer_than(&known.head.version))
    }

    pub(super) fn list(&mut self, namespace: Option<&str>, key: ObjectKey, mut kept: Kept<K>) {
        if kept.packed.is_some() {
            kept.open = None;
        }
        if let Some(listing) = self.listings.get_mut(&namespace.map(str::to_owned)) {
            listing.seen.insert(key, kept);
        }
    }

    /// Takes in that a list has what is known already; `false` if that is not so.
    pub(super) fn relist(&mut self, namespace: Option<&str>, key: ObjectKey, head: &ObjectMeta) -> bool {
        let (uid, version) = (head.uid.as_deref().map(Uid::of), Version::of(head));
        let is_it = |kept: &&Kept<K>| kept.head.uid == uid && kept.head.version == version;
        let Some(kept) = self.objects.get(&key).filter(is_it).cloned() else { return false };
        self.list(namespace, key, kept);
        true
    }

    pub(super) fn wrote_while_listing(&mut self, key: &ObjectKey, kept: &Kept<K>) {
        for (namespace, listing) in &mut self.listings {
            if namespace.is_none() || *namespace == key.namespace {
                listing.written.insert(key.clone(), kept.clone());
            }
        }
    }

    /// Remembers an own deletion.
    pub(super) fn bury(&mut self, uid: &Uid, namespace: Option<&str>) {
        if self.deleted.len() == TOMBSTONES_MAX {
            self.deleted.pop_front();
        }
        self.deleted.push_back((uid.clone(), namespace.map(Into::into)));
    }

    pub(super) fn applied(&mut self, key: ObjectKey, kept: Kept<K>) -> Option<Pending<K>> {
        let is_deleted = |uid: &Uid| self.deleted.iter().any(|(deleted, _)| deleted == uid);
        if kept.head.uid.as_ref().is_some_and(is_deleted) || self.is_old(&key, &kept.head.version) {
            return None;
        }
        let new = Some(kept.clone());
        let old = self.insert(key, kept);
        Some(Pending { old, new, listed: false })
    }

    /// Whether the watch has told the end of the life that `kept` is a state of.
    pub(super) fn is_gone(&self, kept: &Kept<K>) -> bool {
        let (uid, revision) = (kept.head.uid.as_ref(), kept.head.version.number());
        let ended = |(gone, at): &(Uid, u64)| Some(gone) == uid && revision <= Some(*at);
        self.gone.iter().rev().any(ended)
    }

    pub(super) fn vanished(&mut self, meta: &ObjectMeta) -> Option<Pending<K>> {
        let revision = Version::of(meta).number();
        if let Some(uid) = meta.uid.as_deref().map(Uid::of) {
            self.deleted.retain(|(deleted, _)| *deleted != uid);
            if self.gone.len() == TOMBSTONES_MAX {
                self.gone.pop_front();
            }
            self.gone.extend(revision.map(|revision| (uid, revision)));
        }
        let key = ObjectKey::of_meta(meta);
        // An older deletion than what is known is that of a predecessor, or of a state that has left the selector and come back.
        if revision < self.objects.get(&key)?.head.version.number() {
            return None;
        }
        self.ended(&key)
    }

    /// Takes in that the object with this key is there no longer.
    pub(super) fn ended(&mut self, key: &ObjectKey) -> Option<Pending<K>> {
        let old = self.remove(key)?;
        Some(Pending { old: Some(old), new: None, listed: false })
    }

    /// Takes in a complete list of `namespace`, or of all.
    pub(super) fn listed(&mut self, namespace: Option<&str>) -> Vec<Pending<K>> {
        let is_in = |other: Option<&str>| namespace.is_none() || namespace == other;
        let Some(listing) = self.listings.remove(&namespace.map(str::to_owned)) else { return Vec::new() };
        let Listing { mut seen, written } = listing;
        for (key, kept) in written {
            if seen.get(&key).is_none_or(|listed| kept.head.version.is_newer_than(&listed.head.version)) {
                seen.insert(key, kept);
            }
        }
        let deleted = &self.deleted;
        let is_deleted = |uid: &Uid| deleted.iter().any(|(deleted, _)| deleted == uid);
        seen.retain(|_, kept| !kept.head.uid.as_ref().is_some_and(is_deleted));
        self.deleted.retain(|(_, namespace)| !is_in(namespace.as_deref()));

        let is_gone = |key: &&Arc<ObjectKey>| is_in(key.namespace.as_deref()) && !seen.contains_key(&***key);
        let mut gone: Vec<_> = self.objects.keys().filter(is_gone).cloned().collect();
        gone.sort_unstable();
        let mut changes = self.let_go(&gone);
        // In order, so that what follows does not depend on chance.
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (key, kept) in seen {
            let known = self.objects.get(&key);
            if known.is_some_and(|known| known.head.version == kept.head.version) {
                continue;
            }
            let new = Some(kept.clone());
            let old = self.insert(key, kept);
            changes.push(Pending { old, new, listed: true });
        }
        changes
    }

    /// Takes in that `namespace` is watched no longer.
    pub(super) fn leave(&mut self, namespace: &str) -> Vec<Pending<K>> {
        self.listings.remove(&Some(namespace.to_owned()));
        let is_there = |key: &&Arc<ObjectKey>| key.namespace.as_deref() == Some(namespace);
        let left: Vec<_> = self.objects.keys().filter(is_there).cloned().collect();
        self.let_go(&left)
    }

    fn let_go(&mut self, keys: &[Arc<ObjectKey>]) -> Vec<Pending<K>> {
        let gone = keys.iter().filter_map(|key| self.remove(key));
        gone.map(|old| Pending { old: Some(old), new: None, listed: true }).collect()
    }

    pub(super) fn add_index(&mut self, values: IndexValues<K>) -> IndexId {
        let packer = self.packer.clone();
        let objects = self.objects.iter().filter_map(|(key, kept)| Some((key, kept.open(&packer)?.object)));
        self.indexes.add(values, objects)
    }

    pub(super) fn drop_index(&mut self, id: IndexId) {
        self.indexes.remove(id);
    }

    pub(super) fn indexed(&self, id: IndexId, value: &str) -> Vec<Arc<ObjectKey>> {
        self.indexes.keys(id, value).cloned().collect()
    }

    fn insert(&mut self, key: ObjectKey, mut kept: Kept<K>) -> Option<Kept<K>> {
        let old = self.remove(&key);
        let key = Arc::new(key);
        if let Some(uid) = &kept.head.uid {
            self.by_uid.insert(uid.clone(), key.clone());
        }
        for owner in &kept.head.owners {
            put(&mut self.by_owner, owner.clone(), &key);
        }
        if !kept.head.is_controlled {
            put(&mut self.free, key.namespace.clone(), &key);
        }
        if self.indexes.is_used()
            && let Some(open) = kept.open(&self.packer)
        {
            self.indexes.insert(&key, &open.object);
        }
        if !self.is_compact {
            unpack(&mut kept, &self.packer);
        } else if kept.packed.is_some()
            && let Some(open) = kept.open.take()
        {
            self.at_hand().put(&key, open);
        }
        self.objects.insert(key, kept);
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Kept<K>> {
        let mut old = self.objects.remove(key)?;
        let at_hand = self.at_hand().take(key);
        old.open = old.open.or(at_hand);
        if let Some(uid) = &old.head.uid {
            self.by_uid.remove(uid);
        }
        for owner in &old.head.owners {
            take(&mut self.by_owner, owner, key);
        }
        take(&mut self.free, &key.namespace, key);
        if self.indexes.is_used()
            && let Some(open) = old.open(&self.packer)
        {
            self.indexes.take(key, &open.object);
        }
        Some(old)
    }
}

/// Keeps an object as it is.
fn unpack<K: Object>(kept: &mut Kept<K>, packer: &Packer) {
    kept.open = kept.open(packer);
    kept.packed = None;
}
