//! Storage that is a folder: files that are whole or not there, that stay after a power cut, and that nobody overwrites.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use super::record::{BackupRecord, RecordError};

/// What the record of a backup is called; a backup without one is what a crash left.
const RECORD: &str = "backup.json";
/// What the names of files begin with that are being written.
const UNFINISHED: &str = ".unfinished-";
/// How deep below its top backups are looked for.
const DEPTH_MAX: usize = 8;
/// How much is compared at once.
const CHUNK_BYTES: usize = 64 << 10;
/// A record is not longer.
const RECORD_BYTES_MAX: u64 = 4 << 20;

/// A folder in which backups are.
#[derive(Clone, Debug)]
pub struct Folder {
    top: PathBuf,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was written.
    Written,
    /// It was there, byte by byte.
    Identical,
}

/// Why storage does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is something else of that name.
    #[error("{0} is there with other content, and is not overwritten: does another cluster write here?")]
    Different(String),
    /// A name that leads out of the folder.
    #[error("{0:?} is not a path below the top of the storage")]
    Path(String),
    /// The disk is full, or another answer of the system.
    #[error("storage: {path}: {source}")]
    Disk {
        /// What was worked on.
        path: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

impl Folder {
    /// The folder with this top.
    pub fn at(top: impl Into<PathBuf>) -> Self {
        Self { top: top.into() }
    }

    /// The place of `path`, for programs that read and write files themselves.
    ///
    /// # Errors
    /// When it leads out of the folder.
    pub fn place(&self, path: &str) -> Result<PathBuf, FolderError> {
        let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain && !path.is_empty() { Ok(self.top.join(path)) } else { Err(FolderError::Path(path.into())) }
    }

    /// Writes a file that was not there. One that is there with the same content is fine: whoever wrote it may not have lived to
    /// hear of it.
    ///
    /// # Errors
    /// When there is other content of that name, or the disk fails.
    pub fn put(&self, path: &str, content: &mut dyn Read) -> Result<Put, FolderError> {
        let place = self.place(path)?;
        let failed = |source: io::Error| disk(path, source);
        if !self.top.is_dir() {
            // To make it would be to write where nobody looks, until the volume is mounted over it.
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "the storage is not mounted")));
        }
        let parent = place.parent().unwrap_or(&self.top);
        make_folders(parent).map_err(failed)?;
        // Another process may write the same file now: each has a draft of its own.
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let draft = parent.join(format!("{UNFINISHED}{}-{name}", std::process::id()));
        let put = write_draft(&draft, content).and_then(|()| adopt(&draft, &place));
        let removed = fs::remove_file(&draft);
        match put.map_err(failed)? {
            None => Err(FolderError::Different(path.to_owned())),
            Some(put) => {
                removed.map_err(failed)?;
                sync(parent).map_err(failed)?;
                Ok(put)
            }
        }
    }

    /// Opens a file; `None` if there is none.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn open(&self, path: &str) -> Result<Option<File>, FolderError> {
        match File::open(self.place(path)?) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(disk(path, source)),
        }
    }

    /// Makes a backup of the files that are in the folder of a record: from now on it is one.
    ///
    /// # Errors
    /// When the disk fails, or there is one already.
    pub fn seal(&self, record: &BackupRecord) -> Result<(), FolderError> {
        let place = self.place(&record.location)?;
        let failed = |source: io::Error| disk(&record.location, source);
        for entry in fs::read_dir(&place).map_err(failed)? {
            File::open(entry.map_err(failed)?.path()).and_then(|file| file.sync_all()).map_err(failed)?;
        }
        let text = serde_json::to_vec_pretty(record).expect("a record is plain data");
        self.put(&format!("{}/{RECORD}", record.location), &mut text.as_slice()).map(drop)
    }

    /// All backups below `path`, the oldest first, and why others that seem to be there cannot be read.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn backups(&self, path: &str) -> Result<(Vec<BackupRecord>, Vec<RecordError>), FolderError> {
        let (mut records, mut unreadable) = (Vec::new(), Vec::new());
        let mut pending = vec![(self.place(path)?, DEPTH_MAX)];
        while let Some((folder, depth)) = pending.pop() {
            let text = match read_record(&folder.join(RECORD)) {
                Ok(text) => text,
                Err(source) => return Err(disk(&folder.to_string_lossy(), source)),
            };
            match text.as_deref().map(BackupRecord::read) {
                Some(Ok(record)) => records.push(record),
                Some(Err(error)) => unreadable.push(error),
                None if depth > 0 => {
                    let found = folders_in(&folder).map_err(|source| disk(&folder.to_string_lossy(), source))?;
                    pending.extend(found.into_iter().map(|folder| (folder, depth - 1)));
                }
                None => {}
            }
        }
        records.sort_by(|a, b| (a.completed_at, &a.id).cmp(&(b.completed_at, &b.id)));
        Ok((records, unreadable))
    }

    /// Removes a backup: first what makes it one, then its files.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn remove(&self, path: &str) -> Result<(), FolderError> {
        let place = self.place(path)?;
        let absent_is_fine = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(disk(path, error)),
        };
        fs::remove_file(place.join(RECORD)).or_else(absent_is_fine)?;
        fs::remove_dir_all(&place).or_else(absent_is_fine)
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
            Ok(is_same(draft, place)?.then_some(Put::Identical))
        }
        Err(error) => Err(error),
    }
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let length = one.read(&mut left)?;
        if length == 0 {
            return Ok(true);
        }
        match other.read_exact(&mut right[..length]) {
            Ok(()) if left[..length] == right[..length] => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
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

fn read_record(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(RECORD_BYTES_MAX).read_to_string(&mut text)?;
    Ok(Some(text))
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn disk(path: &str, source: io::Error) -> FolderError {
    FolderError::Disk { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::record::sample;

    fn folder() -> (tempfile::TempDir, Folder) {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::at(top.path());
        (top, folder)
    }

    #[test]
    fn what_is_there_is_kept_and_the_same_again_is_fine() {
        let (top, folder) = folder();
        assert_eq!(folder.put("a/b", &mut "one".as_bytes()).unwrap(), Put::Written);
        assert_eq!(folder.put("a/b", &mut "one".as_bytes()).unwrap(), Put::Identical);
        for other in ["two", "on", "ones"] {
            let refused = folder.put("a/b", &mut other.as_bytes()).unwrap_err();
            assert!(matches!(refused, FolderError::Different(_)), "{refused}");
        }
        let mut text = String::new();
        folder.open("a/b").unwrap().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read_dir(top.path().join("a")).unwrap().count()), ("one", 1), "no drafts stay");
        assert!(folder.open("a/c").unwrap().is_none());
    }

    #[test]
    fn nothing_is_written_where_no_storage_is() {
        let (top, _) = folder();
        let absent = Folder::at(top.path().join("absent"));
        assert!(matches!(absent.put("a", &mut "".as_bytes()), Err(FolderError::Disk { .. })));
        assert!(!top.path().join("absent").exists());
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (_top, folder) = folder();
        for path in ["../a", "/etc/passwd", "a/../../b", ""] {
            assert!(matches!(folder.put(path, &mut "".as_bytes()), Err(FolderError::Path(_))), "{path}");
        }
    }

    #[test]
    fn a_backup_is_one_from_its_seal_on_and_none_once_it_is_removed() {
        let (top, folder) = folder();
        let (old, new) = (sample("old", "2026-01-01T00:00:00Z"), sample("new", "2026-01-02T00:00:00Z"));
        for record in [&new, &old] {
            folder.put(&format!("{}/base.tar", record.location), &mut "data".as_bytes()).unwrap();
        }
        assert_eq!(folder.backups("shop").unwrap().0, [], "files alone are what a crash left");
        folder.seal(&new).unwrap();
        folder.seal(&old).unwrap();
        fs::create_dir_all(top.path().join("shop/db/base/odd")).unwrap();
        fs::write(top.path().join("shop/db/base/odd/backup.json"), "{}").unwrap();
        let (found, unreadable) = folder.backups("shop").unwrap();
        assert_eq!((found, unreadable.len()), (vec![old.clone(), new], 1));
        folder.remove(&old.location).unwrap();
        folder.remove(&old.location).unwrap();
        assert_eq!(folder.backups("shop/db").unwrap().0.len(), 1);
        assert_eq!(folder.backups("nowhere").unwrap().0, []);
    }
}
