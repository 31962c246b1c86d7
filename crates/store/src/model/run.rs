//! One run: every operation is done to the subject and to the model, and what they answer is compared.

use std::fmt;

use super::operation::{Change, KEYS, Operation, PREFIXES, generate};
use super::reference::Reference;
use super::subject::{Feed, Subject};
use super::watch::{Property, Record, check};
use crate::fault::TestDisk;
use crate::{CommitError, Expect, Revision, Store, Write};

/// Operations of one run.
const LENGTH: usize = 150;
/// Runs of the real store in every run of the tests.
const RUNS: u64 = 30;
/// Watches that are open at once.
const WATCHES_MAX: usize = 8;
/// How often a run that fails is tried with less in it.
const SHRINKS_MAX: usize = 400;

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) promise: Promise,
    detail: String,
}

/// A promise of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// What was acknowledged is there after a crash, whole, and nothing else is.
    Durable,
    /// A commit is answered as its preconditions say, with the next revision.
    Commit,
    /// What is read is what was written last, or at that revision.
    Read,
    /// The past that is forgotten is refused.
    Compacted,
    /// What a watch promises.
    Watch(Property),
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}", self.promise, self.detail)
    }
}

fn broken<T>(promise: Promise, detail: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { promise, detail: detail.into() })
}

/// A watch that is open.
struct Open<F> {
    feed: F,
    record: Record,
}

struct Run<S: Subject> {
    disk: TestDisk,
    subject: S,
    reference: Reference,
    watches: Vec<Open<S::Feed>>,
    written: u64,
}

/// Does all operations on a disk.
pub(super) async fn run<S: Subject>(disk: TestDisk, operations: &[Operation]) -> Result<(), Violation> {
    let Ok(subject) = S::open(&disk) else { return broken(Promise::Durable, "it does not open") };
    let mut run = Run { disk, subject, reference: Reference::new(), watches: Vec::new(), written: 0 };
    for operation in operations {
        run.step(operation).await?;
    }
    run.drain();
    run.watches.iter().try_for_each(|open| judge(&open.record, &run.reference))
}

fn judge(record: &Record, reference: &Reference) -> Result<(), Violation> {
    check(record, reference).or_else(|(property, why)| broken(Promise::Watch(property), format!("{why}; {record:#?}")))
}

impl<S: Subject> Run<S> {
    async fn step(&mut self, operation: &Operation) -> Result<(), Violation> {
        match operation {
            Operation::Commit(changes) => self.commit(changes).await,
            Operation::Refused(changes) => self.refused(changes).await,
            Operation::PowerCut(changes, steps, survivors) => self.power_cut(changes, *steps, *survivors).await,
            Operation::Open(prefix, back) => self.open(PREFIXES[*prefix], self.back(*back)),
            Operation::Take(index, count) => self.with(*index, |open| take(open, *count)),
            Operation::Progress(index) => self.with(*index, bookmark),
            Operation::Resume(index) => self.resume(*index),
            Operation::Read(back) => self.read(back.map(|back| self.back(back))),
            Operation::Compact(keep) => {
                self.reference.compacted = self.reference.compacted.max(self.back(*keep));
                self.subject.compact(self.back(*keep));
                Ok(())
            }
            Operation::Crash(survivors) => self.start_again(self.disk.after_crash(*survivors)),
            Operation::Restart => {
                let disk = self.disk.clone();
                let ended = std::mem::replace(&mut self.subject, reopened::<S>(&TestDisk::default())?);
                ended.close().await;
                self.start_again(disk)
            }
        }
    }

    fn back(&self, revisions: u64) -> Revision {
        Revision(self.reference.revision.0.saturating_sub(revisions).max(Revision::FIRST.0))
    }

    fn writes(&mut self, changes: &[Change]) -> Vec<Write> {
        let now = self.reference.now();
        changes.iter().map(|change| self.write(*change, &now)).collect()
    }

