//! The last known state of the objects of one watch, with the process's own writes already in it.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::Resource;
use kube::runtime::watcher::Event;

use crate::key::ObjectKey;
use crate::owners::controller_of;

/// How many deletions are remembered: own ones until the watch confirms them, others until own writes have been answered.
const TOMBSTONES_MAX: usize = 4096;

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

/// Objects by key, uid and owner, and those without one by namespace.
#[derive(Debug)]
pub struct Cache<K>(RwLock<State<K>>);

#[derive(Debug)]
struct State<K> {
    objects: HashMap<ObjectKey, Arc<K>>,
    by_uid: HashMap<String, ObjectKey>,
    by_owner: HashMap<String, BTreeSet<ObjectKey>>,
    /// The objects that no controller has, by namespace.
    free: HashMap<Option<String>, BTreeSet<ObjectKey>>,
    /// Uids that this process deleted while the watch may still tell of their lives.
    deleted: VecDeque<String>,
    /// Uids that the watch said are gone, oldest first, and at which revision: the answer to an own write may come later.
    gone: VecDeque<(String, u64)>,
    listing: Option<Listing<K>>,
    synced: bool,
}

/// A list in progress. Own writes made meanwhile may be newer than what it will say.
#[derive(Debug)]
struct Listing<K> {
    seen: HashMap<ObjectKey, Arc<K>>,
    written: HashMap<ObjectKey, Arc<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self(RwLock::new(State {
            objects: HashMap::new(),
            by_uid: HashMap::new(),
            by_owner: HashMap::new(),
            free: HashMap::new(),
            deleted: VecDeque::new(),
            gone: VecDeque::new(),
            listing: None,
            synced: false,
        }))
    }
}

