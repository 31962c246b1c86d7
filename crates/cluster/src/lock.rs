//! One process per directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::{Directory, StartError};

/// A process that was killed keeps the lock until all of its memory is gone.
const ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The right to use a directory, until it is dropped or the process ends in whatever way.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the directory.
    ///
    /// # Errors
    /// [`StartError::InUse`], with the process that has it.
    pub(crate) fn take(directory: &Directory) -> Result<Self, StartError> {
        let path = directory.lock();
        let mut file = open(&path).map_err(|source| StartError::file(&path, source))?;
        match try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StartError::InUse { dir: directory.path().to_owned(), pid: pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(StartError::file(&path, source)),
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(|source| StartError::file(&path, source))?;
        Ok(Lock { _file: file })
    }
}

/// Those who ask for the holder have the lock for an instant, too; only who keeps it uses the directory.
fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..ATTEMPTS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    file.try_lock()
}

/// The process that uses the cluster at `dir` now; `None` if none does.
pub fn holder(dir: &Path) -> Option<u32> {
    let mut file = File::open(dir.join("lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => pid(&mut file),
        _ => None,
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_user() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(outer.path()).unwrap();
        assert_eq!(holder(directory.path()), None);
        let lock = Lock::take(&directory).unwrap();
        assert_eq!(holder(directory.path()), Some(std::process::id()));
        let error = Lock::take(&directory).unwrap_err();
        assert!(error.to_string().contains(&format!("(process {})", std::process::id())), "{error}");
        drop(lock);
        assert_eq!(holder(directory.path()), None);
        Lock::take(&directory).unwrap();
    }
}
