//! The last known state of the objects of one watch, with the process's own writes already in it.

mod change;
mod head;
mod index;
mod kept;
mod keys;
mod packed;
mod state;

use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Event;

pub use change::Change;
pub(crate) use change::Changes;
pub(crate) use head::{Glance, StateId};
pub(crate) use index::{IndexId, IndexValues};
pub(crate) use kept::{Applied, Kept};

use self::change::Pending;
use self::head::Uid;
use self::keys::Keys;
use self::state::State;
use crate::key::ObjectKey;
use crate::object::Object;

/// Somebody who reads more objects than this at once reads them too often for them to be packed.
const READ_AT_ONCE_MAX: usize = 64;

/// Objects by key, uid and owner, and those without one by namespace. They have no managed fields.
///
/// A cache can be compact: it then keeps objects as short texts, and reads them again when they are asked for. It
/// ceases to be so when somebody asks for many at once.
#[derive(Debug)]
pub struct Cache<K> {
    /// The operator's name, by which it knows the fields that it applied.
    manager: String,
    state: RwLock<State<K>>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        Self::of(String::new(), false)
    }
}

impl<K> Cache<K> {
    /// The cache of an operator of this name.
    pub(crate) fn of(manager: String, is_compact: bool) -> Self {
        Self { manager, state: RwLock::new(State::new(is_compact)) }
    }
}

