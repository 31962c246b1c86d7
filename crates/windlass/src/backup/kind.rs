//! The kind `Backup`: what people ask for, and what they are told.

use serde_json::Value;

use crate::prelude::*;

/// One backup of one resource, taken once.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[resource(group = "windlass.dev", version = "v1alpha1", kind = "Backup", status = BackupStatus)]
#[resource(column("Target", path = ".spec.target.name"), column("Phase", path = ".status.phase"))]
#[resource(
    column("Completed", path = ".status.completedAt", type = "date"),
    column("Verified", path = ".status.verifiedAt", type = "date"),
    column("Bytes", path = ".status.sizeBytes", type = "integer"),
    column("Error", path = ".status.error", priority = 1)
)]
#[schema(cel("self == oldSelf", message = "a backup is taken once: make another one"))]
#[expect(clippy::duplicated_attributes, reason = "two columns are of one type")]
pub struct BackupSpec {
    /// What is backed up.
    pub target: BackupTarget,
    /// How; the way that the target's operator prefers if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 63)]
    pub method: Option<String>,
    /// A backup that has not begun, or has not ended, by then has failed.
    #[schema(min = 1, max = 604800, default = 3600)]
    pub deadline_seconds: u32,
    /// The schedule that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 253)]
    pub schedule: Option<String>,
    /// Whether it is restored, as soon as it is there, into something that is thrown away: to see that it can be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
    /// When it is taken, so many backups of the same schedule stay; older ones are removed from storage. All stay if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min = 1, max = 1000)]
    pub keep: Option<u32>,
}

/// A resource in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub struct BackupTarget {
    /// The group of its kind, such as postgres.windlass.dev.
    #[schema(max_length = 253)]
    pub group: String,
    /// Its kind.
    #[schema(min_length = 1, max_length = 63)]
    pub kind: String,
    /// Its name.
    #[schema(min_length = 1, max_length = 253)]
    pub name: String,
}

/// How far a backup, or a restore, is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum Phase {
    /// It waits for its turn, or for the target.
    #[default]
    Pending,
    /// It goes on.
    Running,
    /// It is done.
    Succeeded,
    /// It will not be done.
    Failed,
}

impl Phase {
    /// Whether nothing changes any more.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What is known of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct BackupStatus {
    /// How far it is.
    pub phase: Phase,
    /// How it is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub completed_at: Option<String>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// How large it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Where it is, below its location's top.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The version of its layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_version: Option<u32>,
    /// The version of what was backed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_version: Option<String>,
    /// The part of the target that it was taken from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
    /// The identity of the data.
    #[serde(rename = "dataID", skip_serializing_if = "Option::is_none")]
    pub data_id: Option<String>,
    /// The timeline of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<u32>,
    /// The position at which it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin: Option<String>,
    /// The position from which on it is consistent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// A hash of what is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The target's spec as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve_unknown)]
    pub configuration: Option<Value>,
    /// When it was last restored to see that it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub verified_at: Option<String>,
    /// How long that took until what was restored answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_seconds: Option<f64>,
    /// The request to verify it that was last answered: empty for the spec's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<String>,
    /// Why there is none, or why it cannot be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
