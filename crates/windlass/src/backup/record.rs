//! What a Pod that takes a backup is told, and what it leaves behind.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind::BackupStatus;
use super::location::Location;

/// The layout of storage that this release writes.
pub const FORMAT_VERSION: u32 = 1;
/// The environment variable of a Pod that takes a backup with its [`BackupOrder`].
pub const ORDER_VARIABLE: &str = "WINDLASS_BACKUP_ORDER";
/// Where such a Pod leaves its [`BackupRecord`].
pub const TERMINATION_FILE: &str = "/dev/termination-log";
/// The last words of a container are cut beyond this.
const LAST_WORDS_BYTES_MAX: usize = 4096;

/// What a Pod that takes a backup is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupOrder {
    /// What the backup is called in storage: unique among all that the target ever has.
    pub id: String,
    /// The `Backup` that asks for it, as namespace/name.
    pub backup: String,
    /// How it is taken.
    pub method: String,
    /// The schedule that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How many of that schedule stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
    /// The target's spec.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub configuration: Value,
}

/// What is known of a backup from storage alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupRecord {
    /// The version of the layout.
    pub format_version: u32,
    /// What it is called in storage.
    pub id: String,
    /// The `Backup` that asked for it, as namespace/name.
    pub backup: String,
    /// The schedule that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// How it was taken.
    pub method: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended: what was there then is in it.
    pub completed_at: Timestamp,
    /// How large it is.
    pub size_bytes: u64,
    /// Where it is, below the location's top.
    pub location: String,
    /// The version of what was backed up.
    pub application_version: String,
    /// The part of the target that it was taken from.
    pub taken_from: String,
    /// The identity of the data.
    #[serde(rename = "dataID")]
    pub data_id: String,
    /// The timeline of the data.
    pub timeline: u32,
    /// The position at which it begins.
    pub begin: String,
    /// The position from which on it is consistent.
    pub end: String,
    /// A hash of what is in it.
    pub checksum: String,
    /// The target's spec as it was.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub configuration: Value,
}

/// What is known of a backup that was restored to see that it can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VerificationRecord {
    /// What the backup is called in storage.
    pub id: String,
    /// When that was.
    pub verified_at: Timestamp,
    /// How long it took until what was restored answered.
    pub recovery_seconds: f64,
}

impl VerificationRecord {
    /// Reads the last words of the Pod that verified the backup `id`.
    ///
    /// # Errors
    /// When they are no record, or the record of another backup.
    pub fn of_pod(text: &str, id: &str) -> Result<Self, RecordError> {
        let record: Self = serde_json::from_str(text).map_err(|error| RecordError::Unreadable(error.to_string()))?;
        let foreign = || RecordError::Foreign { expected: id.to_owned(), found: record.id.clone() };
        if record.id == id { Ok(record) } else { Err(foreign()) }
    }

    /// The last words of the Pod that verified it.
    pub fn last_words(&self) -> String {
        serde_json::to_string(self).expect("a record is plain data")
    }
}

/// What is to be restored, and as what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoreOrder {
    /// The namespace of what comes into being.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Where the backup is, or backups are, below the top of their location.
    pub path: String,
    /// The location; if it is not said, that of the configuration.
    pub location: Option<Location>,
    /// The time as of which it is restored; the last that there is if it is not said.
    pub time: Option<Timestamp>,
    /// The spec of what was backed up, where that is known.
    pub configuration: Option<Value>,
}

/// Why a record cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not one.
    #[error("the Pod left no record of the backup: {0}")]
    Unreadable(String),
    /// A newer operator wrote it.
    #[error("the backup has layout {0}, this operator knows {FORMAT_VERSION}: use a newer operator")]
    Newer(u32),
    /// It is another one's.
    #[error("the Pod left the record of backup {found}, not of {expected}")]
    Foreign {
        /// The one that was asked for.
        expected: String,
        /// The one that is told of.
        found: String,
    },
}

