//! Places inside of a volume, whose content nobody trusts: links in it cannot lead out, not even when they change while
//! they are followed.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::OpenTreeFlags;

/// Opens what `path` names inside of `volume`, for its place alone.
pub(crate) fn open(volume: &Path, path: &Path) -> io::Result<OwnedFd> {
    open_at(&top(volume)?, path).map_err(|error| match error {
        Errno::NOENT => io::Error::other("it is not there"),
        error => explain(error),
    })
}

/// Opens what `path` names inside of `volume` as a tree that can be mounted.
pub(crate) fn open_tree(volume: &Path, path: &Path) -> io::Result<OwnedFd> {
    let place = open(volume, path)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(rustix::mount::open_tree(&place, "", flags)?)
}

/// Makes the directories that `path` is missing inside of `volume`; whatever is there already stays as it is.
pub(crate) fn make(volume: &Path, path: &Path) -> io::Result<()> {
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(explain(Errno::XDEV));
    }
    let top = top(volume)?;
    let mut made = PathBuf::new();
    for part in path.components() {
        let parent = made.clone();
        made.push(part);
        match open_at(&top, &made) {
            Err(Errno::NOENT) => {}
            Err(error) => return Err(explain(error)),
            Ok(_) => continue,
        }
        let parent = if parent.as_os_str().is_empty() { ".".into() } else { parent };
        let parent = open_at(&top, &parent).map_err(explain)?;
        match rustix::fs::mkdirat(&parent, part.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(explain(error)),
        }
    }
    open_at(&top, path).map(drop).map_err(explain)
}

fn top(volume: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, volume, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn open_at(top: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(top, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), rules)
}

fn explain(error: Errno) -> io::Error {
    match error {
        Errno::XDEV => io::Error::other("it leads out of the volume"),
        // A link that leads nowhere is there, and not.
        Errno::NOENT => io::Error::other("a link on the way leads nowhere"),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_opened_or_made_outside() {
        let dir = tempfile::tempdir().unwrap();
        let (volume, outside) = (dir.path().join("volume"), dir.path().join("outside"));
        fs::create_dir_all(volume.join("data")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        symlink(&outside, volume.join("absolute")).unwrap();
        symlink("../outside", volume.join("relative")).unwrap();
        symlink("data", volume.join("good")).unwrap();
        symlink("missing", volume.join("dangling")).unwrap();
        for path in ["absolute", "absolute/new", "relative", "relative/new/more", "../outside", "/etc"] {
            let error = make(&volume, Path::new(path)).unwrap_err().to_string();
            assert_eq!(error, "it leads out of the volume", "{path}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert!(make(&volume, Path::new("dangling")).is_err());
        for path in ["good/new", "fresh/and/deep", "data"] {
            make(&volume, Path::new(path)).unwrap();
            open(&volume, Path::new(path)).unwrap();
        }
        assert!(volume.join("data/new").is_dir() && volume.join("fresh/and/deep").is_dir());
    }
}