impl<K: Object> Cache<K> {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().open(key).map(|open| open.object)
    }

    /// Whether there is an object with this key.
    pub fn contains(&self, key: &ObjectKey) -> bool {
        self.read().objects.contains_key(key)
    }

    /// The object with this key, and the fields of it that the operator applied.
    pub(crate) fn get_applied(&self, key: &ObjectKey) -> Option<(Arc<K>, Option<Applied>)> {
        self.read().open(key).map(|open| (open.object, open.applied))
    }

    /// What is known of the object with this key without reading it.
    pub(crate) fn glance(&self, key: &ObjectKey) -> Option<Glance> {
        Some(self.read().objects.get(key)?.head.glance())
    }

    /// The object with this key if it is in this state, and no list is under way that may not know that yet.
    pub(crate) fn get_at(&self, key: &ObjectKey, state: StateId) -> Option<Arc<K>> {
        let all = self.read();
        let is_it = !all.is_listing() && all.objects.get(key)?.head.state() == state;
        if is_it { all.open(key).map(|open| open.object) } else { None }
    }

    /// The keys of the objects that have an owner reference to `uid`, in order.
    pub(crate) fn keys_owned_by(&self, uid: &str) -> Vec<Arc<ObjectKey>> {
        self.read().by_owner.get(&Uid::of(uid)).into_iter().flat_map(Keys::iter).cloned().collect()
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
        state.by_uid.get(&Uid::of(uid)).and_then(|key| state.open(key)).map(|open| open.object)
    }

    /// The objects that have an owner reference to `uid`, in order of their keys.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let uid = Uid::of(uid);
        self.find(|state| state.by_owner.get(&uid).into_iter().flat_map(Keys::iter).cloned().collect())
    }

    /// The objects that a controller with this uid has or might take: those with an owner reference to it, and those of the
    /// namespace that no controller has. In order of their keys, the former first.
    pub fn claimable(&self, uid: &str, namespace: &str) -> Vec<Arc<K>> {
        let (uid, namespace) = (Uid::of(uid), Some(namespace.to_owned()));
        self.find(|state| {
            let owned = state.by_owner.get(&uid);
            let free = state.free.get(&namespace).into_iter().flat_map(Keys::iter);
            let free = free.filter(|key| !owned.is_some_and(|owned| owned.contains(key)));
            owned.into_iter().flat_map(Keys::iter).chain(free).cloned().collect()
        })
    }

    /// The objects whose keys `keys` finds.
    fn find(&self, keys: impl FnOnce(&State<K>) -> Vec<Arc<ObjectKey>>) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = keys(&state);
        let found = keys.iter().filter_map(|key| state.open(key)).map(|open| open.object).collect();
        drop(state);
        if keys.len() > READ_AT_ONCE_MAX {
            self.keep_open();
        }
        found
    }

    /// The objects for which `wanted` holds, in order of their keys; keep it cheap, the cache is locked meanwhile.
    pub fn filter(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.keep_open();
        let state = self.read();
        let open = state.objects.iter().filter_map(|(key, kept)| Some((key, &kept.open.as_ref()?.object)));
        let mut found: Vec<_> = open.filter(|(_, object)| wanted(object)).collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, object)| object.clone()).collect()
    }

    /// The objects of a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.filter(|object| object.meta().namespace.as_deref() == Some(namespace))
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.filter(|_| true)
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<_> = self.read().objects.keys().map(|key| ObjectKey::clone(key)).collect();
        keys.sort_unstable();
        keys
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects as news of a list, in order of their keys.
    pub(crate) fn tell_all(&self) -> Changes<K> {
        let state = self.read();
        let mut all: Vec<_> = state.objects.iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        let pending = all.into_iter().map(|(_, kept)| Pending { old: None, new: Some(kept.clone()), listed: true });
        Changes::new(pending.collect(), state.packer.clone())
    }

    /// Packs nothing from now on.
    pub(crate) fn keep_open(&self) {
        if self.read().compact_packer().is_some() {
            self.write().keep_open();
        }
    }

    /// Takes in what a watch of all objects says, and returns what is news.
    pub fn observe(&self, event: Event<K>) -> Vec<Change<K>> {
        let event = match event {
            Event::Apply(object) => Event::Apply(self.keep(object)),
            Event::Delete(object) => return self.vanished(object.meta()).collect(),
            Event::Init => Event::Init,
            Event::InitApply(object) => Event::InitApply(self.keep(object)),
            Event::InitDone => Event::InitDone,
        };
        self.observe_in(None, event).collect()
    }

    /// Takes in what the watch of one namespace says: its lists say nothing of the others.
    pub(crate) fn observe_in(&self, namespace: Option<&str>, event: Event<Kept<K>>) -> Changes<K> {
        self.change(|state| match event {
            Event::Apply(kept) => kept.key().and_then(|key| state.applied(key, kept)).into_iter().collect(),
            Event::Delete(kept) => kept.key().and_then(|key| state.ended(&key)).into_iter().collect(),
            Event::Init => {
                state.begin_list(namespace);
                Vec::new()
            }
            Event::InitApply(kept) => {
                if let Some(key) = kept.key() {
                    state.list(namespace, key, kept);
                }
                Vec::new()
            }
            Event::InitDone => state.listed(namespace),
        })
    }

    /// Takes in that a namespace is watched no longer.
    pub(crate) fn leave(&self, namespace: &str) -> Changes<K> {
        self.change(|state| state.leave(namespace))
    }

    /// Keeps an index of the objects by what `values` finds in them, until it is dropped.
    pub(crate) fn add_index(&self, values: IndexValues<K>) -> IndexId {
        self.write().add_index(values)
    }

    pub(crate) fn drop_index(&self, id: IndexId) {
        self.write().drop_index(id);
    }

    pub(crate) fn indexed(&self, id: IndexId, value: &str) -> Vec<Arc<K>> {
        self.find(|state| state.indexed(id, value))
    }

    /// Takes in the answer to an own write. `known_only` is for watches whose selector cannot be judged here.
    pub(crate) fn wrote(&self, kept: Kept<K>, known_only: bool) -> Changes<K> {
        self.change(|state| {
            let Some(key) = kept.key() else { return Vec::new() };
            if state.is_gone(&kept) || (known_only && !state.objects.contains_key(&key)) {
                return Vec::new();
            }
            state.wrote_while_listing(&key, &kept);
            let is_dated = kept.head.version.number().is_some();
            is_dated.then(|| state.applied(key, kept)).flatten().into_iter().collect()
        })
    }

    /// Takes in that the object that `head` names is gone.
    pub(crate) fn vanished(&self, head: &ObjectMeta) -> Changes<K> {
        self.change(|state| state.vanished(head).into_iter().collect())
    }

    /// Takes in that an own deletion removed `uid`, which was in `namespace`, at once.
    pub fn deleted(&self, uid: &str, namespace: Option<&str>) -> Option<Change<K>> {
        let uid = Uid::of(uid);
        let mut changes = self.change(|state| {
            state.bury(&uid, namespace);
            let key = state.by_uid.get(&uid).cloned();
            key.and_then(|key| state.ended(&key)).into_iter().collect()
        });
        changes.next()
    }

    /// Takes in that the object with this key can no longer be read.
    pub(crate) fn unreadable(&self, key: &ObjectKey) -> Changes<K> {
        self.change(|state| state.ended(key).into_iter().collect())
    }

    /// As it is kept here.
    pub(crate) fn keep(&self, object: K) -> Kept<K> {
        Kept::new(object, &self.manager)
    }

    /// Reads an object, as it is kept here.
    pub(crate) fn keep_text(&self, text: &str) -> serde_json::Result<Kept<K>> {
        let packer = self.read().compact_packer();
        Kept::read(text, &self.manager, packer.as_deref())
    }

    fn change(&self, change: impl FnOnce(&mut State<K>) -> Vec<Pending<K>>) -> Changes<K> {
        let mut state = self.write();
        let pending = change(&mut state);
        Changes::new(pending, state.packer.clone())
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
