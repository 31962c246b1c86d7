//! Unpacks the file archives that images are made of, without trusting their paths.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use tar::{Archive, Entry, EntryType};

use crate::sandbox::resolve;

/// What one image may unpack to; more is taken for an attack on the disk.
const IMAGE_BYTES_MAX: u64 = 20 << 30;
const IMAGE_ENTRIES_MAX: u64 = 4_000_000;
/// What of the stream may belong to the names and the map of holes of one entry, which are held in memory.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// How deep directories may nest: whoever removes a tree holds one of them open for each level.
const DEPTH_MAX: usize = 256;
const WHITEOUT: &str = ".wh.";
const WHITEOUT_ALL: &str = ".wh..wh..opq";

/// What may still be unpacked of one image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: IMAGE_BYTES_MAX, entries: IMAGE_ENTRIES_MAX }
    }
}

impl Budget {
    fn take_entry(&mut self) -> io::Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| io::Error::other("the image has too many files"))?;
        Ok(())
    }

    /// Copies the content of an entry, which may be larger than what the archive has of it: files have holes.
    fn copy(&mut self, content: &mut impl Read, file: &mut impl Write) -> io::Result<()> {
        let copied = io::copy(&mut content.take(self.bytes.saturating_add(1)), file)?;
        self.bytes = self.bytes.checked_sub(copied).ok_or_else(|| io::Error::other("the image is too large"))?;
        Ok(())
    }
}

/// Unpacks a tar stream over `rootfs`; OCI whiteouts remove what earlier layers brought.
///
/// Links inside the tree are followed as they would be with `rootfs` as the root, never out of it. Owners are set
/// where this process may do that; devices are left out, as `/dev` is the sandbox's own.
pub(crate) fn unpack(archive: impl Read, rootfs: &Path, budget: &mut Budget) -> io::Result<()> {
    let allowance = Rc::new(Cell::new(HEADER_BYTES_MAX));
    let mut archive = Archive::new(Metered { stream: archive, left: Rc::clone(&allowance) });
    let mut directories = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        budget.take_entry()?;
        allowance.set(u64::MAX);
        let path = entry.path()?.into_owned();
        if path.components().any(|part| matches!(part, Component::ParentDir)) {
            return Err(io::Error::other(format!("a path leaves the image: {}", path.display())));
        }
        if !whiteout(rootfs, &path)?
            && let Some(mode) = unpack_entry(&mut entry, rootfs, &path, budget)?
        {
            directories.insert(path, mode);
        }
        // What nobody wanted counts as well, so that an archive has an end.
        budget.copy(&mut entry, &mut io::sink())?;
        allowance.set(HEADER_BYTES_MAX);
    }
    // Last, so that a directory that is not writable can be filled. What was a directory may have become a link since.
    for (path, mode) in directories {
        let directory = place(rootfs, &path)?;
        if fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
            fs::set_permissions(directory, Permissions::from_mode(mode | 0o700))?;
        }
    }
    Ok(())
}

/// A stream that ends with an error when more is read than is left; the reader of archives takes headers into memory
/// however large they say they are.
struct Metered<R> {
    stream: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("the header of an entry is too large"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.stream.read(&mut buffer[..most])?;
        self.left.set(left.saturating_sub(read as u64));
        Ok(read)
    }
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
    budget: &mut Budget,
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
            budget.copy(entry, &mut file)?;
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
    let inside = resolve(rootfs, path)?;
    if inside.components().count() > DEPTH_MAX {
        return Err(io::Error::other(format!("directories are nested more than {DEPTH_MAX} deep")));
    }
    Ok(rootfs.join(inside))
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

    fn unpack(archive: &[u8], rootfs: &Path) -> io::Result<()> {
        super::unpack(archive, rootfs, &mut Budget::default())
    }

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
        unpack(&archive(&[("escape", EntryType::Symlink, link), ("escape/file", EntryType::Regular, "x")]), &root)
            .unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing was written outside");
        assert!(unpack(&archive(&[("../evil", EntryType::Regular, "x")]), &root).is_err());
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
        unpack(&archive(&entries), &root).unwrap();
        assert!(root.join("a").is_symlink());
        assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn later_layers_replace_and_remove() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        unpack(&archive(&[("usr/bin/a", EntryType::Regular, "1"), ("etc/b", EntryType::Regular, "1")]), root).unwrap();
        symlink("usr/bin", root.join("bin")).unwrap();
        unpack(
            &archive(&[
                ("bin/", EntryType::Directory, ""),
                ("bin/a", EntryType::Regular, "2"),
                ("etc/.wh.b", EntryType::Regular, ""),
            ]),
            root,
        )
        .unwrap();
        assert_eq!(fs::read_to_string(root.join("usr/bin/a")).unwrap(), "2");
        assert!(root.join("bin").is_symlink(), "a directory entry keeps the link");
        assert!(!root.join("etc/b").exists());
    }

    #[test]
    fn the_last_mode_of_a_directory_counts() {
        let root = tempfile::tempdir().unwrap();
        let entries = |mode| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(EntryType::Directory);
            header.set_mode(mode);
            header.set_path("a").unwrap();
            header.set_size(0);
            header.set_cksum();
            header
        };
        let mut builder = tar::Builder::new(Vec::new());
        for mode in [0o700, 0o755] {
            builder.append(&entries(mode), io::empty()).unwrap();
        }
        unpack(&builder.into_inner().unwrap(), root.path()).unwrap();
        assert_eq!(fs::metadata(root.path().join("a")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn an_image_has_its_limits() {
        let root = tempfile::tempdir().unwrap();
        let check = |given: &[u8], budget: Budget, expect: &str| {
            let error = super::unpack(given, root.path(), &mut budget.clone()).unwrap_err();
            assert_eq!(error.to_string(), expect);
        };
        let two = archive(&[("a", EntryType::Regular, "four"), ("b", EntryType::Fifo, "five.")]);
        check(&two, Budget { bytes: 8, entries: 9 }, "the image is too large");
        check(&two, Budget { bytes: 9, entries: 1 }, "the image has too many files");
        super::unpack(&two[..], root.path(), &mut Budget { bytes: 9, entries: 2 }).unwrap();
        let name = "n".repeat(usize::try_from(HEADER_BYTES_MAX).unwrap());
        let named = archive(&[("name", EntryType::GNULongName, &name), ("a", EntryType::Regular, "")]);
        check(&named, Budget::default(), "the header of an entry is too large");
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        builder.append_data(&mut header, "a/".repeat(DEPTH_MAX + 1) + "b", io::empty()).unwrap();
        let deep = builder.into_inner().unwrap();
        check(&deep, Budget::default(), "directories are nested more than 256 deep");
    }
}
