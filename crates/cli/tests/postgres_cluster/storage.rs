//! The storage of backups, seen from outside: a claim or a bucket, and the folder behind it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::server::{BUCKET, KEY, KEY_ID, Server};
use super::stage::{NAME, Stage};

/// The claim that backups go to.
pub(crate) const CLAIM: &str = "backups";

/// The Secret with the credentials of object storage, and the folder in its bucket.
const SECRET: &str = "object-storage";
const PREFIX: &str = "of/this-cluster";
/// The Secret with the keys of encryption, and the key.
const KEYS: &str = "backup-keys";
const ENCRYPTION_KEY: &str = "c0ffee00c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77";

/// A cluster whose log and backups go to a claim of their own.
pub(crate) fn stage_with_archive(instances: u64, spec: Value) -> Stage {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    stage_with(&claim, location(), instances, spec)
}

/// A cluster whose log and backups go to object storage.
pub(crate) fn stage_with_objects(server: &Server, instances: u64, spec: Value) -> Stage {
    stage_with(&secrets(), objects(server), instances, spec)
}

/// The same, with everything encrypted.
pub(crate) fn stage_with_encryption(server: &Server, instances: u64, spec: Value) -> Stage {
    stage_with(&secrets(), encrypted_objects(server), instances, spec)
}

/// The credentials of object storage, and keys of encryption.
fn secrets() -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
         "stringData": {"accessKeyID": KEY_ID, "secretAccessKey": KEY}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEYS},
         "stringData": {"2026-01-31": ENCRYPTION_KEY}},
    ]})
}

fn stage_with(first: &Value, location: Value, instances: u64, mut spec: Value) -> Stage {
    let stage = Stage::new();
    stage.put(first);
    spec["instances"] = instances.into();
    // Who leads is not what is shown here: also on a busy machine the primary is to stay the same.
    spec["leaseSeconds"] = 30.into();
    spec["archive"] = location;
    stage.apply(&spec.to_string());
    stage.until_ready(instances);
    stage.note(&format!("{instances} servers are ready"));
    stage
}

/// The location of backups.
pub(crate) fn location() -> Value {
    json!({"claim": {"name": CLAIM}})
}

/// The location of backups in object storage.
pub(crate) fn objects(server: &Server) -> Value {
    json!({"s3": {
        "endpoint": format!("http://{}", server.address), "bucket": BUCKET, "prefix": PREFIX, "region": "us-east-1",
        "credentials": {"secretName": SECRET},
    }})
}

/// The location of backups that are encrypted.
pub(crate) fn encrypted_objects(server: &Server) -> Value {
    let mut location = objects(server);
    location["encryption"] = json!({"secretName": KEYS});
    location
}

/// The folder of the machine that is behind the object storage.
pub(crate) fn folder_of(server: &Server) -> PathBuf {
    server.bucket().join(PREFIX)
}

/// Sees that the credentials are in nothing that can be read without the right to read Secrets: objects, events, logs.
pub(crate) fn shows_no_credentials(stage: &Stage) {
    let kinds =
        "pods,statefulsets,jobs,configmaps,events,leases,postgresclusters,backups.windlass.dev,restores.windlass.dev";
    let mut all = stage.machine.kubectl(&["get", kinds, "--all-namespaces", "-o", "json"]);
    for pod in stage.machine.list(&["pods"]) {
        let pod = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let logs = stage.machine.kubectl_command().args(["logs", &pod]).output().expect("kubectl runs");
        all += &String::from_utf8_lossy(&logs.stdout);
    }
    assert!(all.contains(SECRET), "the Secret is named");
    for credential in [KEY, KEY_ID, ENCRYPTION_KEY] {
        assert!(!all.contains(credential), "a credential is shown");
    }
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
