//! P9: a backup is restored to see that it can be; one whose log is damaged is told of.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::restore::archive_all;
use super::server::Server;
use super::stage::{NAME, Stage, condition};
use super::storage::{files, folder, folder_of, stage_with_archive, stage_with_encryption, target};

const KIND: &str = "backups.windlass.dev";

#[test]
#[ignore = "cargo xtask scenario P9"]
fn p9_backups_are_restored_and_damage_is_told() {
    let stage = stage_with_archive(1, json!({}));
    try_and_damage(&stage, &folder(&stage));
}

#[test]
#[ignore = "cargo xtask scenario P9-encrypted"]
fn p9encrypted_backups_of_object_storage_are_restored_and_damage_is_told() {
    let server = Server::start();
    let stage = stage_with_encryption(&server, 1, json!({}));
    try_and_damage(&stage, &folder_of(&server));
}

/// `top` is the folder behind the location of backups.
fn try_and_damage(stage: &Stage, top: &Path) {
    let writer = stage.writer();
    writer.advance(20);
    stage.put(&json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Backup", "metadata": {"name": "tried"},
        "spec": {"target": target(NAME), "deadlineSeconds": 600, "verify": true},
    }));
    let is = |truth: &'static str| move |status: &Value| condition(status, "Verified")["status"] == truth;
    let verified = stage.until_of(KIND, "tried", |status| is("True")(status) || is("False")(status));
    assert_eq!(condition(&verified, "Verified")["status"], "True", "{verified}");
    assert!(verified["verifiedAt"].is_string(), "{verified}");
    stage.note(&format!("restored in {} s to see that it can be", verified["recoverySeconds"]));

    writer.advance(20);
    archive_all(stage, "db");
    writer.advance(20);
    archive_all(stage, "db");
    let is_segment = |name: &str| name.len() == 27 && name.ends_with(".gz");
    let all = files(top);
    let last = all.iter().rfind(|it| is_segment(&it.file_name().unwrap_or_default().to_string_lossy()));
    let last = last.expect("the log is in the archive");
    let mut bytes = fs::read(last).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].iter_mut().for_each(|byte| *byte ^= 0xff);
    fs::write(last, bytes).expect("it can be written");
    stage.note(&format!("damaged {}", last.file_name().unwrap_or_default().to_string_lossy()));
    stage.machine.kubectl(&["annotate", KIND, "tried", "windlass.dev/verify=again"]);
    let refuted = stage.until_of(KIND, "tried", is("False"));
    assert_eq!(condition(&refuted, "Verified")["reason"], "VerificationFailed");
    stage.note(&format!("it is told: {}", refuted["error"]));
    let count = writer.verify();
    stage.note(&format!("all {count} acknowledged writes are there"));
}
