//! Storage that is a folder of a volume.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Listing, Put, Storage, StorageError, checked, is_same};

/// What the names of files begin with that are being written.
const UNFINISHED: &str = ".unfinished-";

/// How many drafts this process has begun.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// A folder in which backups are.
#[derive(Clone, Debug)]
pub struct Folder {
    top: PathBuf,
}

impl Folder {
    /// The folder with this top.
    pub fn at(top: impl Into<PathBuf>) -> Self {
        Self { top: top.into() }
    }

    fn at_path(&self, path: &str) -> Result<PathBuf, StorageError> {
        Ok(self.top.join(checked(path)?))
    }
}

impl Storage for Folder {
    fn put(&self, path: &str, content: &mut dyn Read) -> Result<Put, StorageError> {
        let place = self.at_path(path)?;
        let failed = |source: io::Error| disk(path, source);
        if !self.top.is_dir() {
            // To make it would be to write where nobody looks, until the volume is mounted over it.
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "the storage is not mounted")));
        }
        let parent = place.parent().unwrap_or(&self.top);
        make_folders(parent).map_err(failed)?;
        // Another process, or thread, may write the same file now: each has a draft of its own.
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = parent.join(format!("{UNFINISHED}{}-{number}-{name}", std::process::id()));
        let put = write_draft(&draft, content).and_then(|()| adopt(&draft, &place));
        let removed = fs::remove_file(&draft);
        match put.map_err(failed)? {
            None => Err(StorageError::Different(path.to_owned())),
            Some(put) => {
                removed.map_err(failed)?;
                sync(parent).map_err(failed)?;
                Ok(put)
            }
        }
    }

    fn open(&self, path: &str) -> Result<Option<Box<dyn Read + Send>>, StorageError> {
        match File::open(self.at_path(path)?) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(disk(path, source)),
        }
    }

    fn list(&self, path: &str) -> Result<Listing, StorageError> {
        let place = if path.is_empty() { self.top.clone() } else { self.at_path(path)? };
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Listing::default()),
            Err(source) => return Err(disk(path, source)),
        };
        let mut listing = Listing::default();
        for entry in entries {
            let entry = entry.map_err(|source| disk(path, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().map_err(|source| disk(path, source))?.is_dir() {
                listing.folders.push(name);
            } else if !name.starts_with(UNFINISHED) {
                listing.files.push(name);
            }
        }
        listing.folders.sort();
        listing.files.sort();
        Ok(listing)
    }

    fn delete(&self, path: &str) -> Result<(), StorageError> {
        let place = self.at_path(path)?;
        absent_is_fine(path, fs::remove_file(&place))?;
        // A folder goes with its last file, as it does where there are no folders. One with files does not.
        let _ = place.parent().filter(|parent| *parent != self.top).map(fs::remove_dir);
        Ok(())
    }

    fn clear(&self, path: &str) -> Result<(), StorageError> {
        absent_is_fine(path, fs::remove_dir_all(self.at_path(path)?))
    }

    fn place(&self, path: &str) -> Result<Option<PathBuf>, StorageError> {
        self.at_path(path).map(Some)
    }

    fn settle(&self, path: &str) -> Result<(), StorageError> {
        let failed = |source: io::Error| disk(path, source);
        for entry in fs::read_dir(self.at_path(path)?).map_err(failed)? {
            File::open(entry.map_err(failed)?.path()).and_then(|file| file.sync_all()).map_err(failed)?;
        }
        Ok(())
    }
}

fn write_draft(draft: &Path, content: &mut dyn Read) -> io::Result<()> {
    let mut file = File::create(draft)?;
    io::copy(content, &mut file)?;
    file.flush()?;
    file.sync_all()
}

/// A link cannot take the place of what is there, as a rename would.
fn adopt(draft: &Path, place: &Path) -> io::Result<Option<Put>> {
    match fs::hard_link(draft, place) {
        Ok(()) => Ok(Some(Put::Written)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(is_same(&mut File::open(draft)?, &mut File::open(place)?)?.then_some(Put::Identical))
        }
        Err(error) => Err(error),
    }
}

/// Makes the folders down to `folder`, so that they stay.
fn make_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folders(parent)?;
        fs::create_dir(folder).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })?;
        sync(parent)?;
    }
    Ok(())
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn disk(path: &str, source: io::Error) -> StorageError {
    StorageError::Disk { path: path.to_owned(), source }
}

fn absent_is_fine(path: &str, done: io::Result<()>) -> Result<(), StorageError> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(disk(path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_where_no_storage_is() {
        let top = tempfile::tempdir().unwrap();
        let absent = Folder::at(top.path().join("absent"));
        assert!(matches!(absent.put("a", &mut "".as_bytes()), Err(StorageError::Disk { .. })));
        assert!(!top.path().join("absent").exists());
    }

    #[test]
    fn no_drafts_stay() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::at(top.path());
        folder.put("a/b", &mut "one".as_bytes()).unwrap();
        folder.put("a/b", &mut "two".as_bytes()).unwrap_err();
        assert_eq!(fs::read_dir(top.path().join("a")).unwrap().count(), 1);
    }
}
