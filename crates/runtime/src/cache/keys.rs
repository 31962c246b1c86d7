//! Keys in order, each kept once, whatever it is found by.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use crate::key::ObjectKey;

/// A set of keys, in order. Most owners have one object of a kind, for which a tree would be large.
#[derive(Debug)]
pub(super) enum Keys {
    One(Arc<ObjectKey>),
    Many(BTreeSet<Arc<ObjectKey>>),
}

impl Keys {
    pub(super) fn iter(&self) -> Box<dyn Iterator<Item = &Arc<ObjectKey>> + '_> {
        match self {
            Self::One(key) => Box::new(std::iter::once(key)),
            Self::Many(keys) => Box::new(keys.iter()),
        }
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => **one == *key,
            Self::Many(keys) => keys.contains(key),
        }
    }

    fn insert(&mut self, key: Arc<ObjectKey>) {
        match self {
            Self::One(one) if *one == key => {}
            Self::One(one) => *self = Self::Many([one.clone(), key].into()),
            Self::Many(keys) => drop(keys.insert(key)),
        }
    }

    /// Takes `key` out, and tells whether nothing is left.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => **one == *key,
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }
}

/// Puts `key` into the set at `at`.
pub(super) fn put<I: Hash + Eq>(index: &mut HashMap<I, Keys>, at: I, key: &Arc<ObjectKey>) {
    index.entry(at).and_modify(|keys| keys.insert(key.clone())).or_insert_with(|| Keys::One(key.clone()));
}

/// Takes `key` out of the set at `at`, and the set if it is empty then.
pub(super) fn take<I, Q>(index: &mut HashMap<I, Keys>, at: &Q, key: &ObjectKey)
where
    I: Borrow<Q> + Hash + Eq,
    Q: Hash + Eq + ?Sized,
{
    if index.get_mut(at).is_some_and(|keys| keys.remove(key)) {
        index.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_in_order_and_goes_with_its_last_key() {
        let mut index = HashMap::new();
        let key = |name: &str| Arc::new(ObjectKey::cluster(name));
        let names = |index: &HashMap<u8, Keys>| -> Vec<String> {
            index.get(&1).into_iter().flat_map(Keys::iter).map(|key| key.name.clone()).collect()
        };
        for name in ["b", "b", "c", "a"] {
            put(&mut index, 1, &key(name));
        }
        assert_eq!(names(&index), ["a", "b", "c"]);
        take(&mut index, &1, &key("other"));
        take(&mut index, &2, &key("a"));
        for name in ["b", "a", "c"] {
            assert!(index[&1].contains(&key(name)), "{name}");
            take(&mut index, &1, &key(name));
        }
        assert!(index.is_empty());
        put(&mut index, 1, &key("x"));
        take(&mut index, &1, &key("y"));
        assert_eq!(names(&index), ["x"]);
    }
}