impl BackupRecord {
    /// Reads a record as it is in storage.
    ///
    /// # Errors
    /// When it is none, or one of a newer operator.
    pub fn read(text: &str) -> Result<Self, RecordError> {
        let record: Self = serde_json::from_str(text).map_err(|error| RecordError::Unreadable(error.to_string()))?;
        if record.format_version > FORMAT_VERSION { Err(RecordError::Newer(record.format_version)) } else { Ok(record) }
    }

    /// Reads the last words of the Pod that took the backup `id`.
    ///
    /// # Errors
    /// When they are no record, or the record of another backup.
    pub fn of_pod(text: &str, id: &str) -> Result<Self, RecordError> {
        let record = Self::read(text)?;
        let foreign = || RecordError::Foreign { expected: id.to_owned(), found: record.id.clone() };
        if record.id == id { Ok(record) } else { Err(foreign()) }
    }

    /// The last words of the Pod that took it. The configuration is known without it, and may be long.
    pub fn last_words(&self) -> String {
        let short = Self { configuration: Value::Null, ..self.clone() };
        let text = serde_json::to_string(&short).expect("a record is plain data");
        debug_assert!(text.len() <= LAST_WORDS_BYTES_MAX, "{} bytes", text.len());
        text
    }

    /// Enters what is known into a status.
    pub fn enter(&self, status: &mut BackupStatus) {
        let took = self.completed_at.duration_since(self.started_at);
        status.method = Some(self.method.clone());
        status.started_at = Some(self.started_at.to_string());
        status.completed_at = Some(self.completed_at.to_string());
        status.duration_seconds = Some(took.as_millis() as f64 / 1000.0);
        status.size_bytes = Some(self.size_bytes);
        status.location = Some(self.location.clone());
        status.format_version = Some(self.format_version);
        status.application_version = Some(self.application_version.clone());
        status.taken_from = Some(self.taken_from.clone());
        status.data_id = Some(self.data_id.clone());
        status.timeline = Some(self.timeline);
        (status.begin, status.end) = (Some(self.begin.clone()), Some(self.end.clone()));
        status.checksum = Some(self.checksum.clone());
        status.error = None;
    }
}

#[cfg(test)]
pub(super) fn sample(id: &str, completed: &str) -> BackupRecord {
    let completed_at: Timestamp = completed.parse().expect("a time");
    BackupRecord {
        format_version: FORMAT_VERSION,
        id: id.into(),
        backup: "shop/nightly".into(),
        schedule: None,
        method: "basebackup".into(),
        started_at: completed_at - jiff::SignedDuration::from_millis(2500),
        completed_at,
        size_bytes: 7,
        location: format!("shop/db/base/{id}"),
        application_version: "15.18".into(),
        taken_from: "db-2".into(),
        data_id: "7".into(),
        timeline: 1,
        begin: "0/2000028".into(),
        end: "0/2000100".into(),
        checksum: "sha256:0".into(),
        configuration: serde_json::json!({"instances": 3}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_pod_become_a_status() {
        let record = sample("b1", "2026-01-01T00:00:10Z");
        let read = BackupRecord::of_pod(&record.last_words(), "b1").unwrap();
        assert_eq!(read.configuration, Value::Null);
        let mut status = BackupStatus { error: Some("old".into()), ..BackupStatus::default() };
        read.enter(&mut status);
        assert_eq!((status.duration_seconds, status.error), (Some(2.5), None));
        assert_eq!(status.completed_at.as_deref(), Some("2026-01-01T00:00:10Z"));
        assert_eq!((status.begin.as_deref(), status.timeline), (Some("0/2000028"), Some(1)));
    }

    #[test]
    fn words_that_are_not_the_record_of_this_backup_are_refused() {
        let record = sample("b1", "2026-01-01T00:00:10Z");
        let newer = BackupRecord { format_version: FORMAT_VERSION + 1, ..record.clone() };
        assert!(matches!(BackupRecord::of_pod("Killed", "b1"), Err(RecordError::Unreadable(_))));
        assert!(matches!(BackupRecord::of_pod(&record.last_words(), "b2"), Err(RecordError::Foreign { .. })));
        assert_eq!(BackupRecord::of_pod(&newer.last_words(), "b1"), Err(RecordError::Newer(FORMAT_VERSION + 1)));
    }
}
