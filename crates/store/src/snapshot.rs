//! The state of all keys at one revision.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use rpds::RedBlackTreeMapSync;

use crate::{Entry, Expect, Revision, Write};

/// All keys in order; a clone shares everything.
pub(crate) type Index = RedBlackTreeMapSync<Arc<str>, Entry>;

/// The state of all keys at one revision; taking and cloning one costs the same however many keys there are.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(crate) index: Index,
    pub(crate) revision: Revision,
}

impl Snapshot {
    /// The state before the first commit.
    pub(crate) fn empty() -> Self {
        Self { index: Index::new_sync(), revision: Revision::FIRST }
    }

    /// The last commit that this state contains.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// What `key` holds.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.index.get(key)
    }

    /// What makes `present` like this state in `keys`.
    pub(crate) fn writes_for<'a>(&self, present: &Self, keys: impl Iterator<Item = &'a Arc<str>>) -> Vec<Write> {
        let write = |key: &Arc<str>| {
            let (then, now) = (self.get(key), present.get(key));
            let expect = now.map_or(Expect::Absent, |entry| Expect::Revision(entry.modified));
            let value = then.map(|entry| entry.value.clone());
            (value.as_ref() != now.map(|entry| &entry.value)).then(|| Write { key: key.to_string(), expect, value })
        };
        keys.filter_map(write).collect()
    }

    /// The keys of this state and of another.
    pub(crate) fn all_keys(&self, other: &Self) -> BTreeSet<Arc<str>> {
        self.index.keys().chain(other.index.keys()).cloned().collect()
    }

    /// The keys that begin with `prefix`, in order, from the one that follows `after` on.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Entry)> + 'a {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.index
            .range::<str, (Bound<&str>, Bound<&str>)>((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }
}
