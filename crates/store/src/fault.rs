//! A disk that fails when told to, and what the store makes of it.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::{Database, StorageBackend};

use crate::{CommitError, Revision, Store, Write, disk::Disk};

/// What outlives a handle: the content, and whether writes fail.
#[derive(Clone, Debug, Default)]
struct Medium {
    bytes: Arc<Mutex<Vec<u8>>>,
    full: Arc<AtomicBool>,
    sync_fails: Arc<AtomicBool>,
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let start = offset as usize;
        out.copy_from_slice(bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.refuse_if(&self.full)?;
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.refuse_if(&self.sync_fails)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.refuse_if(&self.full)?;
        let start = offset as usize;
        self.bytes.lock().unwrap()[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }
}

impl Medium {
    fn refuse_if(&self, fault: &AtomicBool) -> io::Result<()> {
        if fault.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn open(&self) -> Store {
        let medium = self.clone();
        let open = move || Database::builder().create_with_backend(medium.clone());
        Store::on(Disk::opened_by(Path::new("medium"), Box::new(open)).unwrap()).unwrap()
    }
}

async fn memory_equals_disk_after(fault: impl Fn(&Medium) -> &AtomicBool) {
    let medium = Medium::default();
    let store = medium.open();
    let before = store.commit(vec![Write::create("/kept", "1")]).await.unwrap();
    let mut watch = store.watch("/", before).unwrap();

    fault(&medium).store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let refused = store.commit(vec![Write::create("/refused", "1")]).await.unwrap_err();
        assert!(matches!(refused, CommitError::Disk(_) | CommitError::Reopen(_)), "{refused}");
        assert!(refused.is_disk_full(), "{refused}");
        assert_eq!(store.revision(), before);
        assert!(store.snapshot().get("/refused").is_none());
    }
    fault(&medium).store(false, Ordering::SeqCst);

    store.commit(vec![Write::create("/later", "1")]).await.unwrap();
    let first = watch.next().await.unwrap();
    assert_eq!(first.revision, Revision(before.0 + 1));
    let memory = store.snapshot();
    drop(store);
    let disk = medium.open().snapshot();
    assert_eq!(memory.revision(), disk.revision());
    assert_eq!(memory.range("", None).collect::<Vec<_>>(), disk.range("", None).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_full_disk_leaves_memory_as_the_disk() {
    memory_equals_disk_after(|medium| &medium.full).await;
}

#[tokio::test]
async fn a_failed_sync_leaves_memory_as_the_disk() {
    memory_equals_disk_after(|medium| &medium.sync_fails).await;
}
