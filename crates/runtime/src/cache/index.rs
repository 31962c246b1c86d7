//! Objects by a value that is in them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use super::keys::{Keys, put, take};
use crate::key::ObjectKey;

/// Finds the values that an object is to be found by.
pub(crate) type IndexValues<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// An index of one cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexId(u64);

/// The indexes of one cache, kept in step with its objects.
pub(super) struct Indexes<K> {
    by_id: BTreeMap<IndexId, Entries<K>>,
    next: u64,
}

struct Entries<K> {
    values: IndexValues<K>,
    keys: HashMap<String, Keys>,
}

impl<K> Default for Indexes<K> {
    fn default() -> Self {
        Self { by_id: BTreeMap::new(), next: 0 }
    }
}

impl<K> Indexes<K> {
    /// Whether there is any.
    pub(super) fn is_used(&self) -> bool {
        !self.by_id.is_empty()
    }

    pub(super) fn add<'a>(
        &mut self,
        values: IndexValues<K>,
        objects: impl Iterator<Item = (&'a Arc<ObjectKey>, Arc<K>)>,
    ) -> IndexId {
        let id = IndexId(self.next);
        self.next += 1;
        let mut entries = Entries { values, keys: HashMap::new() };
        for (key, object) in objects {
            entries.insert(key, &object);
        }
        self.by_id.insert(id, entries);
        id
    }

    pub(super) fn remove(&mut self, id: IndexId) {
        self.by_id.remove(&id);
    }

    pub(super) fn insert(&mut self, key: &Arc<ObjectKey>, object: &K) {
        for entries in self.by_id.values_mut() {
            entries.insert(key, object);
        }
    }

    pub(super) fn take(&mut self, key: &ObjectKey, object: &K) {
        for entries in self.by_id.values_mut() {
            for value in entries.values_of(object) {
                take(&mut entries.keys, value.as_str(), key);
            }
        }
    }

    /// The keys of the objects with this value, in order.
    pub(super) fn keys(&self, id: IndexId, value: &str) -> impl Iterator<Item = &Arc<ObjectKey>> {
        self.by_id.get(&id).and_then(|entries| entries.keys.get(value)).into_iter().flat_map(Keys::iter)
    }
}

impl<K> Entries<K> {
    fn insert(&mut self, key: &Arc<ObjectKey>, object: &K) {
        for value in self.values_of(object) {
            put(&mut self.keys, value, key);
        }
    }

    /// A function that panics finds nothing: it is an author's, and must not take the cache with it.
    fn values_of(&self, object: &K) -> Vec<String> {
        std::panic::catch_unwind(AssertUnwindSafe(|| (self.values)(object))).unwrap_or_default()
    }
}

impl<K> fmt::Debug for Indexes<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexes").field("indexes", &self.by_id.len()).finish_non_exhaustive()
    }
}