    fn write(&mut self, change: Change, now: &super::reference::Contents) -> Write {
        self.written += 1;
        let modified = |key: &str| now.get(key).map_or(Revision(0), |entry| entry.modified);
        let (key, expect, keeps) = match change {
            Change::Put(key) => (key, Expect::Any, true),
            Change::Create(key) => (key, Expect::Absent, true),
            Change::Update(key) => (key, Expect::Revision(modified(KEYS[key])), true),
            Change::UpdateStale(key, back) => {
                let stale = modified(KEYS[key]).0.saturating_sub(back);
                (key, Expect::Revision(Revision(stale)), true)
            }
            Change::Remove(key) => (key, Expect::Any, false),
        };
        let value = keeps.then(|| format!("{}-{}", self.written, "v".repeat(self.written as usize % 90)).into());
        Write { key: KEYS[key].to_owned(), expect, value }
    }

    async fn commit(&mut self, changes: &[Change]) -> Result<(), Violation> {
        let writes = self.writes(changes);
        let staged = self.reference.staged(&writes);
        let answer = self.subject.commit(writes.clone()).await;
        match (answer, staged) {
            (Ok(revision), Some(events)) => {
                self.reference.take(events);
                self.reference.open = None;
                if revision != self.reference.revision {
                    let expected = self.reference.revision;
                    return broken(Promise::Commit, format!("revision {revision}, not {expected}, for {writes:?}"));
                }
                Ok(())
            }
            (Err(CommitError::Precondition { .. }), None) => Ok(()),
            (answer, staged) => broken(Promise::Commit, format!("{answer:?} for {writes:?}, expected {staged:?}")),
        }
    }

    async fn refused(&mut self, changes: &[Change]) -> Result<(), Violation> {
        let writes = self.writes(changes);
        self.disk.fail_syncs(true);
        let answer = self.subject.commit(writes.clone()).await;
        self.disk.fail_syncs(false);
        match (&answer, self.reference.staged(&writes)) {
            (Err(CommitError::Disk(_)), Some(events)) if !events.is_empty() => {
                self.reference.open = Some(writes);
                Ok(())
            }
            // Without a change there is nothing to write, and a start may still find what was refused before.
            (Ok(revision), Some(_)) if *revision == self.reference.revision => Ok(()),
            (Err(CommitError::Precondition { .. }), None) => Ok(()),
            (answer, _) => broken(Promise::Commit, format!("{answer:?} from a disk that refuses, for {writes:?}")),
        }
    }

    /// The power fails somewhere in the middle of a commit.
    async fn power_cut(&mut self, changes: &[Change], steps: u8, survivors: u64) -> Result<(), Violation> {
        let writes = self.writes(changes);
        self.disk.cut_power_after(i64::from(steps));
        let answer = self.subject.commit(writes.clone()).await;
        match (answer, self.reference.staged(&writes)) {
            (Ok(_), Some(events)) => {
                self.reference.take(events);
                self.reference.open = None;
            }
            (Err(CommitError::Disk(_)), Some(_)) => self.reference.open = Some(writes),
            _ => {}
        }
        self.start_again(self.disk.after_crash(survivors))
    }

    /// Opens what a crash or an orderly end left, and compares it with what must be there.
    fn start_again(&mut self, disk: TestDisk) -> Result<(), Violation> {
        self.drain();
        self.watches.iter().try_for_each(|open| judge(&open.record, &self.reference))?;
        self.watches.clear();
        self.subject = reopened(&disk)?;
        self.disk = disk;
        let Ok((revision, contents)) = self.subject.read(None) else { return broken(Promise::Read, "the present") };
        let open = self.reference.open.take().and_then(|writes| self.reference.staged(&writes));
        if let Some(events) = open.filter(|events| events.first().is_some_and(|event| event.revision == revision)) {
            self.reference.take(events);
        }
        self.reference.compacted = self.reference.revision;
        let expected = (self.reference.revision, self.reference.now());
        if (revision, &contents) != (expected.0, &expected.1) {
            let detail = format!("after a start {revision} with {contents:#?}, not {expected:#?}");
            return broken(Promise::Durable, detail);
        }
        Ok(())
    }

    fn open(&mut self, prefix: &'static str, after: Revision) -> Result<(), Violation> {
        match self.subject.watch(prefix, after) {
            Ok(feed) if after < self.reference.compacted => {
                drop(feed);
                broken(Promise::Compacted, format!("a watch after {after} of a past that is forgotten"))
            }
            Ok(feed) => {
                let record = Record { prefix, after, events: Vec::new(), bookmarks: Vec::new() };
                if self.watches.len() < WATCHES_MAX {
                    self.watches.push(Open { feed, record });
                }
                Ok(())
            }
            Err(_) if after < self.reference.compacted => Ok(()),
            Err(refused) => broken(Promise::Compacted, format!("{refused}, for a watch after {after}")),
        }
    }

