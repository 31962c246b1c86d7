//! A place in which images are unpacked, with things around it that nobody may touch.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::image::{Budget, ImageStore, Record, add_archive};

/// What an image may become here; small, so that no input takes long.
pub(super) const BUDGET: Budget = Budget { bytes: 1 << 20, entries: 2000 };
/// Where temporary files are in memory.
const MEMORY: &str = "/dev/shm";

/// The place: `outside` has files, `store` is where images go.
pub(super) struct Ground {
    folder: TempDir,
    before: BTreeMap<PathBuf, State>,
}

/// What is to be seen of a file.
#[derive(Debug, PartialEq, Eq)]
struct State {
    mode: u32,
    owner: (u32, u32),
    links: u64,
    content: Option<Vec<u8>>,
}

impl Ground {
    pub(super) fn new() -> Self {
        let memory = Path::new(MEMORY);
        let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let folder = made.expect("a directory can be made");
        let outside = folder.path().join("outside");
        let filled = fs::create_dir_all(outside.join("directory"))
            .and_then(|()| fs::create_dir(folder.path().join("store")))
            .and_then(|()| fs::write(outside.join("file"), "secret"))
            .and_then(|()| symlink("file", outside.join("link")));
        filled.expect("the directory can be filled");
        let before = states(&outside);
        Self { folder, before }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds an archive to the store twice and checks what must hold, whether that was possible or not.
    pub(super) fn add(&self, archive: &[u8]) {
        let path = self.path().join("archive");
        fs::write(&path, archive).expect("the archive can be written");
        let store = ImageStore::new(self.path().join("store"));
        let added = add_archive(&store, &path, BUDGET);
        self.check();
        let Ok(record) = added else {
            assert!(fs::read_dir(store.content("")).map_or(0, Iterator::count) == 0, "a failure leaves an image");
            return;
        };
        whole(&store, &record);
        let again = add_archive(&store, &path, BUDGET).expect("what was added can be added again");
        assert_eq!((again.id, again.config), (record.id, record.config), "the same archive is the same image");
        self.check();
    }

    /// Nothing was touched outside of the store, and nothing unfinished is left in it.
    fn check(&self) {
        assert_eq!(states(&self.path().join("outside")), self.before, "something outside was changed");
        assert_eq!(names(self.path()), ["archive", "outside", "store"], "something was left beside the store");
        let store = names(&self.path().join("store"));
        assert!(store.iter().all(|name| name == "building" || name == "content"), "the store has {store:?}");
        assert_eq!(names(&self.path().join("store/building")), [""; 0], "something unfinished was left");
    }
}

/// The image is complete, within its budget, and has no file that is also somewhere else.
fn whole(store: &ImageStore, record: &Record) {
    let content = store.content(&record.id);
    assert_eq!(names(&content), ["rootfs"]);
    let (mut bytes, mut entries) = (0, 0);
    let mut links: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    visit(&content.join("rootfs"), &mut |path, found| {
        let kind = found.file_type();
        let special = kind.is_block_device() || kind.is_char_device() || kind.is_fifo() || kind.is_socket();
        assert!(!special, "{} is no file", path.display());
        entries += 1;
        if !kind.is_dir() {
            let (seen, _) = links.entry(found.ino()).or_insert((0, found.nlink()));
            *seen += 1;
            bytes += if *seen == 1 && kind.is_file() { found.size() } else { 0 };
        }
    });
    assert!(bytes <= BUDGET.bytes, "{bytes} bytes");
    // An entry of an archive may need directories that no other entry makes.
    assert!(entries <= BUDGET.entries * 256, "{entries} entries");
    assert!(links.values().all(|(seen, links)| seen == links), "a file is also outside: {links:?}");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn states(folder: &Path) -> BTreeMap<PathBuf, State> {
    let mut states = BTreeMap::new();
    visit(folder, &mut |path, found| {
        let content = found.is_file().then(|| fs::read(path).expect("the file can be read"));
        let (mode, owner, links) = (found.mode(), (found.uid(), found.gid()), found.nlink());
        states.insert(path.to_owned(), State { mode, owner, links, content });
    });
    states
}

fn visit(path: &Path, seen: &mut dyn FnMut(&Path, &Metadata)) {
    let found = fs::symlink_metadata(path).expect("what is there can be looked at");
    seen(path, &found);
    if found.is_dir() {
        for entry in fs::read_dir(path).expect("a directory can be read") {
            visit(&entry.expect("a directory can be read").path(), seen);
        }
    }
}
