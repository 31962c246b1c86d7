//! The storage of backups, seen from outside: a claim, and the folder behind it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::stage::{NAME, Stage};

/// The claim that backups go to.
pub(crate) const CLAIM: &str = "backups";

/// A cluster whose log and backups go to a claim of their own.
pub(crate) fn stage_with_archive(instances: u64, mut spec: Value) -> Stage {
    let stage = Stage::new();
    stage.put(&json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }));
    spec["instances"] = instances.into();
    // Who leads is not what is shown here: also on a busy machine the primary is to stay the same.
    spec["leaseSeconds"] = 30.into();
    spec["archive"] = location();
    stage.apply(&spec.to_string());
    stage.until_ready(instances);
    stage.note(&format!("{instances} servers are ready"));
    stage
}

/// The location of backups.
pub(crate) fn location() -> Value {
    json!({"claim": {"name": CLAIM}})
}

/// Asks for a backup.
pub(crate) fn ask_for_backup(stage: &Stage, name: &str, deadline_seconds: u32) {
    stage.put(&json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Backup", "metadata": {"name": name},
        "spec": {"target": target(NAME), "deadlineSeconds": deadline_seconds},
    }));
}

/// A cluster as the target of a backup, or what a restore makes.
pub(crate) fn target(name: &str) -> Value {
    json!({"group": "postgres.windlass.dev", "kind": "PostgresCluster", "name": name})
}

/// Waits until a backup is over, and gives its status.
pub(crate) fn until_over(stage: &Stage, name: &str) -> Value {
    stage.until_of("backups.windlass.dev", name, |status| status["phase"] == "Succeeded" || status["phase"] == "Failed")
}

/// The folder of the machine that is behind the claim.
pub(crate) fn folder(stage: &Stage) -> PathBuf {
    let claim = stage.machine.object("pvc", CLAIM).expect("the claim is there");
    let volume = claim["spec"]["volumeName"].as_str().expect("it is bound").to_owned();
    let volume = stage.machine.object("pv", &volume).expect("the volume is there");
    let path = volume["spec"]["hostPath"]["path"].as_str().or(volume["spec"]["local"]["path"].as_str());
    PathBuf::from(path.expect("it is a folder of this machine"))
}

/// All files below a folder, without what is being written.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut pending, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                _ if entry.file_name().to_string_lossy().starts_with(".unfinished-") => {}
                _ => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}

/// What the folders of base backups are called that have a record, and that have none.
pub(crate) fn base_backups(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<PathBuf> = files(folder).iter().filter_map(|it| it.parent().map(Path::to_owned)).collect();
    names.dedup();
    names.retain(|it| it.parent().is_some_and(|parent| parent.ends_with("base")));
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (whole, rest): (Vec<_>, Vec<_>) = names.iter().partition(|it| it.join("backup.json").is_file());
    (whole.into_iter().map(name).collect(), rest.into_iter().map(name).collect())
}
