//! What the store holds and what it is asked to change.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// The number of a commit; it only grows, over restarts too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of a store that nothing was written to. It is not 0, which clients use for "any".
    pub const FIRST: Revision = Revision(1);

    /// The revision of the following commit.
    pub(crate) fn next(self) -> Revision {
        Revision(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A value and the commits that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The commit that put the key there.
    pub created: Revision,
    /// The commit that wrote this value.
    pub modified: Revision,
    /// The value.
    pub value: Bytes,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The commit that made the change.
    pub revision: Revision,
    /// The key that changed.
    pub key: Arc<str>,
    /// What the key holds since; `None` if it was deleted.
    pub entry: Option<Entry>,
    /// What the key held before; `None` if it was not there.
    pub previous: Option<Entry>,
}

/// What must be true of a key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key is not there.
    Absent,
    /// The key was last modified by this commit.
    Revision(Revision),
    /// Nothing is expected.
    Any,
}

/// One change that a commit asks for.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key to change.
    pub key: String,
    /// What must be true of it.
    pub expect: Expect,
    /// The new value; `None` deletes the key.
    pub value: Option<Bytes>,
}

impl Write {
    /// Puts `value` at `key`, which must not be there yet.
    pub fn create(key: impl Into<String>, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), expect: Expect::Absent, value: Some(value.into()) }
    }

    /// Replaces what `revision` wrote at `key`.
    pub fn update(key: impl Into<String>, revision: Revision, value: impl Into<Bytes>) -> Self {
        Self { key: key.into(), expect: Expect::Revision(revision), value: Some(value.into()) }
    }

    /// Removes what `revision` wrote at `key`.
    pub fn delete(key: impl Into<String>, revision: Revision) -> Self {
        Self { key: key.into(), expect: Expect::Revision(revision), value: None }
    }
}
