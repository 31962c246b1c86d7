//! Mount points: directories and files that must exist before something is mounted there.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::beneath;
use super::root::{RootError, Step, open_in_root};
use super::spec::Source;

/// Links followed in one path before it is taken for a loop, as the kernel does.
const LINKS_MAX: usize = 40;

/// What a mount point has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
}

impl Kind {
    pub(crate) fn of(source: &Source) -> Self {
        match source {
            Source::Bind(path) if !path.is_dir() => Self::File,
            Source::Beneath { volume, path } if !is_directory(volume, path) => Self::File,
            Source::Bind(_) | Source::Beneath { .. } | Source::Memory(_) => Self::Directory,
        }
    }
}

fn is_directory(volume: &Path, path: &Path) -> bool {
    let found = beneath::open(volume, path).and_then(|place| Ok(rustix::fs::fstat(place)?));
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

/// Creates `target` in the writable layer if the image does not have it.
pub(crate) fn prepare(lower: &Path, upper: &Path, target: &Path, kind: Kind) -> Result<(), RootError> {
    let resolved = resolve(lower, target).step(|| format!("find {}", target.display()))?;
    if fs::symlink_metadata(lower.join(&resolved)).is_ok() {
        return Ok(());
    }
    let parents = match kind {
        Kind::Directory => resolved.as_path(),
        Kind::File => resolved.parent().unwrap_or(Path::new("")),
    };
    let mut directory = PathBuf::new();
    for part in parents.components() {
        directory.push(part);
        let made = upper.join(&directory);
        if made.is_dir() {
            continue;
        }
        fs::create_dir(&made).step(|| format!("create {}", made.display()))?;
        let mode = fs::metadata(lower.join(&directory)).map_or(0o755, |existing| existing.permissions().mode());
        fs::set_permissions(&made, Permissions::from_mode(mode)).step(|| format!("set up {}", made.display()))?;
    }
    if kind == Kind::File {
        let file = upper.join(&resolved);
        fs::write(&file, "").step(|| format!("create {}", file.display()))?;
    }
    Ok(())
}

/// Makes a directory that everyone may write to.
pub(crate) fn scratch_directory(path: &Path) -> Result<(), RootError> {
    fs::create_dir_all(path).step(|| format!("create {}", path.display()))?;
    fs::set_permissions(path, Permissions::from_mode(0o1777)).step(|| format!("set up {}", path.display()))
}

/// Opens a mount point in the tree built so far, creating what is missing.
pub(crate) fn open(root: &OwnedFd, target: &Path, kind: Kind) -> Result<OwnedFd, RootError> {
    create(root, target, kind).step(|| {
        format!("create the mount point {} (the image does not have it and cannot be changed there)", target.display())
    })?;
    open_in_root(root, target).step(|| format!("open the mount point {}", target.display()))
}

fn create(root: &OwnedFd, target: &Path, kind: Kind) -> Result<(), Errno> {
    let mut path = PathBuf::from("/");
    let parts: Vec<OsString> = normal_parts(target);
    for (index, part) in parts.iter().enumerate() {
        let parent = path.clone();
        path.push(part);
        if !matches!(open_in_root(root, &path), Err(Errno::NOENT)) {
            continue;
        }
        let parent = open_in_root(root, &parent)?;
        if kind == Kind::File && index + 1 == parts.len() {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&parent, part, flags, Mode::from_raw_mode(0o644))?;
        } else {
            rustix::fs::mkdirat(&parent, part, Mode::from_raw_mode(0o755))?;
        }
    }
    Ok(())
}

fn normal_parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        _ => None,
    });
    parts.collect()
}

/// Follows the links of `path` as a program whose root is `root` would; the result is relative to `root`.
pub(crate) fn resolve(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut pending: Vec<OsString> = normal_parts(path).into_iter().rev().collect();
    let mut resolved = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        if part == ".." {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&part);
        let Ok(link) = fs::read_link(root.join(&next)) else {
            resolved = next;
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        if link.is_absolute() {
            resolved = PathBuf::new();
        }
        for component in link.components().rev() {
            match component {
                Component::Normal(name) => pending.push(name.to_owned()),
                Component::ParentDir => pending.push("..".into()),
                _ => {}
            }
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_inside_the_root() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("run")).unwrap();
        fs::create_dir_all(root.path().join("var")).unwrap();
        symlink("/run", root.path().join("var/run")).unwrap();
        symlink("../run/../../../etc", root.path().join("var/up")).unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        let check = |path: &str, expect: &str| {
            assert_eq!(resolve(root.path(), Path::new(path)).unwrap(), Path::new(expect), "{path}");
        };
        check("/var/run/secrets/token", "run/secrets/token");
        check("/var/up/passwd", "etc/passwd");
        check("/../../etc/passwd", "etc/passwd");
        assert!(resolve(root.path(), Path::new("/loop/x")).is_err());
    }

    #[test]
    fn a_point_is_made_in_the_upper_layer_only_if_the_image_lacks_it() {
        let dir = tempfile::tempdir().unwrap();
        let (lower, upper) = (dir.path().join("lower"), dir.path().join("upper"));
        fs::create_dir_all(lower.join("etc")).unwrap();
        fs::create_dir_all(&upper).unwrap();
        prepare(&lower, &upper, Path::new("/etc"), Kind::Directory).unwrap();
        assert!(!upper.join("etc").exists());
        prepare(&lower, &upper, Path::new("/etc/hosts"), Kind::File).unwrap();
        assert!(upper.join("etc/hosts").is_file());
    }
}
