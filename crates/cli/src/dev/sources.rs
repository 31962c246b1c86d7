//! The files of a project, and whether they changed.
//!
//! They are looked at a few times a second. That costs a project of a hundred files next to nothing, loses nothing when an
//! editor replaces files or folders, and works on every file system, mounted ones included; inotify has none of the three.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use super::course::Event;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(300);
/// More files than this are not looked at.
const FILES_MAX: usize = 10_000;
/// The files and folders that make the program.
const CODE: [&str; 3] = ["Cargo.toml", "build.rs", "src"];
/// The folder of samples.
pub(crate) const SAMPLES: &str = "samples";

/// When each file was changed, and its length.
type Look = BTreeMap<PathBuf, (SystemTime, u64)>;

/// Tells of changes for as long as somebody listens.
pub(crate) async fn watch(root: PathBuf, events: mpsc::Sender<Event>) {
    let look = move |root: &Path| (look(root, &CODE), look(root, &[SAMPLES]));
    let (mut code, mut samples) = look(&root);
    while !events.is_closed() {
        tokio::time::sleep(LOOK).await;
        let place = root.clone();
        let Ok((new_code, new_samples)) = tokio::task::spawn_blocking(move || look(&place)).await else { return };
        if new_code != code && events.send(Event::SourcesChanged).await.is_err() {
            return;
        }
        if new_samples != samples && events.send(Event::SamplesChanged).await.is_err() {
            return;
        }
        (code, samples) = (new_code, new_samples);
    }
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
}
