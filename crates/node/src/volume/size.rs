//! How much a directory that a container writes takes on the disk.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};

/// The unit in which the kernel counts what a file takes; holes take nothing.
const BLOCK_BYTES: u64 = 512;
/// What is below this is not counted: a descriptor is open for each level.
const DEPTH_MAX: usize = 128;
/// Files that one look counts; a directory with more has at least what those take.
const FILES_MAX: usize = 1_000_000;

/// The bytes that a directory and everything in it take; links are not followed, files with several names count once.
pub(crate) fn size(directory: &Path) -> u64 {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(top) = rustix::fs::openat(CWD, directory, flags, Mode::empty()) else { return 0 };
    let mut sum = Sum::default();
    let mut open: Vec<Dir> = dir(top).into_iter().collect();
    while let Some(directory) = open.last_mut() {
        let Some(entry) = directory.next().filter(|_| sum.files < FILES_MAX) else {
            open.pop();
            continue;
        };
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(parent) = directory.fd() else { continue };
        let Ok(found) = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        sum.add(&found);
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory && open.len() < DEPTH_MAX {
            let inner = open.last().and_then(|directory| directory.fd().ok());
            let inner = inner.and_then(|parent| rustix::fs::openat(parent, name, flags, Mode::empty()).ok());
            open.extend(inner.and_then(dir));
        }
    }
    sum.bytes
}

fn dir(directory: OwnedFd) -> Option<Dir> {
    Dir::new(directory).ok()
}

#[derive(Default)]
struct Sum {
    bytes: u64,
    files: usize,
    /// Files with several names that were counted.
    shared: HashSet<(u64, u64)>,
}

impl Sum {
    fn add(&mut self, found: &rustix::fs::Stat) {
        self.files += 1;
        let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if found.st_nlink > 1 && !is_directory && !self.shared.insert((found.st_dev, found.st_ino)) {
            return;
        }
        self.bytes += u64::try_from(found.st_blocks).unwrap_or(0) * BLOCK_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn holes_links_and_second_names_take_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(path.join("a/b/file"), path.join("again")).unwrap();
        fs::File::create(path.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/usr", path.join("link")).unwrap();
        let size = size(path);
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&size), "{size}");
    }
}