impl<K: Resource> Cache<K> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// The object with this uid.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<K>> {
        let state = self.read();
        state.by_uid.get(uid).and_then(|key| state.objects.get(key)).cloned()
    }

    /// The objects that have an owner reference to `uid`, in order of their keys.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key)).cloned().collect()
    }

    /// The objects that a controller with this uid has or might take: those with an owner reference to it, and those of the
    /// namespace that no controller has. In order of their keys, the former first.
    pub fn claimable(&self, uid: &str, namespace: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let owned = state.by_owner.get(uid);
        let free = state.free.get(&Some(namespace.to_owned())).into_iter().flatten();
        let free = free.filter(|key| !owned.is_some_and(|owned| owned.contains(*key)));
        owned.into_iter().flatten().chain(free).filter_map(|key| state.objects.get(key)).cloned().collect()
    }

    /// The objects for which `wanted` holds; keep it cheap, the cache is locked meanwhile.
    pub fn filter(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.read().objects.values().filter(|object| wanted(object)).cloned().collect()
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

    /// Whether the first list was complete.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Takes in what a watch says and returns what is news.
    pub fn observe(&self, event: Event<K>) -> Vec<Change<K>> {
        let mut state = self.write();
        match event {
            Event::Apply(object) => state.applied(Arc::new(object)).into_iter().collect(),
            Event::Delete(object) => state.vanished(&object).into_iter().collect(),
            Event::Init => {
                state.listing = Some(Listing { seen: HashMap::new(), written: HashMap::new() });
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some(listing) = &mut state.listing {
                    listing.seen.insert(ObjectKey::of(&object), Arc::new(object));
                }
                Vec::new()
            }
            Event::InitDone => state.listed(),
        }
    }

    /// Takes in the answer to an own write. `known_only` is for watches whose selector cannot be judged here.
    pub fn wrote(&self, object: K, known_only: bool) -> Option<Change<K>> {
        let mut state = self.write();
        let key = ObjectKey::of(&object);
        if state.is_gone(&object) || (known_only && !state.objects.contains_key(&key)) {
            return None;
        }
        let object = Arc::new(object);
        if let Some(listing) = &mut state.listing {
            listing.written.insert(key, object.clone());
        }
        revision(&*object)?;
        state.applied(object)
    }

    /// Takes in that an own deletion removed `uid` at once.
    pub fn deleted(&self, uid: &str) -> Option<Change<K>> {
        let mut state = self.write();
        if state.deleted.len() == TOMBSTONES_MAX {
            state.deleted.pop_front();
        }
        state.deleted.push_back(uid.to_owned());
        let key = state.by_uid.get(uid).cloned()?;
        let old = state.remove(&key)?;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    /// Takes in that the object with this key can no longer be read.
    pub(crate) fn unreadable(&self, key: &ObjectKey) -> Option<Change<K>> {
        let old = self.write().remove(key)?;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.0.read().expect("no code that can panic runs under this lock")
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.0.write().expect("no code that can panic runs under this lock")
    }
}

impl<K: Resource> State<K> {
    fn applied(&mut self, object: Arc<K>) -> Option<Change<K>> {
        let uid = object.meta().uid.as_deref();
        if uid.is_some_and(|uid| self.deleted.iter().any(|deleted| deleted == uid)) {
            return None;
        }
        let key = ObjectKey::of(&*object);
        if self.objects.get(&key).is_some_and(|known| !is_newer(&*object, &**known)) {
            return None;
        }
        let old = self.insert(key, object.clone());
        Some(Change { old, new: Some(object), listed: false })
    }

    /// Whether the watch has told the end of the life that `object` is a state of.
    fn is_gone(&self, object: &K) -> bool {
        let uid = object.meta().uid.as_deref();
        let ended = |(gone, at): &(String, u64)| Some(gone.as_str()) == uid && revision(object) <= Some(*at);
        self.gone.iter().rev().any(ended)
    }

    fn vanished(&mut self, object: &K) -> Option<Change<K>> {
        if let Some(uid) = object.meta().uid.as_deref() {
            self.deleted.retain(|deleted| deleted != uid);
            if self.gone.len() == TOMBSTONES_MAX {
                self.gone.pop_front();
            }
            self.gone.extend(revision(object).map(|revision| (uid.to_owned(), revision)));
        }
        let key = ObjectKey::of(object);
        let known = self.objects.get(&key)?;
        // An older deletion than what is known is that of a predecessor, or of a state that has left the selector and come back.
        if revision(object) < revision(&**known) {
            return None;
        }
        let old = self.remove(&key)?;
        Some(Change { old: Some(old), new: None, listed: false })
    }

    fn listed(&mut self) -> Vec<Change<K>> {
        let Some(Listing { mut seen, written }) = self.listing.take() else { return Vec::new() };
        for (key, object) in written {
            if seen.get(&key).is_none_or(|listed| is_newer(&*object, &**listed)) {
                seen.insert(key, object);
            }
        }
        let deleted = &self.deleted;
        seen.retain(|_, object| !object.meta().uid.as_ref().is_some_and(|uid| deleted.contains(uid)));
        self.deleted.clear();
        self.synced = true;

        let gone: Vec<_> = self.objects.keys().filter(|key| !seen.contains_key(key)).cloned().collect();
        let mut changes: Vec<_> = gone
            .iter()
            .filter_map(|key| self.remove(key))
            .map(|old| Change { old: Some(old), new: None, listed: true })
            .collect();
        for (key, object) in seen {
            let known = self.objects.get(&key);
            if known.is_some_and(|known| known.meta().resource_version == object.meta().resource_version) {
                continue;
            }
            let old = self.insert(key, object.clone());
            changes.push(Change { old, new: Some(object), listed: true });
        }
        changes
    }

    fn insert(&mut self, key: ObjectKey, object: Arc<K>) -> Option<Arc<K>> {
        let old = self.remove(&key);
        let meta = object.meta();
        if let Some(uid) = &meta.uid {
            self.by_uid.insert(uid.clone(), key.clone());
        }
        for owner in meta.owner_references.iter().flatten() {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if controller_of(meta).is_none() {
            self.free.entry(meta.namespace.clone()).or_default().insert(key.clone());
        }
        self.objects.insert(key, object);
        old
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<K>> {
        let old = self.objects.remove(key)?;
        let meta = old.meta();
        if let Some(uid) = &meta.uid {
            self.by_uid.remove(uid);
        }
        for owner in meta.owner_references.iter().flatten() {
            take(&mut self.by_owner, &owner.uid, key);
        }
        take(&mut self.free, &meta.namespace, key);
        Some(old)
    }
}

/// Takes `key` out of the set at `at`, and the set if it is empty then.
fn take<I, Q>(index: &mut HashMap<I, BTreeSet<ObjectKey>>, at: &Q, key: &ObjectKey)
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
fn revision<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

/// Whether `a` is newer than `b`; a version that is not a number is taken for new.
fn is_newer<K: Resource>(a: &K, b: &K) -> bool {
    match (revision(a), revision(b)) {
        (Some(a), Some(b)) => a > b,
        _ => true,
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
