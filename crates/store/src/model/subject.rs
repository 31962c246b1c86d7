//! What is put to the test: the store, or one with a bug in it.

use super::reference::Contents;
use crate::fault::{TestDisk, entries};
use crate::{CommitError, Compacted, Event, OpenError, Revision, Store, Watch, WatchError, Write};

/// A store, as far as a run uses it.
pub(super) trait Subject: Sized {
    /// What a watch delivers.
    type Feed: Feed;

    /// The store of a disk.
    fn open(disk: &TestDisk) -> Result<Self, OpenError>;
    /// Commits.
    async fn commit(&self, writes: Vec<Write>) -> Result<Revision, CommitError>;
    /// All there is, now or at a revision.
    fn read(&self, at: Option<Revision>) -> Result<(Revision, Contents), Compacted>;
    /// Begins a watch.
    fn watch(&self, prefix: &str, after: Revision) -> Result<Self::Feed, Compacted>;
    /// Forgets the past.
    fn compact(&self, revision: Revision);
    /// Ends in order.
    async fn close(self);
}

/// A watch, as far as a run uses it.
pub(super) trait Feed {
    /// The next event that is there.
    fn take(&mut self) -> Option<Result<Event, WatchError>>;
    /// How far it is.
    fn progress(&self) -> Option<Revision>;
}

impl Subject for Store {
    type Feed = Watch;

    fn open(disk: &TestDisk) -> Result<Self, OpenError> {
        disk.store()
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Revision, CommitError> {
        Store::commit(self, writes).await
    }

    fn read(&self, at: Option<Revision>) -> Result<(Revision, Contents), Compacted> {
        let found = at.map_or_else(|| Ok(self.snapshot()), |revision| self.snapshot_at(revision))?;
        Ok((found.revision(), entries(&found).into_iter().collect()))
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, Compacted> {
        Store::watch(self, prefix, after)
    }

    fn compact(&self, revision: Revision) {
        Store::compact(self, revision);
    }

    async fn close(self) {
        Store::close(&self).await;
    }
}

impl Feed for Watch {
    fn take(&mut self) -> Option<Result<Event, WatchError>> {
        self.try_next().map(|next| next.map(|event| (*event).clone()))
    }

    fn progress(&self) -> Option<Revision> {
        Watch::progress(self)
    }
}
