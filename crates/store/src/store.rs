//! The store: one writer, snapshots for everyone, events in order.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    CommitError, Compacted, OpenError, Revision, Snapshot, Watch, Write,
    disk::Disk,
    history::History,
    log::{FilePlace, Place},
    stage::{Staged, stage},
    watch::Watcher,
    writer::Writer,
};

/// How often others may write while a state is restored before it is given up.
const RESTORE_TRIES_MAX: usize = 100;

/// A revisioned, watchable map from keys to bytes; a clone is the same store.
#[derive(Clone, Debug)]
pub struct Store {
    state: Arc<Mutex<State>>,
    /// The thread that writes to disk; `None` for a store in memory only.
    writer: Option<Arc<Writer>>,
}

/// What readers see. It changes only after the disk has the change.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) current: Snapshot,
    history: History,
    watchers: Vec<Watcher>,
}

impl State {
    fn new(current: Snapshot) -> Self {
        Self { history: History::starting_at(current.clone()), current, watchers: Vec::new() }
    }

    /// Makes a commit visible: state, past and watchers in one step.
    pub(crate) fn publish(&mut self, staged: Staged) {
        if staged.events.is_empty() {
            return;
        }
        self.history.push(&staged);
        self.watchers.retain(|watcher| staged.events.iter().all(|event| watcher.publish(event)));
        self.current = staged.snapshot;
    }
}

impl Store {
    /// A store without a disk.
    pub fn in_memory() -> Self {
        Self { state: Arc::new(Mutex::new(State::new(Snapshot::empty()))), writer: None }
    }

    /// The store in the file at `path`, which is made if it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::at(Arc::new(FilePlace::new(path.as_ref())))
    }

    /// The store whose log is at `place`.
    pub(crate) fn at(place: Arc<dyn Place>) -> Result<Self, OpenError> {
        let path = place.path().to_owned();
        let (disk, current) = Disk::open(place)?;
        let state = Arc::new(Mutex::new(State::new(current)));
        let writer = Arc::new(Writer::start(disk, Arc::clone(&state)).map_err(|error| OpenError::of(&path, error))?);
        Ok(Self { state, writer: Some(writer) })
    }

    /// The present state.
    pub fn snapshot(&self) -> Snapshot {
        self.state().current.clone()
    }

    /// The revision of the present state.
    pub fn revision(&self) -> Revision {
        self.state().current.revision()
    }

    /// The state as it was at `revision`, while that is kept. A revision of the future answers with the present.
    pub fn snapshot_at(&self, revision: Revision) -> Result<Snapshot, Compacted> {
        self.state().history.snapshot_at(revision)
    }

    /// Makes all of `writes` happen, or none, as one revision. An answer means that it outlives a crash.
    ///
    /// Dropping the future leaves open whether the commit happens.
    pub async fn commit(&self, writes: Vec<Write>) -> Result<Revision, CommitError> {
        if let Some(writer) = &self.writer {
            return writer.commit(writes).await;
        }
        let mut state = self.state();
        let staged = stage(&state.current, writes)?;
        let revision = staged.snapshot.revision();
        state.publish(staged);
        Ok(revision)
    }

    /// Makes the present like `past`, as one commit that watchers see as the changes it takes; nothing is written if
    /// they are alike.
    ///
    /// It costs as much as the changes since, while those are kept; else as much as there are keys.
    pub async fn restore(&self, past: &Snapshot) -> Result<Revision, CommitError> {
        for _ in 1..RESTORE_TRIES_MAX {
            let (present, changed) = self.changed_since(past.revision());
            let writes = match changed {
                Some(keys) => past.writes_for(&present, keys.iter()),
                None => past.writes_for(&present, past.all_keys(&present).iter()),
            };
            match self.commit(writes).await {
                // Somebody wrote in between: what they wrote is undone, too.
                Err(CommitError::Precondition { .. }) => {}
                outcome => return outcome,
            }
        }
        Err(CommitError::Busy)
    }

    /// The present and the keys that changed since `revision`; none if that is no longer known.
    fn changed_since(&self, revision: Revision) -> (Snapshot, Option<BTreeSet<Arc<str>>>) {
        let state = self.state();
        let events = state.history.events_after(revision).ok();
        (state.current.clone(), events.map(|events| events.map(|event| Arc::clone(&event.key)).collect()))
    }

    /// The changes after `after` of the keys that begin with `prefix`.
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, Compacted> {
        let mut state = self.state();
        let backlog =
            state.history.events_after(after)?.filter(|event| event.key.starts_with(prefix)).cloned().collect();
        let (watch, watcher) = Watch::new(&self.state, prefix, after, backlog);
        state.watchers.push(watcher);
        Ok(watch)
    }

    /// Forgets the past before `revision`.
    pub fn compact(&self, revision: Revision) {
        self.state().history.compact(revision);
    }

    /// Finishes the commits that wait and lets go of the disk, for every clone. Later commits are refused; what was
    /// read stays readable.
    pub async fn close(&self) {
        if let Some(writer) = self.writer.clone() {
            let closed = tokio::task::spawn_blocking(move || writer.close()).await;
            closed.expect("closing does not panic");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
