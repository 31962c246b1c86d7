//! Bundles on disk: a folder, or a tar archive whose bytes depend on nothing but the bundle.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::reader::BundleError;
use super::{BUNDLE_BYTES_MAX, Bundle, DESCRIPTION, FILE_BYTES_MAX, FILES_MAX};

/// The ending of an archive's name.
const ENDING: &str = "tar";

impl Bundle {
    /// The bundle as a tar archive.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, bytes) in self.all_files() {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            // Neither when nor by whom it was made.
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            archive.append_data(&mut header, path, bytes.as_slice()).expect("memory takes what is written");
        }
        archive.into_inner().expect("memory takes what is written")
    }

    /// Writes the bundle to a file that ends in `.tar`, or into a folder. A bundle that is there is replaced.
    ///
    /// # Errors
    /// When it cannot be written, and when there is something that is no bundle.
    pub fn write(&self, path: &Path) -> Result<(), BundleError> {
        if is_archive(path) {
            return fs::write(path, self.archive()).map_err(failed("write", path));
        }
        let is_used = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            // Only what is a bundle is replaced, and only the files that it names.
            let old = Self::read(path).map_err(|_| BundleError::Foreign(path.to_owned()))?;
            for file in old.files.keys() {
                let file = path.join(file);
                fs::remove_file(&file).map_err(failed("remove", &file))?;
            }
        }
        for (name, bytes) in self.all_files() {
            let file = path.join(name);
            let parent = file.parent().unwrap_or(path);
            fs::create_dir_all(parent).map_err(failed("write", parent))?;
            fs::write(&file, bytes).map_err(failed("write", &file))?;
        }
        Ok(())
    }
}

/// The files of a bundle by path.
pub(super) fn load(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let files = if is_archive(path) { load_archive(path)? } else { load_folder(path)? };
    if files.contains_key(DESCRIPTION) { Ok(files) } else { Err(BundleError::NotABundle(path.to_owned())) }
}

fn load_archive(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let file = fs::File::open(path).map_err(failed("read", path))?;
    let mut archive = tar::Archive::new(file.take(2 * BUNDLE_BYTES_MAX));
    let mut loaded = Loaded::new(path);
    for entry in archive.entries().map_err(failed("read", path))? {
        let mut entry = entry.map_err(failed("read", path))?;
        let name = entry.path().map_err(failed("read", path))?.into_owned();
        if entry.header().entry_type().is_dir() {
            continue;
        }
        if !entry.header().entry_type().is_file() {
            return Err(BundleError::BadPath { bundle: path.to_owned(), path: name });
        }
        loaded.add(&name, &mut entry)?;
    }
    Ok(loaded.files)
}

fn load_folder(path: &Path) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut loaded = Loaded::new(path);
    let mut pending = vec![PathBuf::new()];
    while let Some(folder) = pending.pop() {
        let here = path.join(&folder);
        for entry in fs::read_dir(&here).map_err(failed("read", &here))? {
            let entry = entry.map_err(failed("read", &here))?;
            let (name, kind) = (folder.join(entry.file_name()), entry.file_type().map_err(failed("read", &here))?);
            if kind.is_dir() {
                pending.push(name);
            } else if kind.is_file() {
                let mut file = fs::File::open(entry.path()).map_err(failed("read", &entry.path()))?;
                loaded.add(&name, &mut file)?;
            } else {
                return Err(BundleError::BadPath { bundle: path.to_owned(), path: name });
            }
        }
        if pending.len() > FILES_MAX {
            return Err(BundleError::TooLarge(path.to_owned()));
        }
    }
    Ok(loaded.files)
}

/// Files on their way in, with what was taken of the limits.
struct Loaded<'a> {
    bundle: &'a Path,
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
}

impl<'a> Loaded<'a> {
    fn new(bundle: &'a Path) -> Self {
        Self { bundle, files: BTreeMap::new(), bytes: 0 }
    }

    fn add(&mut self, name: &Path, content: &mut dyn Read) -> Result<(), BundleError> {
        let is_plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        let text = name.to_str().filter(|_| is_plain && name.components().next().is_some());
        let bad = || BundleError::BadPath { bundle: self.bundle.to_owned(), path: name.to_owned() };
        let text = text.ok_or_else(bad)?.to_owned();
        let mut bytes = Vec::new();
        content.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed("read", self.bundle))?;
        self.bytes += bytes.len() as u64;
        let is_large = bytes.len() as u64 > FILE_BYTES_MAX || self.bytes > BUNDLE_BYTES_MAX;
        if is_large || self.files.len() >= FILES_MAX {
            return Err(BundleError::TooLarge(self.bundle.to_owned()));
        }
        match self.files.insert(text, bytes) {
            None => Ok(()),
            Some(_) => Err(BundleError::BadPath { bundle: self.bundle.to_owned(), path: name.to_owned() }),
        }
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == ENDING)
}

fn failed(verb: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> BundleError + use<> {
    let path = path.to_owned();
    move |source| BundleError::File { verb, path, source }
}
