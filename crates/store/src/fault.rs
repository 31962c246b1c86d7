//! A disk that fails, fills up and loses power when told to, and what the store makes of it.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::{
    CommitError, OpenError, Revision, Snapshot, Store, Write,
    log::{Medium, Place},
};

/// How long a log is that a small disk writes anew.
const SMALL_BYTES: u64 = 4 << 10;
/// What a disk writes as a whole.
pub(crate) const SECTOR: usize = 512;

/// Bytes of which some would not outlive a loss of power.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) now: Vec<u8>,
    synced: Vec<u8>,
}

/// A disk with a log and one beside it; a clone is the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestDisk {
    log: Arc<Mutex<Option<Content>>>,
    beside: Arc<Mutex<Option<Content>>>,
    full: Arc<AtomicBool>,
    sync_fails: Arc<AtomicBool>,
    settle_fails: Arc<AtomicBool>,
    /// Whether what is beside the log stays there.
    install_fails: Arc<AtomicBool>,
    /// The log that was replaced and comes back if the power fails before that is settled.
    replaced: Arc<Mutex<Option<Content>>>,
    /// How many steps the disk still takes; none if it takes all.
    steps: Arc<Mutex<Option<i64>>>,
    /// What it says without doing so.
    lie: Option<Lie>,
    /// Whether short logs are written anew, too.
    is_small: bool,
}

type Content = Arc<Mutex<Bytes>>;

/// What a disk may say that is not true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// That it has synced.
    Synced,
    /// That a log is in its place for good.
    Settled,
}

#[derive(Debug)]
struct Handle {
    content: Content,
    disk: TestDisk,
}

impl Medium for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.content.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.content.lock().unwrap();
        let start = offset as usize;
        out.copy_from_slice(bytes.now.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.step()?;
        let mut bytes = self.content.lock().unwrap();
        let (start, end) = (offset as usize, offset as usize + data.len());
        if end > bytes.now.len() {
            refuse_if(&self.disk.full)?;
            bytes.now.resize(end, 0);
        }
        bytes.now[start..end].copy_from_slice(data);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        refuse_if(&self.disk.sync_fails)?;
        self.disk.step()?;
        if self.disk.lie == Some(Lie::Synced) {
            return Ok(());
        }
        let mut bytes = self.content.lock().unwrap();
        let Bytes { now, synced } = &mut *bytes;
        now.clone_into(synced);
        Ok(())
    }
}

