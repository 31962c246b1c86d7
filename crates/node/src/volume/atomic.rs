//! Writes a set of files so that a reader sees all of the old ones or all of the new ones.
//!
//! `..data` is a link to a directory with the files; each file's name is a link through it. Replacing that one link
//! replaces everything at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path};

const DATA: &str = "..data";
const DATA_NEXT: &str = "..data_tmp";

/// Files by relative path, with their modes.
pub(crate) type Files = BTreeMap<String, (Vec<u8>, u32)>;

/// Makes `directory` show exactly `files`; does nothing if it does already.
pub(crate) fn write(directory: &Path, files: &Files) -> io::Result<()> {
    for path in files.keys() {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || path.starts_with("..") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{path:?} is no path for a file of a volume"),
            ));
        }
    }
    fs::create_dir_all(directory)?;
    let old = fs::read_link(directory.join(DATA)).ok();
    if let Some(old) = &old
        && same(&directory.join(old), files)
    {
        return Ok(());
    }
    let version = format!("..{:016x}", rand::random::<u64>());
    let next = directory.join(&version);
    for (path, (content, mode)) in files {
        let file = next.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&next))?;
        fs::write(&file, content)?;
        fs::set_permissions(&file, Permissions::from_mode(*mode))?;
    }
    fs::create_dir_all(&next)?;
    let _ = fs::remove_file(directory.join(DATA_NEXT));
    symlink(&version, directory.join(DATA_NEXT))?;
    fs::rename(directory.join(DATA_NEXT), directory.join(DATA))?;
    link_names(directory, files)?;
    sweep(directory, &version)
}

fn same(data: &Path, files: &Files) -> bool {
    let matches = |(path, (content, mode)): (&String, &(Vec<u8>, u32))| {
        let file = data.join(path);
        let has_mode = fs::metadata(&file).is_ok_and(|found| found.permissions().mode() & 0o7777 == *mode);
        has_mode && fs::read(&file).is_ok_and(|found| found == *content)
    };
    count(data) == files.len() && files.iter().all(matches)
}

fn count(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

fn link_names(directory: &Path, files: &Files) -> io::Result<()> {
    let tops: BTreeSet<&str> = files.keys().filter_map(|path| path.split('/').next()).collect();
    for top in &tops {
        let link = directory.join(top);
        if fs::symlink_metadata(&link).is_err() {
            symlink(Path::new(DATA).join(top), link)?;
        }
    }
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !tops.contains(name.as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the versions before this one, also those that a crash left.
fn sweep(directory: &Path, version: &str) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("..") && name != DATA && name != version {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), 0o644))).collect()
    }

    #[test]
    fn all_files_change_at_once_and_nothing_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let read = |path: &str| fs::read_to_string(dir.path().join(path)).ok();
        write(dir.path(), &files(&[("a", "1"), ("sub/b", "1")])).unwrap();
        assert_eq!((read("a").as_deref(), read("sub/b").as_deref()), (Some("1"), Some("1")));
        let version = fs::read_link(dir.path().join(DATA)).unwrap();
        write(dir.path(), &files(&[("a", "1"), ("sub/b", "1")])).unwrap();
        assert_eq!(fs::read_link(dir.path().join(DATA)).unwrap(), version, "no change, no new version");
        write(dir.path(), &files(&[("a", "2"), ("c", "2")])).unwrap();
        assert_eq!((read("a").as_deref(), read("c").as_deref(), read("sub/b")), (Some("2"), Some("2"), None));
        assert!(!dir.path().join(version).exists());
    }

    #[test]
    fn a_path_out_of_the_volume_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "..data", "a/../../x"] {
            assert!(write(dir.path(), &files(&[(path, "1")])).is_err(), "{path}");
        }
    }
}