    fn with(&mut self, index: usize, act: impl FnOnce(&mut Open<S::Feed>)) -> Result<(), Violation> {
        let count = self.watches.len().max(1);
        let Some(open) = self.watches.get_mut(index % count) else { return Ok(()) };
        act(open);
        judge(&open.record, &self.reference)
    }

    fn resume(&mut self, index: usize) -> Result<(), Violation> {
        let count = self.watches.len().max(1);
        if self.watches.is_empty() {
            return Ok(());
        }
        let Open { feed, record } = self.watches.swap_remove(index % count);
        drop(feed);
        self.open(record.prefix, record.position())
    }

    fn read(&self, at: Option<Revision>) -> Result<(), Violation> {
        let revision = at.unwrap_or(self.reference.revision);
        match self.subject.read(at) {
            Ok(found) if found == (revision, self.reference.at(revision)) => Ok(()),
            Ok(found) => {
                broken(Promise::Read, format!("{found:#?} at {revision}, not {:#?}", self.reference.at(revision)))
            }
            Err(_) if revision < self.reference.compacted => Ok(()),
            Err(refused) => broken(Promise::Read, format!("{refused}, for {revision}")),
        }
    }

    /// Takes all that is there of all watches. What was acknowledged is there, so nothing left out goes unnoticed.
    fn drain(&mut self) {
        for open in &mut self.watches {
            take(open, usize::MAX);
            bookmark(open);
            open.record.bookmarks.push((open.record.events.len(), self.reference.revision));
        }
    }
}

fn reopened<S: Subject>(disk: &TestDisk) -> Result<S, Violation> {
    S::open(disk).or_else(|error| broken(Promise::Durable, format!("it does not open any more: {error}")))
}

fn take<F: Feed>(open: &mut Open<F>, count: usize) {
    for _ in 0..count {
        let Some(Ok(event)) = open.feed.take() else { return };
        open.record.events.push(event);
    }
}

fn bookmark<F: Feed>(open: &mut Open<F>) {
    if let Some(revision) = open.feed.progress() {
        open.record.bookmarks.push((open.record.events.len(), revision));
    }
}

/// Runs a seed.
pub(super) fn run_seed<S: Subject>(seed: u64, disk: impl Fn() -> TestDisk) -> Result<(), Violation> {
    attempt::<S>(&generate(seed, LENGTH), &disk)
}

fn attempt<S: Subject>(operations: &[Operation], disk: &impl Fn() -> TestDisk) -> Result<(), Violation> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    runtime.block_on(run::<S>(disk(), operations))
}

/// The shortest run that was found to show a violation of the kind that a seed shows.
fn shortest<S: Subject>(seed: u64, disk: impl Fn() -> TestDisk, mut violation: Violation) -> String {
    let mut operations = generate(seed, LENGTH);
    let attempt = |operations: &[Operation]| attempt::<S>(operations, &disk).err();
    let (mut piece, mut tries) = (operations.len() / 2, 0);
    while piece > 0 && tries < SHRINKS_MAX {
        let mut start = 0;
        while start < operations.len() && tries < SHRINKS_MAX {
            let end = (start + piece).min(operations.len());
            let shorter = [&operations[..start], &operations[end..]].concat();
            tries += 1;
            match attempt(&shorter).filter(|found| found.promise == violation.promise) {
                Some(found) => (operations, violation) = (shorter, found),
                None => start = end,
            }
        }
        piece /= 2;
    }
    format!("WINDLASS_SEED={seed}: {violation}\nshortest run that was found:\n{operations:#?}")
}

#[test]
fn the_store_does_what_its_model_does() {
    let seeds = match std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..std::env::var("WINDLASS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS),
    };
    for seed in seeds {
        if let Err(violation) = run_seed::<Store>(seed, TestDisk::small) {
            panic!("{}", shortest::<Store>(seed, TestDisk::small, violation));
        }
    }
}
