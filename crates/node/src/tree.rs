//! Removal of directory trees that containers wrote: closed to their owner, full of pipes, or deeper than any path.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Names that are read at once: a directory may have more than memory should hold.
const NAMES_MAX: usize = 4096;
/// Directories that are open at once.
const DEPTH_MAX: usize = 64;
/// How often a directory that others fill is emptied again.
const ATTEMPTS_MAX: usize = 16;

/// A directory that is being emptied.
struct Frame {
    directory: OwnedFd,
    /// Its name in the one above.
    name: CString,
    /// What of it was read and is left.
    names: Vec<(CString, bool)>,
    attempts: usize,
}

/// Removes a tree, whatever modes its directories have; one that is not there is no error, and somebody else may remove
/// it at the same time.
///
/// Needs few descriptors and no stack, however deep the tree is: what is too deep is moved to its top. Links in it are
/// removed, never followed.
///
/// # Errors
/// What the file system says of the first thing that cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    let name = CString::new(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))?;
    let mut frames: Vec<Frame> = Frame::open(CWD, name)?.into_iter().collect();
    let mut moved = 0;
    while let Some(frame) = frames.last_mut() {
        match frame.next()? {
            Some((name, false)) => gone(rustix::fs::unlinkat(&frame.directory, &name, AtFlags::empty()))?,
            Some((name, true)) => {
                if rustix::fs::unlinkat(&frame.directory, &name, AtFlags::REMOVEDIR).is_ok() {
                    continue;
                }
                let Some(inner) = Frame::open(&frame.directory, name)? else { continue };
                if frames.len() < DEPTH_MAX {
                    frames.push(inner);
                } else if let [top, .., parent] = frames.as_slice() {
                    move_up(&parent.directory, &inner.name, &top.directory, &mut moved)?;
                }
            }
            None => leave(&mut frames)?,
        }
    }
    Ok(())
}

impl Frame {
    /// Opens a directory, if it is there; one that not even its owner may read is opened up, as writable layers leave
    /// such.
    fn open(parent: impl AsFd, name: CString) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => {
                gone(rustix::fs::chmodat(&parent, &name, Mode::RWXU, AtFlags::empty()))?;
                rustix::fs::openat(&parent, &name, flags, Mode::empty())
            }
            other => other,
        };
        let directory = match opened {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        let _ = rustix::fs::fchmod(&directory, Mode::RWXU);
        Ok(Some(Self { directory, name, names: Vec::new(), attempts: 0 }))
    }

    /// Something that is still in it.
    fn next(&mut self) -> io::Result<Option<(CString, bool)>> {
        if self.names.is_empty() {
            self.names = some_names(&self.directory)?;
        }
        Ok(self.names.pop())
    }
}

/// Removes the innermost directory, which is empty.
fn leave(frames: &mut Vec<Frame>) -> io::Result<()> {
    let removed = match frames.as_slice() {
        [.., parent, last] => rustix::fs::unlinkat(&parent.directory, &last.name, AtFlags::REMOVEDIR),
        [last] => rustix::fs::unlinkat(CWD, &last.name, AtFlags::REMOVEDIR),
        [] => Ok(()),
    };
    match (removed, frames.last_mut()) {
        // Somebody else put something into it.
        (Err(Errno::NOTEMPTY | Errno::EXIST), Some(last)) if last.attempts < ATTEMPTS_MAX => last.attempts += 1,
        (removed, _) => {
            gone(removed)?;
            frames.pop();
        }
    }
    Ok(())
}

fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match rustix::fs::renameat(from, name, top, format!("..removed-{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            result => return gone(result),
        }
    }
}

/// What is not there any more needs no removal.
fn gone(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => Ok(other?),
    }
}

/// Names in a directory, and which of them are directories.
fn some_names(directory: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        names.push((entry.file_name().to_owned(), kind == FileType::Directory));
        if names.len() == NAMES_MAX {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn closed_directories_go_too() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("closed/inner/innermost")).unwrap();
        fs::set_permissions(tree.join("closed/inner"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(tree.join("closed"), Permissions::from_mode(0o000)).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        remove(&tree).unwrap();
    }

    #[test]
    fn what_links_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, kept) = (dir.path().join("tree"), dir.path().join("kept"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(kept.join("inner")).unwrap();
        std::os::unix::fs::symlink(&kept, tree.join("link")).unwrap();
        std::os::unix::fs::symlink(&kept, tree.join("..removed-1")).unwrap();
        fs::create_dir_all(tree.join("a/".repeat(3 * DEPTH_MAX))).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists() && kept.join("inner").is_dir());
    }

    #[test]
    fn a_tree_deeper_than_any_path_or_stack_goes() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let name = c"a-name-that-makes-a-thousand-of-it-too-long";
        let open = |parent: &OwnedFd, name: &CStr| Frame::open(parent, name.to_owned()).unwrap().unwrap().directory;
        let mut directory = Frame::open(CWD, CString::new(tree.to_str().unwrap()).unwrap()).unwrap().unwrap().directory;
        for _ in 0..1_000 {
            rustix::fs::mkdirat(&directory, name, Mode::RWXU).unwrap();
            directory = open(&directory, name);
        }
        drop(directory);
        // Less stack than a frame per level would need.
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let path = tree.clone();
        small.spawn(move || remove(&path)).unwrap().join().unwrap().unwrap();
        assert!(!tree.exists());
    }
}
