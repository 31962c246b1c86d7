//! The files of a stage: they begin as those of an image, and get what a program changed.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;

use crate::tree;

/// The mark of a directory that hides what was there before, as overlays of users leave it.
const OPAQUE: &str = "user.overlay.opaque";
/// What the sandbox needs in the root of a program; files that are mounted there are none of the image's.
const MOUNTED: [&str; 2] = ["etc/resolv.conf", "etc/hosts"];

/// How deep directories of an image may nest.
pub(super) const DEPTH_MAX: usize = 256;

/// What is said of an image whose directories nest deeper.
pub(super) fn too_deep() -> io::Error {
    io::Error::other(format!("directories are nested more than {DEPTH_MAX} deep"))
}

/// Makes `to` have the files of an image. They are shared with it: nothing here writes to a file that is there.
pub(super) fn begin(from: &Path, to: &Path) -> io::Result<()> {
    share(from, to, DEPTH_MAX)
}

fn share(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let deeper = depth.checked_sub(1).ok_or_else(too_deep)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, place, found) = (entry.path(), to.join(entry.file_name()), entry.metadata()?);
        if found.is_dir() {
            fs::create_dir(&place)?;
            share(&source, &place, deeper)?;
            fs::set_permissions(&place, Permissions::from_mode(found.permissions().mode()))?;
            let _ = lchown(&place, Some(found.uid()), Some(found.gid()));
        } else if found.is_symlink() {
            symlink(fs::read_link(&source)?, &place)?;
            let _ = lchown(&place, Some(found.uid()), Some(found.gid()));
        } else if found.is_file() && fs::hard_link(&source, &place).is_err() {
            fs::copy(&source, &place)?;
            let _ = lchown(&place, Some(found.uid()), Some(found.gid()));
        }
    }
    Ok(())
}

/// Puts what a program changed, as the writable layer `upper` has it, into the files of a stage.
pub(super) fn take(upper: &Path, rootfs: &Path) -> io::Result<()> {
    merge(upper, rootfs, Path::new(""))
}

fn merge(upper: &Path, rootfs: &Path, folder: &Path) -> io::Result<()> {
    if folder.components().count() > DEPTH_MAX {
        return Err(too_deep());
    }
    for entry in fs::read_dir(upper.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let (source, place, found) = (entry.path(), rootfs.join(&path), entry.metadata()?);
        if found.file_type().is_char_device() && found.rdev() == 0 {
            remove(&place)?;
        } else if found.is_dir() {
            if is_opaque(&source) || !fs::symlink_metadata(&place).is_ok_and(|there| there.is_dir()) {
                remove(&place)?;
                fs::create_dir(&place)?;
            }
            merge(upper, rootfs, &path)?;
            fs::set_permissions(&place, Permissions::from_mode(found.permissions().mode()))?;
            let _ = lchown(&place, Some(found.uid()), Some(found.gid()));
        } else if !is_mounted(&path, found.len()) && (found.is_file() || found.is_symlink()) {
            remove(&place)?;
            fs::rename(&source, &place)?;
        }
    }
    Ok(())
}

/// A file that was made only so that another could be mounted over it.
fn is_mounted(path: &Path, length: u64) -> bool {
    length == 0 && MOUNTED.iter().any(|mounted| path == Path::new(mounted))
}

fn is_opaque(directory: &Path) -> bool {
    let mut value = [0_u8; 1];
    rustix::fs::lgetxattr(directory, OPAQUE, &mut value[..]).is_ok_and(|length| length == 1 && value == *b"y")
}

fn remove(place: &Path) -> io::Result<()> {
    tree::remove(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_taken_and_the_first_image_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [base, stage, upper] = ["base", "stage", "upper"].map(|name| dir.path().join(name));
        for root in [&base, &stage, &upper] {
            fs::create_dir_all(root.join("etc")).unwrap();
        }
        fs::write(base.join("etc/old"), "old").unwrap();
        fs::write(base.join("etc/same"), "same").unwrap();
        fs::remove_dir(stage.join("etc")).unwrap();
        begin(&base, &stage).unwrap();
        fs::write(upper.join("etc/old"), "new").unwrap();
        fs::write(upper.join("etc/hosts"), "").unwrap();
        fs::write(upper.join("more"), "more").unwrap();
        take(&upper, &stage).unwrap();
        let read = |root: &Path, path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
        assert_eq!((read(&stage, "etc/old"), read(&stage, "more")), ("new".to_owned(), "more".to_owned()));
        assert_eq!((read(&stage, "etc/same"), read(&base, "etc/old")), ("same".to_owned(), "old".to_owned()));
        assert!(!stage.join("etc/hosts").exists());
    }
}
