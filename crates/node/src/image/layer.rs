//! Unpacks the file archives that images are made of, without trusting their paths.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use crate::sandbox::resolve;

/// What one image may unpack to; more is taken for an attack on the disk.
const IMAGE_BYTES_MAX: u64 = 20 << 30;
const WHITEOUT: &str = ".wh.";
const WHITEOUT_ALL: &str = ".wh..wh..opq";

/// Unpacks a tar stream over `rootfs`; OCI whiteouts remove what earlier layers brought.
///
/// Links inside the tree are followed as they would be with `rootfs` as the root, never out of it. Owners are set
/// where this process may do that; devices are left out, as `/dev` is the sandbox's own.
pub(crate) fn unpack(archive: impl Read, rootfs: &Path) -> io::Result<()> {
    let mut archive = Archive::new(archive);
    let mut budget = IMAGE_BYTES_MAX;
    let mut directories = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if path.components().any(|part| matches!(part, Component::ParentDir)) {
            return Err(io::Error::other(format!("a path leaves the image: {}", path.display())));
        }
        if whiteout(rootfs, &path)? {
            continue;
        }
        if let Some(mode) = unpack_entry(&mut entry, rootfs, &path, &mut budget)? {
            directories.push((path, mode));
        }
    }
    // Last, so that a directory that is not writable can be filled. What was a directory may have become a link since.
    for (path, mode) in directories.into_iter().rev() {
        let directory = place(rootfs, &path)?;
        if fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
            fs::set_permissions(directory, Permissions::from_mode(mode | 0o700))?;
        }
    }
    Ok(())
}

fn whiteout(rootfs: &Path, path: &Path) -> io::Result<bool> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(hidden) = name.strip_prefix(WHITEOUT) else { return Ok(false) };
    let parent = place(rootfs, path.parent().unwrap_or(Path::new("")))?;
    if name == WHITEOUT_ALL {
        for entry in fs::read_dir(&parent).into_iter().flatten().flatten() {
            remove(&entry.path())?;
        }
    } else if !hidden.is_empty() && hidden != "." && hidden != ".." {
        remove(&parent.join(hidden))?;
    }
    Ok(true)
}

/// Unpacks one entry; the mode that a directory gets in the end.
fn unpack_entry<R: Read>(
    entry: &mut Entry<'_, R>,
    rootfs: &Path,
    path: &Path,
    budget: &mut u64,
) -> io::Result<Option<u32>> {
    let Some(name) = path.file_name() else { return Ok(None) };
    let parent = place(rootfs, path.parent().unwrap_or(Path::new("")))?;
    fs::create_dir_all(&parent)?;
    let target = parent.join(name);
    let mode = entry.header().mode()? & 0o7777;
    match entry.header().entry_type() {
        EntryType::Directory => {
            // A link to a directory stays: merged /usr is made of such.
            let target = if target.is_symlink() { place(rootfs, path)? } else { target };
            if !target.is_dir() {
                remove(&target)?;
                fs::create_dir_all(&target)?;
            }
            own(entry, &target);
            return Ok(Some(mode));
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            remove(&target)?;
            let mut file = fs::File::create_new(&target)?;
            // A file with holes is larger than what the archive has of it.
            let written = io::copy(&mut entry.by_ref().take(*budget + 1), &mut file)?;
            *budget = budget.checked_sub(written).ok_or_else(|| io::Error::other("the image is too large"))?;
            own(entry, &target);
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        EntryType::Symlink => {
            remove(&target)?;
            symlink(link_name(entry)?, &target)?;
        }
        EntryType::Link => {
            let existing = link_name(entry)?;
            let source = place(rootfs, existing.parent().unwrap_or(Path::new("")))?
                .join(existing.file_name().unwrap_or_default());
            remove(&target)?;
            fs::hard_link(source, &target)?;
        }
        _ => {}
    }
    Ok(None)
}

fn link_name<R: Read>(entry: &Entry<'_, R>) -> io::Result<PathBuf> {
    let name = entry.link_name()?.ok_or_else(|| io::Error::other("a link without a target"))?;
    Ok(name.into_owned())
}

fn own<R: Read>(entry: &Entry<'_, R>, target: &Path) {
    if crate::sys::effective_ids().0 == 0 {
        let ids = entry.header().uid().ok().zip(entry.header().gid().ok());
        if let Some((uid, gid)) = ids.and_then(|(u, g)| Some((u32::try_from(u).ok()?, u32::try_from(g).ok()?))) {
            let _ = std::os::unix::fs::lchown(target, Some(uid), Some(gid));
        }
    }
}

fn place(rootfs: &Path, path: &Path) -> io::Result<PathBuf> {
    Ok(rootfs.join(resolve(rootfs, path)?))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o755);
            let bytes = path.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_size(0);
                header.set_link_name(content).unwrap();
                header.set_cksum();
                builder.append(&header, io::empty()).unwrap();
            } else {
                header.set_size(content.len() as u64);
                header.set_cksum();
                builder.append(&header, content.as_bytes()).unwrap();
            }
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn links_do_not_lead_out_of_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let link = outside.to_str().unwrap();
        unpack(&archive(&[("escape", EntryType::Symlink, link), ("escape/file", EntryType::Regular, "x")])[..], &root)
            .unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing was written outside");
        assert!(unpack(&archive(&[("../evil", EntryType::Regular, "x")])[..], &root).is_err());
        assert!(!dir.path().join("evil").exists());
    }

    #[test]
    fn a_directory_that_became_a_link_lends_its_mode_to_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o700)).unwrap();
        let link = outside.to_str().unwrap();
        let entries = [("a", EntryType::Directory, ""), ("a", EntryType::Symlink, link)];
        unpack(&archive(&entries)[..], &root).unwrap();
        assert!(root.join("a").is_symlink());
        assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn later_layers_replace_and_remove() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        unpack(&archive(&[("usr/bin/a", EntryType::Regular, "1"), ("etc/b", EntryType::Regular, "1")])[..], root)
            .unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        unpack(
            &archive(&[
                ("bin/", EntryType::Directory, ""),
                ("bin/a", EntryType::Regular, "2"),
                ("etc/.wh.b", EntryType::Regular, ""),
            ])[..],
            root,
        )
        .unwrap();
        assert_eq!(fs::read_to_string(root.join("usr/bin/a")).unwrap(), "2");
        assert!(root.join("bin").is_symlink(), "a directory entry keeps the link");
        assert!(!root.join("etc/b").exists());
    }
}
