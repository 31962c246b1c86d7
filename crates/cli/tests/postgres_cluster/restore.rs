//! P8: a mistake is undone by a restore to the moment before it, and storage alone is enough to restore from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::server::Server;
use super::stage::Stage;
use super::storage::{
    ask_for_backup, encrypted_objects, files, folder, folder_of, location, objects, shows_no_credentials,
    stage_with_archive, stage_with_encryption, stage_with_objects, target, until_over,
};

/// A table of its own, so that its content at a moment is known exactly.
const FILL: &str = "create table shop as select id, md5(id::text) as item from generate_series(1, 500) id";
const CONTENT: &str = "select count(*) || ' ' || md5(string_agg(id || item, ',' order by id)) from shop";

/// Asks the database of the application.
fn ask(stage: &Stage, member: &str, statement: &str) -> String {
    let psql = ["psql", "-h", "/run/postgresql", "-U", "postgres", "-d", "app", "-Atqc", statement];
    let pod = format!("{member}-0");
    stage.machine.kubectl(&[&["exec", &pod, "--"], &psql[..]].concat()).trim().to_owned()
}

/// Has everything that was written until now in the archive.
pub(crate) fn archive_all(stage: &Stage, cluster: &str) {
    let segment = ask(stage, &format!("{cluster}-1"), "select pg_walfile_name(pg_switch_wal())");
    stage.until_of("postgresclusters", cluster, |status| {
        status["archive"]["lastSegment"].as_str().is_some_and(|last| last >= segment.as_str())
    });
}

fn restore(stage: &Stage, name: &str, source: &Value, time: Option<&str>) -> Value {
    let asked = Instant::now();
    let mut spec = json!({"source": source, "into": target(name)});
    if let Some(time) = time {
        spec["time"] = time.into();
    }
    stage.put(&json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Restore", "metadata": {"name": name}, "spec": spec,
    }));
    let is_over = |status: &Value| status["phase"] == "Succeeded" || status["phase"] == "Failed";
    let status = stage.until_of("restores.windlass.dev", name, is_over);
    assert_eq!(status["phase"], "Succeeded", "{status}");
    stage.note(&format!(
        "{name} takes writes {:.1} s after it was asked for, from {}, as of {}",
        asked.elapsed().as_secs_f32(),
        status["backup"],
        status["recoveredTo"]
    ));
    status
}

/// The ids that the writer wrote and that are there.
fn written(stage: &Stage, member: &str) -> Vec<i64> {
    let text = ask(stage, member, "select string_agg(id::text, ' ' order by id) from log");
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
#[ignore = "cargo xtask scenario P8"]
fn p8_a_mistake_is_undone_and_storage_alone_is_enough() {
    let stage = stage_with_archive(1, json!({"parameters": {"work_mem": "5MB"}}));
    undo_a_mistake(&stage, &folder(&stage), &location());
}

#[test]
#[ignore = "cargo xtask scenario P8-s3"]
fn p8s3_a_mistake_is_undone_and_object_storage_alone_is_enough() {
    let server = Server::start();
    let stage = stage_with_objects(&server, 1, json!({"parameters": {"work_mem": "5MB"}}));
    undo_a_mistake(&stage, &folder_of(&server), &objects(&server));
    shows_no_credentials(&stage);
    stage.note("the credentials are in no object, event or log");
}

#[test]
#[ignore = "cargo xtask scenario P8-encrypted"]
fn p8encrypted_what_nobody_can_read_is_restored_by_who_has_the_key() {
    let server = Server::start();
    let stage = stage_with_encryption(&server, 1, json!({"parameters": {"work_mem": "5MB"}}));
    undo_a_mistake(&stage, &folder_of(&server), &encrypted_objects(&server));
    let all = files(&folder_of(&server));
    let is_encrypted = |file: &&PathBuf| fs::read(file).is_ok_and(|content| content.starts_with(b"windlass\x01"));
    let plain: Vec<_> = all.iter().filter(|file| !is_encrypted(file) && !file.ends_with("backup.json")).collect();
    assert!(!all.is_empty() && plain.is_empty(), "stored as they are: {plain:?}");
    shows_no_credentials(&stage);
    stage.note(&format!("{} files are encrypted; the keys are in no object, event or log", all.len()));
}

/// `top` is the folder behind the location of backups.
fn undo_a_mistake(stage: &Stage, top: &Path, location: &Value) {
    let writer = stage.writer();
    ask_for_backup(stage, "first", 600);
    let backup = until_over(stage, "first");
    assert_eq!(backup["phase"], "Succeeded", "{backup}");
    stage.note(&format!("backed up {} bytes in {} s", backup["sizeBytes"], backup["durationSeconds"]));

    ask(stage, "db-1", FILL);
    writer.advance(20);
    let before = ask(stage, "db-1", CONTENT);
    let acknowledged = writer.acknowledged();
    let time =
        ask(stage, "db-1", "select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')");
    writer.advance(1);
    assert_eq!(ask(stage, "db-1", "delete from shop"), "");
    stage.note("500 rows were deleted by mistake");
    writer.advance(20);
    archive_all(stage, "db");

    let path = backup["location"].as_str().expect("a backup has a place");
    let original = top.join(path.split("/base/").next().unwrap_or_default());
    let kept: Vec<_> = files(&original).iter().map(|it| (it.clone(), it.metadata().map(|it| it.len()).ok())).collect();
    restore(stage, "copy", &json!({"backup": "first"}), Some(&time));
    assert_eq!(ask(stage, "copy-1", CONTENT), before, "the rows are as they were");
    let restored = written(stage, "copy-1");
    let lost: Vec<&i64> = acknowledged.iter().filter(|id| !restored.contains(id)).collect();
    assert!(lost.is_empty(), "acknowledged before that time, and not restored: {lost:?}");
    assert!(restored.len() < writer.acknowledged().len(), "what came later is not there");
    stage.note(&format!(
        "{} rows acknowledged by then, {} restored, and all 500 that were deleted",
        acknowledged.len(),
        restored.len()
    ));
    assert_eq!(ask(stage, "copy-1", "show work_mem"), "5MB", "the settings are those of the backup");
    ask(stage, "copy-1", "insert into shop values (501, 'new')");
    archive_all(stage, "copy");
    let copy = stage.machine.object("postgresclusters", "copy").expect("it is there")["status"].clone();
    let own = copy["archive"]["path"].as_str().unwrap_or_default();
    assert!(own.starts_with("default/copy/") && own != original.to_string_lossy(), "{own}");
    for (file, length) in &kept {
        assert_eq!(&file.metadata().map(|it| it.len()).ok(), length, "{file:?} is as it was");
    }

    archive_all(stage, "db");
    let acknowledged = writer.acknowledged();
    archive_all(stage, "db");
    stage.machine.kubectl(&["delete", "backups.windlass.dev", "--all"]);
    stage.machine.kubectl(&["delete", "postgrescluster", "db", "--wait=true"]);
    stage.note("the cluster and all Backup objects are deleted");
    let storage = json!({"storage": {"location": location, "path": "default/db"}});
    restore(stage, "again", &storage, None);
    let restored = written(stage, "again-1");
    let lost: Vec<&i64> = acknowledged.iter().filter(|id| !restored.contains(id)).collect();
    assert!(lost.is_empty(), "archived, and not restored: {lost:?}");
    assert_eq!(ask(stage, "again-1", "select count(*) from shop"), "0", "the mistake is there, too: it is the latest");
    stage.note(&format!("from storage alone: {} rows archived, {} restored", acknowledged.len(), restored.len()));
}
