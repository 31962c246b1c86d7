//! Stores with a bug each, as others have had them: a check that finds none of these proves nothing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::reference::Contents;
use super::run::{Promise, run_seed};
use super::subject::{Feed, Subject};
use crate::fault::{Lie, TestDisk};
use crate::{CommitError, Compacted, Event, Expect, OpenError, Revision, Store, Watch, WatchError, Write};

/// Runs in which a bug must be found.
const RUNS: u64 = 40;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// The first event of a watch never comes (kine#770).
    FirstEventLost,
    /// Two commits change places on their way to a watcher (kine#676).
    OutOfOrder,
    /// A watch stalls for good after some events (kine#759).
    Stall,
    /// A watch begins with what it had already (etcd#18089).
    ResumesOneEarly,
    /// A watch begins one later than it should (etcd#15220).
    ResumesOneLate,
    /// Of a commit with several writes only the first is told (etcd#17529).
    HalfACommit,
    /// The prefix of a folder also matches its siblings.
    LoosePrefix,
    /// What was there before is not told (etcd#20221).
    NoPrevious,
    /// Every change is told as a creation.
    AlwaysCreated,
    /// A bookmark runs ahead of the events (etcd#15220).
    EarlyBookmark,
    /// A watch from a forgotten past begins where the present does, without a word (kine#311).
    SilentCompaction,
    /// A stale update overwrites what is newer.
    NoPreconditions,
    /// A read misses the last commit.
    StaleRead,
    /// One key is missing in what is read, though it was told to watchers.
    LostInCache,
    /// A commit that changes nothing takes a revision all the same.
    BumpForNothing,
    /// The revision goes back at a restart (etcd#17780).
    RevisionGoesBack,
    /// A read at a revision answers with the present.
    PastIsPresent,
}

const BUGS: [Bug; 17] = [
    Bug::FirstEventLost,
    Bug::OutOfOrder,
    Bug::Stall,
    Bug::ResumesOneEarly,
    Bug::ResumesOneLate,
    Bug::HalfACommit,
    Bug::LoosePrefix,
    Bug::NoPrevious,
    Bug::AlwaysCreated,
    Bug::EarlyBookmark,
    Bug::SilentCompaction,
    Bug::NoPreconditions,
    Bug::StaleRead,
    Bug::LostInCache,
    Bug::BumpForNothing,
    Bug::RevisionGoesBack,
    Bug::PastIsPresent,
];

thread_local! {
    /// The bug of the stores that this thread opens.
    static BUG: Cell<Bug> = const { Cell::new(Bug::Stall) };
}

/// A store with a bug.
struct Mutant {
    store: Store,
    bug: Bug,
    before: RefCell<Option<(Revision, Contents)>>,
    is_restarted: bool,
}

impl Subject for Mutant {
    type Feed = Distorted;

    fn open(disk: &TestDisk) -> Result<Self, OpenError> {
        let store = disk.store()?;
        let is_restarted = store.revision() > Revision::FIRST;
        Ok(Self { store, bug: BUG.get(), before: RefCell::new(None), is_restarted })
    }

    async fn commit(&self, mut writes: Vec<Write>) -> Result<Revision, CommitError> {
        *self.before.borrow_mut() = Subject::read(&self.store, None).ok();
        if self.bug == Bug::NoPreconditions {
            writes.iter_mut().filter(|write| write.value.is_some()).for_each(|write| write.expect = Expect::Any);
        }
        let (before, answer) = (self.store.revision(), self.store.commit(writes).await);
        if self.bug == Bug::BumpForNothing && matches!(answer, Ok(revision) if revision == before) {
            let bump = Write { key: "/hidden".into(), expect: Expect::Any, value: Some("x".into()) };
            return self.store.commit(vec![bump]).await;
        }
        answer
    }

