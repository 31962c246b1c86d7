//! The directory of one cluster: what is where, readable by its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use windlass_store::OpenError;

use crate::StartError;

const PRIVATE_DIR: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// The directory of one cluster.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The directory at `path`, which is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or is not a directory.
    pub fn create(path: &Path) -> Result<Self, StartError> {
        if path.exists() && !path.is_dir() {
            return Err(StartError::NotADirectory { path: path.to_owned() });
        }
        make_private(path).map_err(|source| StartError::file(path, source))?;
        let path = fs::canonicalize(path).map_err(|source| StartError::file(path, source))?;
        Ok(Directory(path))
    }

    /// Its path, absolute.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file whose lock says that a process uses the directory.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.0.join("store.log")
    }

    /// A store of the format before the present one would look like none at all.
    pub(crate) fn refuse_earlier_store(&self) -> Result<(), OpenError> {
        let path = self.0.join("store.redb");
        if !path.exists() {
            return Ok(());
        }
        let reason = "it was written by an earlier version, in a format that this one does not read".to_owned();
        Err(OpenError::Corrupt { path, reason })
    }

    /// The file that remembers the range of addresses.
    pub fn address(&self) -> PathBuf {
        self.0.join("address")
    }

    /// The configuration for clients.
    pub fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// Keys and certificates.
    pub fn pki(&self) -> PathBuf {
        self.0.join("pki")
    }

    /// The persistent volumes, a directory each.
    pub fn volumes(&self) -> PathBuf {
        self.0.join("volumes")
    }

    /// The node's Pods, volumes and logs.
    pub fn node(&self) -> PathBuf {
        self.0.join("node")
    }
}

/// Makes a directory, and those above it, that only its owner can enter; one that is there stays as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(PRIVATE_DIR).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        outcome => outcome,
    }
}

/// Writes a file that only its owner can read, as a whole or not at all.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    // What an interrupted write left behind may have other permissions.
    if let Err(error) = fs::remove_file(&temporary)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_owner_reads() {
        let outer = tempfile::tempdir().unwrap();
        let directory = Directory::create(&outer.path().join("a/.windlass")).unwrap();
        let file = directory.kubeconfig();
        fs::write(file.with_file_name("kubeconfig.new"), "left behind").unwrap();
        write_private(&file, b"one").unwrap();
        write_private(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        assert_eq!(mode(directory.path()), 0o700);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_no_directory() {
        let outer = tempfile::tempdir().unwrap();
        let path = outer.path().join("file");
        fs::write(&path, "").unwrap();
        assert!(matches!(Directory::create(&path), Err(StartError::NotADirectory { .. })));
    }
}
