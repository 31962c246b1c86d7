//! The state of all keys at one revision.

use std::{ops::Bound, sync::Arc};

use rpds::RedBlackTreeMapSync;

use crate::{Entry, Revision};

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
