//! What a node has outside of its directory, memory and control groups: who uses it, and how it goes when nobody does.
//!
//! Each node has a folder in the machine's memory. A file in it names the node's control groups, and whoever uses any of it
//! holds a shared lock on that file: the node, and every supervisor of its containers. Locks go with their processes, however
//! those end. So whoever gets the file for itself alone finds nothing in use: the last supervisor that gave up waiting for its
//! node, or the next node of that user, wherever it is.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cgroup;
use crate::tree;

/// Where a machine has files in memory.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "windlass-";
/// The file that is locked; no Pod has such a name.
const LOCK: &str = ".node";
/// How often a folder is made that another process removes at the same time.
const ATTEMPTS_MAX: usize = 100;
/// How long the list of groups may be.
const LIST_BYTES_MAX: u64 = 1 << 16;

/// The folder in memory of the node in `dir`: apart from those of other nodes of the machine.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    dir.hash(&mut hasher);
    Path::new(MEMORY).join(format!("{PREFIX}{:016x}", hasher.finish()))
}

/// Whether the machine has files in memory.
pub(crate) fn has_memory() -> bool {
    Path::new(MEMORY).is_dir()
}

/// While this lives, the folder and the groups of a node are in use.
#[derive(Debug)]
pub(crate) struct Claim {
    folder: PathBuf,
    lock: File,
}

impl Claim {
    /// Makes the folder of the node in `dir`, and keeps it.
    ///
    /// # Errors
    /// If there is no memory to have a folder in, or somebody else has it.
    pub(crate) fn make(dir: &Path) -> io::Result<Self> {
        let folder = folder(dir);
        for _ in 0..ATTEMPTS_MAX {
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            // Removed in between: once more.
            if let Some(claim) = Self::open(&folder, true)? {
                return Ok(claim);
            }
        }
        Err(io::Error::other("it is removed again and again"))
    }

    /// Keeps the folder of the node in `dir`, if it has one.
    pub(crate) fn share(dir: &Path) -> Option<Self> {
        Self::open(&folder(dir), false).ok().flatten()
    }

    fn open(folder: &Path, create: bool) -> io::Result<Option<Self>> {
        let path = folder.join(LOCK);
        let opened = OpenOptions::new().read(true).write(true).create(create).mode(0o600).open(&path);
        let lock = match opened {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        lock.lock_shared()?;
        let is_there = fs::metadata(&path).is_ok_and(|now| lock.metadata().is_ok_and(|own| own.ino() == now.ino()));
        Ok(is_there.then(|| Self { folder: folder.to_owned(), lock }))
    }

    /// Keeps the folder of the node whose container runs in `scratch`, a directory of the node's.
    pub(crate) fn of_run(scratch: &Path) -> Option<Self> {
        // pods/UID/containers/NAME/NUMBER
        Self::share(scratch.ancestors().nth(5)?)
    }

    /// Notes the control groups that go with the folder.
    pub(crate) fn note(&self, groups: &[PathBuf]) -> io::Result<()> {
        let text: String = groups.iter().map(|group| format!("{}\n", group.display())).collect();
        let mut lock = &self.lock;
        lock.rewind()?;
        lock.set_len(0)?;
        lock.write_all(text.as_bytes())
    }

    /// Uses it no longer; the last one removes what is left of it.
    pub(crate) fn release(self) {
        let folder = self.folder.clone();
        drop(self);
        clear(&folder);
    }
}

/// Removes what nodes of this user left that were killed, and whose containers have ended since.
pub fn sweep() {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_named && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own) {
            clear(&entry.path());
        }
    }
}

/// Removes a folder and the groups that go with it, unless somebody uses them.
fn clear(folder: &Path) {
    let Ok(mut lock) = OpenOptions::new().read(true).open(folder.join(LOCK)) else { return };
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return,
    }
    let mut groups = String::new();
    if (&mut lock).take(LIST_BYTES_MAX).read_to_string(&mut groups).is_ok() {
        groups.lines().map(Path::new).for_each(cgroup::remove_root);
    }
    // What is in it may be anybody's who was root in a container.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    if let Err(error) = tree::remove(folder) {
        tracing::warn!(%error, folder = %folder.display(), "what a node left in memory was not removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_uses_any_more_goes() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        assert!(Claim::share(dir.path()).is_none(), "there is none yet");
        let claim = Claim::make(dir.path()).unwrap();
        claim.note(&[]).unwrap();
        fs::create_dir_all(folder.join("uid/volume")).unwrap();
        let supervisor = Claim::share(dir.path()).unwrap();
        drop(claim);
        sweep();
        assert!(folder.join("uid/volume").is_dir(), "a container uses it");
        supervisor.release();
        assert!(!folder.exists());
        drop(Claim::make(dir.path()).unwrap());
        sweep();
        assert!(!folder.exists(), "its node was killed");
    }

    #[test]
    fn a_folder_without_its_file_is_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(dir.path());
        fs::create_dir_all(&folder).unwrap();
        sweep();
        assert!(folder.is_dir());
        fs::remove_dir(&folder).unwrap();
    }
}
