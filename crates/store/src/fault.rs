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

use crate::{
    CommitError, OpenError, Revision, Snapshot, Store, Write,
    log::{Medium, Place},
};

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
}

type Content = Arc<Mutex<Bytes>>;

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
        let content = self.beside.lock().unwrap().take();
        *self.log.lock().unwrap() = Some(content.ok_or(io::ErrorKind::NotFound)?);
        Ok(())
    }

    fn settle(&self) -> io::Result<()> {
        refuse_if(&self.settle_fails)
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
