//! The files that COPY copies: from the folder beside the file with the instructions, or from another stage.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

use super::glob::{Ignored, Pattern};
use crate::image::layer::{self, Budget};
use crate::sandbox::resolve;

const IGNORE_FILE: &str = ".dockerignore";
/// The largest file of patterns that is read.
const IGNORE_BYTES_MAX: u64 = 1 << 20;

/// A folder that files are copied from.
#[derive(Debug)]
pub(super) struct Context {
    root: PathBuf,
    ignored: Ignored,
}

/// What is copied, and how it arrives.
#[derive(Debug)]
pub(super) struct Copy {
    /// Paths or patterns in the context.
    pub(super) sources: Vec<String>,
    /// An absolute path in the image; with a slash at its end it is a folder.
    pub(super) destination: String,
    /// User and group.
    pub(super) owner: (u32, u32),
    /// The mode of files, if not their own.
    pub(super) mode: Option<u32>,
}

impl Context {
    /// A folder of the user's, without what its `.dockerignore` leaves out.
    pub(super) fn open(root: &Path) -> Result<Self, String> {
        let path = root.join(IGNORE_FILE);
        let mut text = String::new();
        let ignored = match File::open(&path) {
            Ok(file) => {
                let read = file.take(IGNORE_BYTES_MAX).read_to_string(&mut text);
                read.map_err(|error| format!("{}: {error}", path.display()))?;
                Ignored::parse(&text).map_err(|(line, problem)| format!("{}:{line}: {problem}", path.display()))?
            }
            Err(_) => Ignored::default(),
        };
        Ok(Self { root: root.to_owned(), ignored })
    }

    /// The files of another image or stage.
    pub(super) fn of_image(rootfs: &Path) -> Self {
        Self { root: rootfs.to_owned(), ignored: Ignored::default() }
    }

    /// Copies files into an image; `scratch` is for what comes in between.
    pub(super) fn copy(&self, copy: &Copy, rootfs: &Path, budget: &mut Budget, scratch: &Path) -> Result<(), String> {
        let sources = self.sources(&copy.sources, budget.entries)?;
        let destination = copy.destination.trim_matches('/');
        let is_folder = copy.destination.ends_with('/') || is_directory(rootfs, Path::new(destination));
        if sources.len() > 1 && !is_folder {
            return Err(format!(
                "there are {} sources: the destination must be a folder and end with a slash",
                sources.len()
            ));
        }
        let mut entries = Vec::new();
        for source in sources {
            self.entries(&source, Path::new(destination), is_folder, &mut entries)?;
        }
        entries.sort();
        let archive = tempfile::tempfile_in(scratch).map_err(|error| format!("create a file: {error}"))?;
        let mut archive = pack(archive, rootfs, &entries, copy)?;
        let unpacked = archive.rewind().and_then(|()| layer::unpack(BufReader::new(archive), rootfs, budget));
        unpacked.map_err(|error| error.to_string())
    }

    /// The paths that sources mean.
    fn sources(&self, wanted: &[String], limit: u64) -> Result<BTreeSet<PathBuf>, String> {
        let mut found = BTreeSet::new();
        for text in wanted {
            let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
            if parts.contains(&"..") {
                return Err(format!("{text:?} leads out of the folder that is built from"));
            }
            let path = parts.join("/");
            if Pattern::is_plain(&path) {
                let resolved = resolve(&self.root, Path::new(&path)).map_err(|error| format!("{text:?}: {error}"))?;
                let kind = fs::symlink_metadata(self.root.join(&resolved));
                let kind = kind.map_err(|_| format!("{text:?} is not in {}", self.root.display()))?;
                if !kind.is_dir() && self.ignored.has(&path) {
                    return Err(format!("{text:?} is left out by {IGNORE_FILE}"));
                }
                found.insert(resolved);
                continue;
            }
            let pattern = Pattern::parse(&path)?;
            let before = found.len();
            let all = self.below(Path::new(""), limit)?;
            found.extend(all.into_iter().filter(|path| path.to_str().is_some_and(|path| pattern.matches(path))));
            if found.len() == before {
                return Err(format!("no file in {} fits {text:?}", self.root.display()));
            }
        }
        Ok(found)
    }

    /// Everything below a folder of the context that is not left out.
    fn below(&self, folder: &Path, limit: u64) -> Result<Vec<PathBuf>, String> {
        let mut found = Vec::new();
        let mut left = vec![folder.to_owned()];
        while let Some(folder) = left.pop() {
            let place = self.root.join(&folder);
            for entry in fs::read_dir(&place).map_err(|error| format!("{}: {error}", place.display()))? {
                let entry = entry.map_err(|error| format!("{}: {error}", place.display()))?;
                let path = folder.join(entry.file_name());
                let out = self.ignored.has(&path.to_string_lossy());
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && (!out || self.ignored.has_exceptions()) {
                    left.push(path.clone());
                }
                if !out {
                    found.push(path);
                }
                if found.len() as u64 > limit {
                    return Err(format!("{} has too many files", self.root.display()));
                }
            }
        }
        Ok(found)
    }

    /// Where a source and everything in it arrives: path in the image, path here.
    fn entries(
        &self,
        source: &Path,
        destination: &Path,
        is_folder: bool,
        entries: &mut Vec<(PathBuf, PathBuf)>,
    ) -> Result<(), String> {
        if !self.root.join(source).is_dir() {
            let name = source.file_name().filter(|_| is_folder || destination.as_os_str().is_empty());
            let place = name.map_or_else(|| destination.to_owned(), |name| destination.join(name));
            entries.push((place, self.root.join(source)));
            return Ok(());
        }
        // The content of a folder is copied, not the folder.
        entries.push((destination.to_owned(), self.root.join(source)));
        for path in self.below(source, u64::MAX)? {
            let inside = path.strip_prefix(source).unwrap_or(&path);
            entries.push((destination.join(inside), self.root.join(&path)));
        }
        Ok(())
    }
}

