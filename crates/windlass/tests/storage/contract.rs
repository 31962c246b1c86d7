//! What every storage keeps: one list of checks, each in a folder of its own.

use std::io::{self, Read};
use std::thread;

use windlass::backup::{BackupRecord, FORMAT_VERSION, Listing, Put, Storage, StorageError, remove, seal, stored};

/// A check of a storage, below a path.
pub(crate) type Check = fn(&dyn Storage, &str);

/// Longer than what goes as one request.
const LONG_BYTES: u64 = (32 << 20) + 4097;

/// All of them, with what they show.
pub(crate) const CHECKS: [(&str, Check); 9] = [
    ("what-is-there-is-kept", what_is_there_is_kept),
    ("empty-files-are-files", empty_files_are_files),
    ("long-files-are-kept-too", long_files_are_kept_too),
    ("what-is-cut-off-is-not-there", what_is_cut_off_is_not_there),
    ("of-two-writers-one-wins", of_two_writers_one_wins),
    ("all-of-a-large-folder-is-listed", all_of_a_large_folder_is_listed),
    ("deleting-takes-what-it-is-told-to", deleting_takes_what_it_is_told_to),
    ("no-path-leads-out", no_path_leads_out),
    ("a-backup-is-one-from-its-seal-on", a_backup_is_one_from_its_seal_on),
];

fn read(storage: &dyn Storage, path: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    storage.open(path).unwrap()?.read_to_end(&mut content).unwrap();
    Some(content)
}

fn put(storage: &dyn Storage, path: &str, content: &str) -> Result<Put, StorageError> {
    storage.put(path, &mut content.as_bytes())
}

/// Bytes that repeat nowhere near: parts that change places are seen.
fn long(seed: u64) -> impl Read {
    struct Numbers(u64, usize);
    impl Read for Numbers {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            for byte in buffer.iter_mut() {
                if self.1 == 0 {
                    self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                }
                *byte = self.0.to_le_bytes()[self.1];
                self.1 = (self.1 + 1) % 8;
            }
            Ok(buffer.len())
        }
    }
    Numbers(seed, 0).take(LONG_BYTES)
}

/// A content that breaks off with an error.
fn cut_off(content: impl Read) -> impl Read {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the source is gone"))
        }
    }
    content.chain(Broken)
}

fn what_is_there_is_kept(storage: &dyn Storage, top: &str) {
    let path = format!("{top}/a/b.gz");
    assert_eq!(read(storage, &path), None);
    assert_eq!(put(storage, &path, "one").unwrap(), Put::Written);
    assert_eq!(put(storage, &path, "one").unwrap(), Put::Identical);
    for other in ["two", "on", "ones", ""] {
        let refused = put(storage, &path, other).unwrap_err();
        assert!(matches!(refused, StorageError::Different(_)), "{refused}");
    }
    assert_eq!(read(storage, &path).unwrap(), b"one");
}

fn empty_files_are_files(storage: &dyn Storage, top: &str) {
    let path = format!("{top}/empty");
    assert_eq!(put(storage, &path, "").unwrap(), Put::Written);
    assert_eq!(put(storage, &path, "").unwrap(), Put::Identical);
    assert_eq!(read(storage, &path).unwrap(), b"");
}

fn long_files_are_kept_too(storage: &dyn Storage, top: &str) {
    let path = format!("{top}/long");
    assert_eq!(storage.put(&path, &mut long(1)).unwrap(), Put::Written);
    assert_eq!(storage.put(&path, &mut long(1)).unwrap(), Put::Identical);
    let refused = storage.put(&path, &mut long(2)).unwrap_err();
    assert!(matches!(refused, StorageError::Different(_)), "{refused}");
    let (there, mut expected) = (read(storage, &path).unwrap(), Vec::new());
    long(1).read_to_end(&mut expected).unwrap();
    assert!(there == expected, "{} bytes came back, {} were put", there.len(), expected.len());
}

fn what_is_cut_off_is_not_there(storage: &dyn Storage, top: &str) {
    storage.put(&format!("{top}/short"), &mut cut_off("some".as_bytes())).unwrap_err();
    storage.put(&format!("{top}/long"), &mut cut_off(long(1))).unwrap_err();
    assert_eq!(storage.list(top).unwrap(), Listing::default());
    for name in ["short", "long"] {
        assert_eq!(read(storage, &format!("{top}/{name}")), None);
        assert_eq!(put(storage, &format!("{top}/{name}"), "whole").unwrap(), Put::Written, "nothing is in its way");
    }
}

