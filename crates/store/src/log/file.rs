//! A log that is a file.

use std::{
    ffi::OsString,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{Medium, Place};
use crate::OpenError;

/// How often the file may be replaced while it is opened.
const OPEN_TRIES: usize = 10;

/// The path of a log.
#[derive(Debug)]
pub(crate) struct FilePlace {
    path: PathBuf,
    beside: PathBuf,
}

impl FilePlace {
    pub(crate) fn new(path: &Path) -> Self {
        let mut beside: OsString = path.as_os_str().to_owned();
        beside.push(".new");
        Self { path: path.to_owned(), beside: beside.into() }
    }

    /// The lock ends with the handle, so a file is locked before anyone can find it.
    fn lock(&self, file: &File) -> Result<(), OpenError> {
        match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: self.path.clone() }),
            Err(TryLockError::Error(error)) => Err(OpenError::of(&self.path, error)),
        }
    }

    /// Whether the log is this file and not one that has replaced it.
    fn is_at_path(&self, file: &File) -> io::Result<bool> {
        let (own, found) = (file.metadata()?, fs::metadata(&self.path)?);
        Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
    }
}

impl Place for FilePlace {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<Option<Box<dyn Medium>>, OpenError> {
        let failed = |error| OpenError::of(&self.path, error);
        for _ in 0..OPEN_TRIES {
            let file = match File::options().read(true).write(true).open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
            self.lock(&file)?;
            if self.is_at_path(&file).map_err(failed)? {
                return Ok(Some(Box::new(file)));
            }
        }
        Err(OpenError::InUse { path: self.path.clone() })
    }

    fn begin(&self) -> Result<Box<dyn Medium>, OpenError> {
        let failed = |error| OpenError::of(&self.path, error);
        let mut options = File::options();
        // Secrets are in it.
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&self.beside).map_err(failed)?;
        self.lock(&file)?;
        // Only now is it nobody else's: what is in it is left from a crash.
        file.set_len(0).map_err(failed)?;
        Ok(Box::new(file))
    }

    fn install(&self) -> io::Result<()> {
        fs::rename(&self.beside, &self.path)
    }

    fn settle(&self) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }

    fn discard(&self) {
        if let Err(error) = fs::remove_file(&self.beside)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = %self.beside.display(), %error, "a file that is of no use could not be removed");
        }
    }
}

impl Medium for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
