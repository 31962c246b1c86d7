//! The durable copy: one redb file with the present entries and the revision.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};

use crate::{Entry, OpenError, Revision, Snapshot, snapshot::Index, stage::Staged};

/// The entries: created, modified, value.
const ENTRIES: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("entries");
/// Facts about the whole, by name.
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";
/// Memory holds every entry already, so the page cache stays small.
const PAGE_CACHE_BYTES: usize = 8 << 20;

type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// The open file, and how to open it again after it failed.
pub(crate) struct Disk {
    path: PathBuf,
    open: Opener,
    database: Option<Database>,
}

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Disk {
    /// The file at `path`, which is made if it is not there.
    pub(crate) fn file(path: &Path) -> Result<Self, OpenError> {
        let file = path.to_owned();
        Self::opened_by(path, Box::new(move || Database::builder().set_cache_size(PAGE_CACHE_BYTES).create(&file)))
    }

    /// A disk that `open` opens; `path` is its name in errors.
    pub(crate) fn opened_by(path: &Path, open: Opener) -> Result<Self, OpenError> {
        let mut disk = Self { path: path.to_owned(), open, database: None };
        disk.reopen()?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the disk must be opened again.
    pub(crate) fn is_failed(&self) -> bool {
        self.database.is_none()
    }

    /// Gives the file up until it is opened again.
    pub(crate) fn fail(&mut self) {
        self.database = None;
    }

    /// Opens the file and reads the revision that it holds.
    pub(crate) fn reopen(&mut self) -> Result<Revision, OpenError> {
        // The old handle holds the file's lock.
        self.database = None;
        let database = (self.open)().map_err(|error| self.open_error(error))?;
        let revision = prepare(&database).map_err(|error| self.read_error(error))?;
        self.database = Some(database);
        Ok(revision)
    }

    /// Everything that the file holds.
    pub(crate) fn load(&self) -> Result<Snapshot, OpenError> {
        let database = self.database.as_ref().expect("a disk is loaded right after it was opened");
        read_all(database).map_err(|error| self.read_error(error))
    }

    /// Writes the commits and syncs once. After an error the disk is failed.
    pub(crate) fn write(&mut self, commits: &[Staged]) -> Result<(), redb::Error> {
        let Some(last) = commits.last() else { return Ok(()) };
        let Some(database) = &self.database else { return Err(redb::Error::DatabaseClosed) };
        let result = write_all(database, commits, last.snapshot.revision());
        if result.is_err() {
            self.database = None;
        }
        result
    }

    fn open_error(&self, error: DatabaseError) -> OpenError {
        let path = self.path.clone();
        match error {
            DatabaseError::DatabaseAlreadyOpen => OpenError::InUse { path },
            DatabaseError::Storage(error) => self.read_error(error.into()),
            other => OpenError::Corrupt { path, reason: other.to_string() },
        }
    }

    fn read_error(&self, error: redb::Error) -> OpenError {
        let path = self.path.clone();
        let redb::Error::Io(source) = error else {
            return OpenError::Corrupt { path, reason: error.to_string() };
        };
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                OpenError::Permission { path, source }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::NoSpace { path, source },
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                OpenError::Corrupt { path, reason: source.to_string() }
            }
            _ => OpenError::Io { path, source },
        }
    }
}

/// Makes the tables of a new file and reads the revision.
fn prepare(database: &Database) -> Result<Revision, redb::Error> {
    let transaction = database.begin_read()?;
    if let Ok(meta) = transaction.open_table(META) {
        return Ok(meta.get(REVISION)?.map_or(Revision::FIRST, |value| Revision(value.value())));
    }
    let transaction = database.begin_write()?;
    transaction.open_table(ENTRIES)?;
    transaction.open_table(META)?.insert(REVISION, Revision::FIRST.0)?;
    transaction.commit()?;
    Ok(Revision::FIRST)
}

fn read_all(database: &Database) -> Result<Snapshot, redb::Error> {
    let transaction = database.begin_read()?;
    let revision = transaction.open_table(META)?.get(REVISION)?.map(|value| Revision(value.value()));
    let Some(revision) = revision else {
        return Err(StorageError::Corrupted("no revision".into()).into());
    };
    let mut index = Index::new_sync();
    for row in transaction.open_table(ENTRIES)?.iter()? {
        let (key, row) = row?;
        let (created, modified, value) = row.value();
        let entry =
            Entry { created: Revision(created), modified: Revision(modified), value: Bytes::copy_from_slice(value) };
        index.insert_mut(Arc::from(key.value()), entry);
    }
    Ok(Snapshot { index, revision })
}

fn write_all(database: &Database, commits: &[Staged], revision: Revision) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut entries = transaction.open_table(ENTRIES)?;
        for event in commits.iter().flat_map(|commit| &commit.events) {
            match &event.entry {
                Some(entry) => {
                    entries.insert(&*event.key, (entry.created.0, entry.modified.0, &entry.value[..]))?;
                }
                None => {
                    entries.remove(&*event.key)?;
                }
            }
        }
        transaction.open_table(META)?.insert(REVISION, revision.0)?;
    }
    transaction.commit()?;
    Ok(())
}
