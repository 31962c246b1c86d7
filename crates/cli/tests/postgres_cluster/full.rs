//! P7-full: storage without room is told of and stops no writes; when there is room again, nothing is missing.

use std::io::Read;
use std::process::Command;

use serde_json::json;
use windlass::backup::{Keys, ObjectStorage, Storage};

use super::restore::archive_all;
use super::server::{KEY, KEY_ID, Server, program};
use super::stage::{Stage, condition};
use super::storage::{ask_for_backup, objects, stage_with_objects, until_over};

/// Gives the server a disk of its own, with room enough for a small cluster.
const SMALL_DISK: &str = r#"mount -t tmpfs -o size=48m tmpfs "$0" && mkdir "$0/backups" && exec "$@""#;
/// What it is filled up with.
const FILLER: &str = "filler";

/// A server whose disk is small.
fn small_server() -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", SMALL_DISK]).arg(folder.path()).arg(program());
    Server::start_by(command, &[], folder)
}

/// The storage of the cluster, from outside.
fn storage(server: &Server) -> ObjectStorage {
    let settings = serde_json::from_value(objects(server)["s3"].clone()).expect("it is a location");
    ObjectStorage::new(&settings, &Keys::new(KEY_ID, KEY)).expect("the settings can be used")
}

/// Fills a storage up, with pieces that get smaller.
fn fill(storage: &ObjectStorage) -> usize {
    let mut count = 0;
    for size in [4 << 20, 256 << 10, 8 << 10] {
        while storage.put(&format!("{FILLER}/{count}"), &mut std::io::repeat(7).take(size)).is_ok() {
            count += 1;
        }
    }
    count
}

/// Waits until it is said that the log gets into the archive, or that it does not.
fn until_archiving(stage: &Stage, truth: &str) -> String {
    let status = stage.until("the condition Archiving", |status| condition(status, "Archiving")["status"] == truth);
    condition(&status, "Archiving")["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
#[ignore = "cargo xtask scenario P7-full"]
fn p7full_storage_without_room_is_told_of_and_nothing_is_lost() {
    let server = small_server();
    let stage = stage_with_objects(&server, 1, json!({}));
    let writer = stage.writer();
    writer.advance(20);
    archive_all(&stage, "db");
    until_archiving(&stage, "True");
    let storage = storage(&server);
    stage.note(&format!("the storage is full, by {} files", fill(&storage)));

    stage.ask("db-1", "select pg_switch_wal()");
    stage.note(&format!("it is told: {}", until_archiving(&stage, "False")));
    ask_for_backup(&stage, "full", 600);
    let full = until_over(&stage, "full");
    assert_eq!(full["phase"], "Failed", "{full}");
    stage.note(&format!("a backup failed: {}", full["error"]));
    writer.advance(20);
    stage.note("writes go on");

    storage.clear(FILLER).expect("there is room again");
    archive_all(&stage, "db");
    until_archiving(&stage, "True");
    stage.note("with room, the log is archived again");
    ask_for_backup(&stage, "after", 600);
    let after = until_over(&stage, "after");
    assert_eq!(after["phase"], "Succeeded", "{after}");
    let bases = after["location"].as_str().and_then(|it| it.rsplit_once('/')).map(|(bases, _)| bases);
    let left = storage.list(bases.unwrap_or_default()).expect("it can be listed").folders;
    assert!(left.len() == 1 && left[0].starts_with("after-"), "nothing is left of the one that failed: {left:?}");
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there"));
}
