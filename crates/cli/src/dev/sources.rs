//! The files of a project, and whether they changed.
//!
//! They are looked at a few times a second. That costs a project of a hundred files next to nothing, loses nothing when an
//! editor replaces files or folders, and works on every file system, mounted ones included; inotify has none of the three.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use super::course::Event;
use crate::scaffold::project::Project;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(300);
/// More files than this are not looked at.
const FILES_MAX: usize = 10_000;
/// The files and folders that make the program.
const CODE: [&str; 3] = ["Cargo.toml", "build.rs", "src"];
/// The folder of samples.
pub(crate) const SAMPLES: &str = "samples";

/// When each file was changed, and its length.
type Look = BTreeMap<PathBuf, Stamp>;
type Stamp = (SystemTime, u64);

/// Where to look.
#[derive(Clone, Debug)]
pub(crate) struct Sources {
    root: PathBuf,
    /// Where Cargo writes what the program was built from, and where it puts what it builds.
    listing: PathBuf,
    target: PathBuf,
}

impl Sources {
    pub(crate) fn of(project: &Project) -> Self {
        let listing = project.program().with_extension("d");
        Self { root: project.root.clone(), listing, target: project.target.clone() }
    }
}

/// What was seen at one time.
struct Sight {
    code: Look,
    samples: Look,
    listed: Listed,
}

impl Sight {
    fn of(sources: &Sources, before: Option<&Listed>) -> Self {
        let code = look(&sources.root, &CODE);
        let samples = look(&sources.root, &[SAMPLES]);
        Self { code, samples, listed: Listed::of(sources, before) }
    }
}

/// Tells of changes for as long as somebody listens.
pub(crate) async fn watch(sources: Sources, events: mpsc::Sender<Event>) {
    let mut before = Sight::of(&sources, None);
    while !events.is_closed() {
        tokio::time::sleep(LOOK).await;
        let sources = sources.clone();
        let looked = tokio::task::spawn_blocking(move || (Sight::of(&sources, Some(&before.listed)), before)).await;
        let Ok((now, past)) = looked else { return };
        let is_changed = now.code != past.code || now.listed.differs(&past.listed);
        if is_changed && events.send(Event::SourcesChanged).await.is_err() {
            return;
        }
        if now.samples != past.samples && events.send(Event::SamplesChanged).await.is_err() {
            return;
        }
        before = now;
    }
}

/// The files that the program was built from, as Cargo lists them: those of crates that are named by their path, too, and
/// whatever a build script asks to be watched.
#[derive(Debug, Default)]
struct Listed {
    /// The list itself.
    list: Option<Stamp>,
    /// Each file; none if it is not there.
    files: BTreeMap<PathBuf, Option<Stamp>>,
}

impl Listed {
    fn of(sources: &Sources, before: Option<&Self>) -> Self {
        let list = stamp(&sources.listing);
        let paths = match before.filter(|before| before.list == list) {
            Some(before) => before.files.keys().cloned().collect(),
            None => {
                with_manifests(inputs(&std::fs::read_to_string(&sources.listing).unwrap_or_default(), &sources.target))
            }
        };
        Self { list, files: paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect() }
    }

    /// Whether a file changed. One that was not in the list before has done so if it is newer than the list.
    fn differs(&self, before: &Self) -> bool {
        let built = self.list.map(|(changed, _)| changed);
        self.files.iter().any(|(path, now)| match before.files.get(path) {
            Some(past) => now != past,
            None => now.is_some_and(|(changed, _)| Some(changed) > built),
        })
    }
}

/// The files that a list of Cargo's names, without those that the build itself makes. It is one line, as make reads it:
/// `PROGRAM: FILE FILE …`, where a blank in a name has a backslash before it.
fn inputs(list: &str, target: &Path) -> Vec<PathBuf> {
    let files = list.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, files)| files);
    let mut paths = vec![String::new()];
    let mut letters = files.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&' ') => {
                paths.last_mut().into_iter().for_each(|path| path.extend(letters.next()))
            }
            ' ' => paths.push(String::new()),
            letter => paths.last_mut().into_iter().for_each(|path| path.push(letter)),
        }
    }
    let paths = paths.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from);
    paths.filter(|path| !path.starts_with(target)).take(FILES_MAX).collect()
}