fn is_directory(rootfs: &Path, path: &Path) -> bool {
    resolve(rootfs, path).is_ok_and(|path| rootfs.join(path).is_dir())
}

/// Writes an archive of what is copied, the same one every time.
fn pack(file: File, rootfs: &Path, entries: &[(PathBuf, PathBuf)], copy: &Copy) -> Result<File, String> {
    let mut archive = Builder::new(file);
    let mut made = BTreeSet::new();
    for (place, source) in entries {
        let parents: Vec<&Path> = place.ancestors().skip(1).filter(|parent| parent.file_name().is_some()).collect();
        for parent in parents.into_iter().rev() {
            if made.insert(parent.to_owned()) && !is_directory(rootfs, parent) {
                let packed = append_directory(&mut archive, parent, copy.owner, 0o755);
                packed.map_err(|error| format!("{}: {error}", parent.display()))?;
            }
        }
        let is_new = made.insert(place.clone()) && !is_directory(rootfs, place);
        append(&mut archive, place, source, (copy, is_new))
            .map_err(|error| format!("{}: {error}", source.display()))?;
    }
    let mut file = archive.into_inner().map_err(|error| error.to_string())?;
    file.flush().map_err(|error| error.to_string())?;
    Ok(file)
}

fn append(archive: &mut Builder<File>, place: &Path, source: &Path, (copy, is_new): (&Copy, bool)) -> io::Result<()> {
    let found = fs::symlink_metadata(source)?;
    let mode = found.permissions().mode() & 0o7777;
    if found.is_dir() {
        // A folder that is there already keeps its mode.
        return if is_new { append_directory(archive, place, copy.owner, mode) } else { Ok(()) };
    }
    let mut header = header(copy.owner, copy.mode.unwrap_or(mode));
    if found.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        return archive.append_link(&mut header, place, fs::read_link(source)?);
    }
    if !found.is_file() {
        return Err(io::Error::other("it is no file, folder or link"));
    }
    header.set_size(found.len());
    archive.append_data(&mut header, place, File::open(source)?.take(found.len()))
}

fn append_directory(archive: &mut Builder<File>, place: &Path, owner: (u32, u32), mode: u32) -> io::Result<()> {
    if place.as_os_str().is_empty() {
        return Ok(());
    }
    let mut header = header(owner, mode);
    header.set_entry_type(EntryType::Directory);
    archive.append_data(&mut header, place, io::empty())
}

fn header((uid, gid): (u32, u32), mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_uid(uid.into());
    header.set_gid(gid.into());
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_size(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        dir
    }

    /// What is in an image after one COPY into it, or why it is not.
    fn copied(context: &Path, sources: &[&str], destination: &str) -> Result<Vec<String>, String> {
        let image = tempfile::tempdir().unwrap();
        fs::create_dir(image.path().join("there")).unwrap();
        let sources = sources.iter().map(|&source| source.to_owned()).collect();
        let copy = Copy { sources, destination: destination.to_owned(), owner: (0, 0), mode: None };
        Context::open(context)?.copy(&copy, image.path(), &mut Budget::default(), image.path())?;
        let mut files = Context::of_image(image.path()).below(Path::new(""), 100)?;
        files.retain(|file| !image.path().join(file).is_dir());
        files.sort();
        Ok(files.into_iter().map(|file| file.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn files_arrive_where_dockerfiles_say() {
        let dir = context(&["a.txt", "b.txt", "d/e/f", "d/g"]);
        let check = |sources: &[&str], destination: &str, expect: &[&str]| {
            assert_eq!(copied(dir.path(), sources, destination).unwrap(), expect, "{sources:?} {destination}");
        };
        check(&["a.txt"], "/x", &["x"]);
        check(&["a.txt"], "/x/", &["x/a.txt"]);
        check(&["a.txt"], "/there", &["there/a.txt"]);
        check(&["*.txt"], "/x/", &["x/a.txt", "x/b.txt"]);
        check(&["d"], "/x", &["x/e/f", "x/g"]);
        check(&["."], "/x/y/", &["x/y/a.txt", "x/y/b.txt", "x/y/d/e/f", "x/y/d/g"]);
        check(&["/d/g", "a.txt"], "/there/", &["there/a.txt", "there/g"]);
    }

    #[test]
    fn what_is_left_out_or_outside_is_not_copied() {
        let dir = context(&["keep", "secret", "node_modules/x"]);
        fs::write(dir.path().join(".dockerignore"), "secret\nnode_modules\n.dockerignore\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(copied(dir.path(), &["."], "/").unwrap(), ["keep", "link"]);
        let check = |source: &str, problem: &str| {
            let error = copied(dir.path(), &[source], "/x").unwrap_err();
            assert!(error.contains(problem), "{source}: {error}");
        };
        check("secret", "left out by .dockerignore");
        check("../other", "leads out");
        check("missing", "is not in");
        check("*.none", "no file in");
        check("link", "is not in");
        check("[", "bracket");
        let many = copied(dir.path(), &["keep", "link"], "/x").unwrap_err();
        assert!(many.contains("end with a slash") || many.contains("is not in"), "{many}");
    }
}