fn refuse_if(fault: &AtomicBool) -> io::Result<()> {
    if fault.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

impl Place for TestDisk {
    fn path(&self) -> &Path {
        Path::new("test-disk")
    }

    fn open(&self) -> Result<Option<Box<dyn Medium>>, OpenError> {
        let found = self.log.lock().unwrap().clone();
        Ok(found.map(|content| Box::new(Handle { content, disk: self.clone() }) as Box<dyn Medium>))
    }

    fn begin(&self) -> Result<Box<dyn Medium>, OpenError> {
        let content = Content::default();
        *self.beside.lock().unwrap() = Some(Arc::clone(&content));
        Ok(Box::new(Handle { content, disk: self.clone() }))
    }

    fn install(&self) -> io::Result<()> {
        refuse_if(&self.install_fails)?;
        self.step()?;
        let content = self.beside.lock().unwrap().take();
        let before = self.log.lock().unwrap().replace(content.ok_or(io::ErrorKind::NotFound)?);
        // The first that is not settled is the one that is certain to be there.
        let mut replaced = self.replaced.lock().unwrap();
        *replaced = replaced.take().or(before);
        Ok(())
    }

    fn settle(&self) -> io::Result<()> {
        refuse_if(&self.settle_fails)?;
        self.step()?;
        if self.lie != Some(Lie::Settled) {
            *self.replaced.lock().unwrap() = None;
        }
        Ok(())
    }

    fn worth_bytes(&self) -> u64 {
        if self.is_small { SMALL_BYTES } else { 16 << 20 }
    }

    fn discard(&self) {
        *self.beside.lock().unwrap() = None;
    }
}

impl TestDisk {
    /// A disk whose log has these bytes.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        let disk = Self::default();
        let content = Bytes { synced: bytes.clone(), now: bytes };
        *disk.log.lock().unwrap() = Some(Arc::new(Mutex::new(content)));
        disk
    }

    /// A disk whose log is written anew after a few commits.
    pub(crate) fn small() -> Self {
        Self { is_small: true, ..Self::default() }
    }

    /// One that says what is not true.
    pub(crate) fn lying(lie: Lie) -> Self {
        Self { lie: Some(lie), ..Self::small() }
    }

    /// Cuts the power after so many writes, syncs, installs and settlements.
    pub(crate) fn cut_power_after(&self, steps: i64) {
        *self.steps.lock().unwrap() = Some(steps);
    }

    /// Whether the power has failed.
    pub(crate) fn has_no_power(&self) -> bool {
        self.steps.lock().unwrap().is_some_and(|left| left <= 0)
    }

    fn step(&self) -> io::Result<()> {
        match &mut *self.steps.lock().unwrap() {
            None => Ok(()),
            Some(left) if *left > 0 => {
                *left -= 1;
                Ok(())
            }
            Some(_) => Err(io::Error::other("there is no power")),
        }
    }

    /// What is there after a loss of power: of what was not synced, and of a log that was not settled, as `survivors` says.
    pub(crate) fn after_crash(&self, survivors: u64) -> Self {
        let mut random = StdRng::seed_from_u64(survivors);
        let replaced = self.replaced.lock().unwrap().clone().filter(|_| random.random_bool(0.5));
        let found = replaced.or_else(|| self.log.lock().unwrap().clone());
        let left = found.map(|content| {
            let bytes = content.lock().unwrap();
            let chance = [0.0, 0.5, 1.0][random.random_range(0..3)];
            let mut left = bytes.synced.clone();
            left.resize(bytes.now.len(), 0);
            for (index, sector) in bytes.now.chunks(SECTOR).enumerate() {
                let old = &mut left[index * SECTOR..][..sector.len()];
                if old != sector && random.random_bool(chance) {
                    old.copy_from_slice(sector);
                }
            }
            Arc::new(Mutex::new(Bytes { synced: left.clone(), now: left }))
        });
        Self { log: Arc::new(Mutex::new(left)), lie: self.lie, is_small: self.is_small, ..Self::default() }
    }

    pub(crate) fn store(&self) -> Result<Store, OpenError> {
        Store::at(Arc::new(self.clone()))
    }

    /// The bytes of the log as they are now.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.log.lock().unwrap().as_ref().unwrap().lock().unwrap().now.clone()
    }

    /// How long the log is now.
    fn len(&self) -> usize {
        self.log.lock().unwrap().as_ref().unwrap().lock().unwrap().now.len()
    }

    /// The log after a loss of power that the sectors of which `survives` says so outlived; others are as at the last sync.
    pub(crate) fn after_power_loss(&self, survives: impl Fn(usize) -> bool) -> Self {
        let log = self.log.lock().unwrap();
        let bytes = log.as_ref().unwrap().lock().unwrap();
        let mut left = bytes.synced.clone();
        left.resize(bytes.now.len(), 0);
        for (index, sector) in bytes.now.chunks(SECTOR).enumerate().filter(|(index, _)| survives(*index)) {
            left[index * SECTOR..][..sector.len()].copy_from_slice(sector);
        }
        Self::holding(left)
    }

    /// The sectors that differ from what was synced.
    pub(crate) fn unsynced(&self) -> BTreeSet<usize> {
        let log = self.log.lock().unwrap();
        let bytes = log.as_ref().unwrap().lock().unwrap();
        let before = |index: usize| bytes.synced.get(index * SECTOR..).map(|rest| &rest[..SECTOR.min(rest.len())]);
        let sectors = bytes.now.chunks(SECTOR).enumerate();
        sectors.filter(|(index, sector)| before(*index) != Some(sector)).map(|(index, _)| index).collect()
    }

    pub(crate) fn fail_syncs(&self, fails: bool) {
        self.sync_fails.store(fails, Ordering::SeqCst);
    }
}

