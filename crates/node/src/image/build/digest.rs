//! What identifies an image that was built: everything that can be seen of it from inside, and nothing else.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::changes::{DEPTH_MAX, too_deep};
use crate::image::ImageConfig;

/// The digest of files and configuration: the same for the same content, whenever and wherever it was built.
///
/// Owners count only where files can have one besides whoever runs Windlass; times do not.
pub(super) fn digest(rootfs: &Path, config: &ImageConfig) -> io::Result<String> {
    let mut sum = Sha256::new();
    let config = serde_json::to_vec(config).expect("a configuration is plain data");
    field(&mut sum, &config);
    tree(rootfs, crate::sys::effective_ids().0 == 0, DEPTH_MAX, &mut sum)?;
    Ok(hex::encode(sum.finalize()))
}

fn tree(directory: &Path, owners: bool, depth: usize, sum: &mut Sha256) -> io::Result<()> {
    let deeper = depth.checked_sub(1).ok_or_else(too_deep)?;
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(directory)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, found) = (entry.path(), entry.metadata()?);
        field(sum, entry.file_name().as_bytes());
        let owner = if owners { (found.uid(), found.gid()) } else { (0, 0) };
        let mode = if found.is_symlink() { 0 } else { found.permissions().mode() };
        field(sum, format!("{mode:o} {} {}", owner.0, owner.1).as_bytes());
        if found.is_dir() {
            field(sum, b"(");
            tree(&path, owners, deeper, sum)?;
            field(sum, b")");
        } else if found.is_symlink() {
            field(sum, fs::read_link(&path)?.as_os_str().as_bytes());
        } else if found.is_file() {
            let mut content = Sha256::new();
            io::copy(&mut File::open(&path)?, &mut content)?;
            field(sum, &content.finalize());
        }
    }
    Ok(())
}

/// Lengths come first, so that no two sequences of fields look the same.
fn field(sum: &mut Sha256, bytes: &[u8]) {
    sum.update((bytes.len() as u64).to_be_bytes());
    sum.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_and_time_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str| {
            let root = dir.path().join(name);
            fs::create_dir_all(root.join("a")).unwrap();
            fs::write(root.join("a/file"), text).unwrap();
            File::open(root.join("a/file")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).ok();
            digest(&root, &ImageConfig::default()).unwrap()
        };
        assert_eq!(make("one", "x"), make("two", "x"));
        assert_ne!(make("one", "x"), make("three", "y"));
        let other = ImageConfig { user: "u".to_owned(), ..ImageConfig::default() };
        assert_ne!(digest(&dir.path().join("one"), &other).unwrap(), make("one", "x"));
    }
}