/// The files, and the manifests of the crates that they belong to.
fn with_manifests(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let manifest =
        |folder: &&Path| folder.ancestors().map(|above| above.join("Cargo.toml")).find(|file| file.is_file());
    let manifests: BTreeSet<PathBuf> = folders.iter().filter_map(manifest).collect();
    files.extend(manifests);
    files
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn look(root: &Path, names: &[&str]) -> Look {
    let mut pending: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
    let mut seen = Look::new();
    while let Some(path) = pending.pop().filter(|_| seen.len() < FILES_MAX) {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            pending.extend(entries.filter(|entry| !is_hidden(&entry.path())).map(|entry| entry.path()));
        } else if let Ok(changed) = metadata.modified() {
            seen.insert(path, (changed, metadata.len()));
        }
    }
    seen
}

/// Editors keep what is not saved yet in such files.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.starts_with('#') || name.ends_with('~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_sees_code_and_not_what_editors_leave() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let before = look(root, &CODE);
        std::fs::create_dir_all(root.join("src/site")).unwrap();
        for name in ["src/lib.rs", "src/site/v1.rs", "src/.lib.rs.swp", "src/lib.rs~", "Cargo.toml", "notes.md"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let after = look(root, &CODE);
        let names: Vec<_> = after.keys().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["Cargo.toml", "src/lib.rs", "src/site/v1.rs"]);
        assert_ne!(before, after);
        std::fs::write(root.join("src/lib.rs"), "x").unwrap();
        assert_ne!(look(root, &CODE), after);
        assert!(look(root, &[SAMPLES]).is_empty());
    }

    #[test]
    fn a_list_names_files_and_what_the_build_made_is_left_out() {
        let list =
            "/t/debug/shop: /s/goods/src/lib.rs /s/my\\ shop/build.rs /t/debug/build/x/out/made.rs\n\n/other: /x\n";
        let expected = ["/s/goods/src/lib.rs", "/s/my shop/build.rs"].map(PathBuf::from);
        assert_eq!(inputs(list, Path::new("/t")), expected);
        assert_eq!(inputs("", Path::new("/t")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_change_of_a_crate_beside_the_project_is_seen_and_a_new_list_alone_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (goods, listing) = (dir.path().join("goods"), dir.path().join("target/debug/shop.d"));
        std::fs::create_dir_all(goods.join("src")).unwrap();
        std::fs::create_dir_all(dir.path().join("target/debug")).unwrap();
        for file in ["Cargo.toml", "src/lib.rs", "src/more.rs"] {
            std::fs::write(goods.join(file), "").unwrap();
        }
        let sources =
            Sources { root: dir.path().join("shop"), listing: listing.clone(), target: dir.path().join("target") };
        let list = |files: &[&str]| {
            let files: Vec<String> = files.iter().map(|file| goods.join(file).display().to_string()).collect();
            std::fs::write(&listing, format!("shop: {}\n", files.join(" "))).unwrap();
        };
        let never_built = Listed::of(&sources, None);
        list(&["src/lib.rs"]);
        let built = Listed::of(&sources, Some(&never_built));
        assert!(!built.differs(&never_built), "what was built is not built again");
        for file in ["src/lib.rs", "Cargo.toml"] {
            let before = Listed::of(&sources, Some(&built));
            std::fs::write(goods.join(file), format!("# {file}")).unwrap();
            assert!(Listed::of(&sources, Some(&before)).differs(&before), "{file}");
        }
        let before = Listed::of(&sources, Some(&built));
        list(&["src/lib.rs", "src/more.rs"]);
        let after = Listed::of(&sources, Some(&before));
        assert!(!after.differs(&before), "one more file was built");
        assert_eq!(after.files.len(), 3);
        std::fs::remove_file(goods.join("src/more.rs")).unwrap();
        assert!(Listed::of(&sources, Some(&after)).differs(&after), "a file is gone");
    }
}
