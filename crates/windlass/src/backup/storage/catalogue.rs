//! Backups in storage: which there are, by their records alone, how one becomes one, and how it goes.

use std::io::Read;

use super::super::record::{BackupRecord, RecordError};
use super::{Storage, StorageError};

/// What the record of a backup is called; a backup without one is what a crash left.
const RECORD: &str = "backup.json";
/// How deep below its top backups are looked for.
const DEPTH_MAX: usize = 8;
/// A record is not longer.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// Makes a backup of the files that are in the folder of a record: from now on it is one.
///
/// # Errors
/// When the storage fails, or there is one already.
pub fn seal(storage: &dyn Storage, record: &BackupRecord) -> Result<(), StorageError> {
    storage.settle(&record.location)?;
    let text = serde_json::to_vec_pretty(record).expect("a record is plain data");
    storage.put(&format!("{}/{RECORD}", record.location), &mut text.as_slice()).map(drop)
}

/// All backups below `path`, the oldest first, and why others that seem to be there cannot be read.
///
/// # Errors
/// When the storage fails.
pub fn stored(storage: &dyn Storage, path: &str) -> Result<(Vec<BackupRecord>, Vec<RecordError>), StorageError> {
    let (mut records, mut unreadable) = (Vec::new(), Vec::new());
    let mut pending = vec![(path.to_owned(), DEPTH_MAX)];
    while let Some((folder, depth)) = pending.pop() {
        let listing = storage.list(&folder)?;
        if listing.files.iter().any(|name| name == RECORD) {
            match read(storage, &format!("{folder}/{RECORD}"))?.as_deref().map(BackupRecord::read) {
                Some(Ok(record)) => records.push(record),
                Some(Err(error)) => unreadable.push(error),
                None => {} // It was removed meanwhile.
            }
        } else if depth > 0 {
            pending.extend(listing.folders.iter().map(|name| (format!("{folder}/{name}"), depth - 1)));
        }
    }
    records.sort_by(|a, b| (a.completed_at, &a.id).cmp(&(b.completed_at, &b.id)));
    Ok((records, unreadable))
}

/// Removes a backup: first what makes it one, then its files.
///
/// # Errors
/// When the storage fails.
pub fn remove(storage: &dyn Storage, path: &str) -> Result<(), StorageError> {
    storage.delete(&format!("{path}/{RECORD}"))?;
    storage.clear(path)
}

/// Whether this is the path of a record.
pub(super) fn is_record(path: &str) -> bool {
    path.rsplit('/').next() == Some(RECORD)
}

fn read(storage: &dyn Storage, path: &str) -> Result<Option<String>, StorageError> {
    let Some(file) = storage.open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    match file.take(RECORD_BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) => {
            Err(StorageError::within(error)
                .unwrap_or_else(|source| StorageError::Disk { path: path.to_owned(), source }))
        }
    }
}
