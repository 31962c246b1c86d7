//! Removal of directory trees that containers wrote.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a tree, whatever modes its directories have; one that is not there is no error.
///
/// # Errors
/// What the file system says of the first thing that cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A writable layer leaves directories that not even their owner may read.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_directories_go_too() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("closed/inner")).unwrap();
        fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o000)).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        remove(&tree).unwrap();
    }
}