pub(crate) fn entries(snapshot: &Snapshot) -> Vec<(String, crate::Entry)> {
    snapshot.range("", None).map(|(key, entry)| (key.to_string(), entry.clone())).collect()
}

async fn memory_equals_disk_after(fault: impl Fn(&TestDisk) -> &AtomicBool) {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    let before = store.commit(vec![Write::create("/kept", "1")]).await.unwrap();
    let mut watch = store.watch("/", before).unwrap();

    fault(&disk).store(true, Ordering::SeqCst);
    // Longer than what is reserved, so that a full disk has no room for it.
    let large = "x".repeat(3 << 20);
    for _ in 0..2 {
        let refused = store.commit(vec![Write::create("/refused", large.clone())]).await.unwrap_err();
        assert!(matches!(refused, CommitError::Disk(_)), "{refused}");
        assert!(refused.is_disk_full(), "{refused}");
        assert_eq!(store.revision(), before);
        assert!(store.snapshot().get("/refused").is_none());
    }
    fault(&disk).store(false, Ordering::SeqCst);

    store.commit(vec![Write::create("/later", "1")]).await.unwrap();
    let first = watch.next().await.unwrap();
    assert_eq!(first.revision, Revision(before.0 + 1));
    let memory = store.snapshot();
    drop(store);
    let disk = disk.store().unwrap().snapshot();
    assert_eq!(memory.revision(), disk.revision());
    assert_eq!(entries(&memory), entries(&disk));
}

#[tokio::test]
async fn a_full_disk_leaves_memory_as_the_disk() {
    memory_equals_disk_after(|disk| &disk.full).await;
}

#[tokio::test]
async fn a_failed_sync_leaves_memory_as_the_disk() {
    memory_equals_disk_after(|disk| &disk.sync_fails).await;
}

#[tokio::test]
async fn what_was_refused_is_not_there_after_a_clean_end() {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    let kept = store.commit(vec![Write::create("/kept", "1")]).await.unwrap();
    disk.fail_syncs(true);
    store.commit(vec![Write::create("/refused", "1")]).await.unwrap_err();
    disk.fail_syncs(false);
    store.close().await;
    let again = disk.store().unwrap();
    assert_eq!(again.revision(), kept);
    assert!(again.snapshot().get("/refused").is_none());
}

/// Writes one key again and again until the log was written anew, or until `until`.
async fn overwrite(store: &Store, disk: &TestDisk, until: impl Fn(&TestDisk) -> bool) {
    let value = "y".repeat(1 << 20);
    for _ in 0..200 {
        let write = Write { key: "/hot".into(), expect: crate::Expect::Any, value: Some(value.clone().into()) };
        store.commit(vec![write]).await.unwrap();
        if until(disk) {
            return;
        }
    }
    panic!("it did not happen in 200 commits");
}

#[tokio::test]
async fn a_log_of_the_past_is_written_anew() {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    store.commit(vec![Write::create("/kept", "1")]).await.unwrap();
    overwrite(&store, &disk, |disk| disk.len() > 16 << 20).await;
    overwrite(&store, &disk, |disk| disk.len() < 16 << 20).await;
    let memory = store.snapshot();
    // What the disk has without a clean end is all of it, too.
    let crashed = disk.after_power_loss(|_| false).store().unwrap().snapshot();
    assert_eq!((entries(&crashed), crashed.revision()), (entries(&memory), memory.revision()));
    store.close().await;
    let again = disk.store().unwrap().snapshot();
    assert_eq!((entries(&again), again.revision()), (entries(&memory), memory.revision()));
}

#[tokio::test]
async fn a_log_that_cannot_be_written_anew_goes_on() {
    let disk = TestDisk::default();
    let store = disk.store().unwrap();
    disk.install_fails.store(true, Ordering::SeqCst);
    overwrite(&store, &disk, |disk| disk.len() > 40 << 20).await;
    let memory = store.snapshot();
    store.close().await;
    assert_eq!(entries(&disk.store().unwrap().snapshot()), entries(&memory));
}
