//! What was acknowledged outlives the process, however it ends.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the point of a test")]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use windlass_store::{CommitError, OpenError, Revision, Store, Write};

const STORE: &str = "WINDLASS_STORE_TEST_FILE";
const ACKNOWLEDGED_BEFORE_KILL: usize = 200;

#[tokio::test]
async fn a_restart_restores_entries_and_revision() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store");
    let (entry, revision) = {
        let store = Store::open(&file).unwrap();
        let created = store.commit(vec![Write::create("/a", "1")]).await.unwrap();
        store.commit(vec![Write::update("/a", created, "2")]).await.unwrap();
        let other = store.commit(vec![Write::create("/b", "1")]).await.unwrap();
        store.commit(vec![Write::delete("/b", other)]).await.unwrap();
        (store.snapshot().get("/a").unwrap().clone(), store.revision())
    };
    let store = Store::open(&file).unwrap();
    assert_eq!(store.revision(), revision);
    assert_eq!(store.snapshot().get("/a"), Some(&entry));
    assert!(store.snapshot().get("/b").is_none());
    assert!(store.watch("/", Revision(revision.0 - 1)).is_err(), "the past before a restart is gone, not empty");
    assert_eq!(store.commit(vec![Write::create("/b", "2")]).await.unwrap(), Revision(revision.0 + 1));
}

#[tokio::test]
async fn a_closed_store_lets_go_of_its_file_and_refuses_commits() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store");
    let store = Store::open(&file).unwrap();
    store.commit(vec![Write::create("/a", "1")]).await.unwrap();
    store.close().await;
    store.close().await;
    assert!(matches!(store.commit(vec![Write::create("/b", "1")]).await, Err(CommitError::Closed)));
    assert!(store.snapshot().get("/a").is_some());
    assert!(Store::open(&file).unwrap().snapshot().get("/a").is_some());
}

/// Not a test of its own: the process that the next test kills.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_writes_until_killed() {
    let Ok(file) = std::env::var(STORE) else { return };
    let store = Store::open(file).unwrap();
    let writers = (0..4).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0_u64.. {
                let key = format!("/{writer}/{number}");
                let revision = store.commit(vec![Write::create(&key, "x".repeat(500))]).await.unwrap();
                println!("acknowledged {key} {revision}");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

fn acknowledged_until_killed(file: &Path) -> HashMap<String, Revision> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_until_killed", "--nocapture"])
        .env(STORE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = HashMap::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The last line may be cut in the middle.
        if let ["acknowledged", key, revision] = line.split(' ').collect::<Vec<_>>()[..]
            && let Ok(revision) = revision.parse()
        {
            acknowledged.insert(key.to_owned(), Revision(revision));
        }
        if acknowledged.len() == ACKNOWLEDGED_BEFORE_KILL {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}

#[test]
fn every_acknowledged_write_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let file = dir.path().join(round.to_string());
        let acknowledged = acknowledged_until_killed(&file);
        assert!(acknowledged.len() >= ACKNOWLEDGED_BEFORE_KILL);
        let snapshot = Store::open(&file).unwrap().snapshot();
        for (key, revision) in acknowledged {
            assert!(revision <= snapshot.revision());
            assert_eq!(snapshot.get(&key).map(|entry| entry.modified), Some(revision), "{key}");
        }
    }
}

#[test]
fn a_store_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store");
    let _open = Store::open(&file).unwrap();
    assert!(matches!(Store::open(&file), Err(OpenError::InUse { path }) if path == file));
}

#[test]
fn a_file_of_something_else_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store");
    let content = "not a store, but somebody's file".repeat(1_000);
    std::fs::write(&file, &content).unwrap();
    assert!(matches!(Store::open(&file), Err(OpenError::Corrupt { .. })));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(dir.path().join("none/store")), Err(OpenError::Io { .. })));
}