    fn read(&self, at: Option<Revision>) -> Result<(Revision, Contents), Compacted> {
        let at = at.filter(|_| self.bug != Bug::PastIsPresent);
        let (mut revision, mut contents) = Subject::read(&self.store, at)?;
        match self.bug {
            Bug::StaleRead if at.is_none() => {
                if let Some(before) = self.before.borrow().clone() {
                    (revision, contents) = before;
                }
            }
            Bug::LostInCache => drop(contents.remove("/b/2")),
            Bug::RevisionGoesBack if self.is_restarted => revision = Revision(revision.0 - 1),
            _ => {}
        }
        Ok((revision, contents))
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Distorted, Compacted> {
        let prefix = if self.bug == Bug::LoosePrefix { prefix.trim_end_matches('/') } else { prefix };
        let after = match self.bug {
            Bug::ResumesOneEarly => Revision(after.0.saturating_sub(1)),
            Bug::ResumesOneLate => Revision(after.0 + 1),
            _ => after,
        };
        let watch = match self.store.watch(prefix, after) {
            Err(_) if self.bug == Bug::SilentCompaction => self.store.watch(prefix, self.store.revision()),
            Err(_) if self.bug == Bug::ResumesOneEarly => self.store.watch(prefix, Revision(after.0 + 1)),
            other => other,
        }?;
        let present = self.store.revision();
        Ok(Distorted { watch, bug: self.bug, taken: 0, held: VecDeque::new(), last: Revision(0), present })
    }

    fn compact(&self, revision: Revision) {
        Store::compact(&self.store, revision);
    }

    async fn close(self) {
        Store::close(&self.store).await;
    }
}

/// A watch with a bug.
struct Distorted {
    watch: Watch,
    bug: Bug,
    taken: usize,
    held: VecDeque<Event>,
    last: Revision,
    present: Revision,
}

impl Distorted {
    fn next(&mut self) -> Option<Result<Event, WatchError>> {
        match self.held.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.watch.take(),
        }
    }
}

impl Feed for Distorted {
    fn take(&mut self) -> Option<Result<Event, WatchError>> {
        self.taken += 1;
        if self.bug == Bug::Stall && self.taken > 3 {
            return None;
        }
        if self.bug == Bug::FirstEventLost && self.taken == 1 {
            let first = self.next()?;
            let is_new = first.as_ref().is_ok_and(|event| event.revision > self.present);
            return if is_new { self.next() } else { Some(first) };
        }
        let mut event = match self.next()? {
            Ok(event) => event,
            ended => return Some(ended),
        };
        if self.bug == Bug::OutOfOrder
            && self.taken.is_multiple_of(3)
            && let Some(Ok(other)) = self.next()
        {
            self.held.push_back(std::mem::replace(&mut event, other));
        }
        if self.bug == Bug::HalfACommit && event.revision == self.last {
            return self.take();
        }
        self.last = event.revision;
        if self.bug == Bug::NoPrevious {
            event.previous = None;
        }
        if let (Bug::AlwaysCreated, Some(entry)) = (self.bug, &mut event.entry) {
            entry.created = entry.modified;
        }
        Some(Ok(event))
    }

    fn progress(&self) -> Option<Revision> {
        match self.bug {
            // It is the store's, whether or not its events were taken.
            Bug::EarlyBookmark => self.watch.store_revision(),
            Bug::Stall => None,
            _ if self.held.is_empty() => Feed::progress(&self.watch),
            _ => None,
        }
    }
}

/// How many runs it takes to find a bug, and what it was found by.
fn hunt<S: Subject>(disk: impl Fn() -> TestDisk) -> Option<(u64, Promise)> {
    (0..RUNS).find_map(|seed| run_seed::<S>(seed, &disk).err().map(|violation| (seed + 1, violation.promise)))
}

#[test]
fn every_bug_of_a_store_is_found() {
    let mut survivors = Vec::new();
    for bug in BUGS {
        BUG.set(bug);
        match hunt::<Mutant>(TestDisk::small) {
            Some((runs, promise)) => println!("{bug:?}: run {runs}, {promise:?}"),
            None => survivors.push(bug),
        }
    }
    assert!(survivors.is_empty(), "not found: {survivors:?}");
}

#[test]
fn every_lie_of_a_disk_is_found() {
    for lie in [Lie::Synced, Lie::Settled] {
        let found = hunt::<Store>(|| TestDisk::lying(lie));
        let (runs, promise) = found.unwrap_or_else(|| panic!("{lie:?} goes unnoticed"));
        println!("{lie:?}: run {runs}, {promise:?}");
        assert_eq!(promise, Promise::Durable, "{lie:?}");
    }
}