fn of_two_writers_one_wins(storage: &dyn Storage, top: &str) {
    for round in 0..10 {
        let path = format!("{top}/{round}");
        let words = ["one", "two", "three", "four"];
        let done = thread::scope(|scope| {
            let writers = words.map(|word| scope.spawn(|| put(storage, &path, word)));
            writers.map(|writer| writer.join().unwrap())
        });
        let winners: Vec<_> = words.iter().zip(&done).filter(|(_, put)| put.is_ok()).map(|(word, _)| *word).collect();
        assert_eq!(winners.len(), 1, "{done:?}");
        assert_eq!(read(storage, &path).unwrap(), winners[0].as_bytes());
    }
}

fn all_of_a_large_folder_is_listed(storage: &dyn Storage, top: &str) {
    let names: Vec<String> = (0..1005).map(|number| format!("{number:04}")).collect();
    thread::scope(|scope| {
        for part in names.chunks(252) {
            scope.spawn(move || {
                for name in part {
                    put(storage, &format!("{top}/many/{name}"), "").unwrap();
                }
            });
        }
    });
    assert_eq!(storage.list(&format!("{top}/many")).unwrap(), Listing { folders: vec![], files: names });
    assert_eq!(storage.list(top).unwrap().folders, ["many"]);
    storage.clear(&format!("{top}/many")).unwrap();
    assert_eq!(storage.list(top).unwrap(), Listing::default());
}

fn deleting_takes_what_it_is_told_to(storage: &dyn Storage, top: &str) {
    for name in ["a/b/c", "a/b/d/e", "a/bc/f", "a/g"] {
        put(storage, &format!("{top}/{name}"), name).unwrap();
    }
    storage.clear(&format!("{top}/a/b")).unwrap();
    storage.clear(&format!("{top}/a/b")).unwrap();
    let left = Listing { folders: vec!["bc".into()], files: vec!["g".into()] };
    assert_eq!(storage.list(&format!("{top}/a")).unwrap(), left);
    storage.delete(&format!("{top}/a/bc/f")).unwrap();
    storage.delete(&format!("{top}/a/bc/f")).unwrap();
    assert_eq!(storage.list(&format!("{top}/a")).unwrap(), Listing { folders: vec![], files: vec!["g".into()] });
}

fn no_path_leads_out(storage: &dyn Storage, _: &str) {
    for path in ["../a", "/etc/passwd", "a/../../b", ""] {
        assert!(matches!(put(storage, path, ""), Err(StorageError::Path(_))), "{path}");
        assert!(matches!(storage.open(path).err(), Some(StorageError::Path(_))), "{path}");
        assert!(matches!(storage.clear(path), Err(StorageError::Path(_))), "{path}");
    }
}

fn a_backup_is_one_from_its_seal_on(storage: &dyn Storage, top: &str) {
    let (old, new) = (record(top, "old", 1), record(top, "new", 2));
    for record in [&new, &old] {
        put(storage, &format!("{}/base.tar", record.location), "data").unwrap();
    }
    assert_eq!(stored(storage, top).unwrap().0, [], "files alone are what a crash left");
    seal(storage, &new).unwrap();
    seal(storage, &old).unwrap();
    put(storage, &format!("{top}/db/base/odd/backup.json"), "{}").unwrap();
    let (found, unreadable) = stored(storage, top).unwrap();
    assert_eq!((found, unreadable.len()), (vec![old.clone(), new], 1));
    remove(storage, &old.location).unwrap();
    remove(storage, &old.location).unwrap();
    assert_eq!(stored(storage, &format!("{top}/db")).unwrap().0.len(), 1);
    assert_eq!(stored(storage, &format!("{top}/nowhere")).unwrap().0, []);
}

fn record(top: &str, id: &str, day: u32) -> BackupRecord {
    let at = format!("2026-01-0{day}T00:00:00Z").parse().unwrap();
    BackupRecord {
        format_version: FORMAT_VERSION,
        id: id.into(),
        backup: "shop/nightly".into(),
        schedule: None,
        method: "copy".into(),
        started_at: at,
        completed_at: at,
        size_bytes: 4,
        location: format!("{top}/db/base/{id}"),
        application_version: "1".into(),
        taken_from: "db-1".into(),
        data_id: "7".into(),
        timeline: 1,
        begin: "0/1".into(),
        end: "0/2".into(),
        checksum: "sha256:0".into(),
        configuration: serde_json::json!({"instances": 1}),
    }
}
