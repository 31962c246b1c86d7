//! What people ask for, and what they are told, of a restore.

use crate::backup::kind::{BackupTarget, Phase};
use crate::backup::location::Location;
use crate::prelude::*;

/// A new resource from a backup, made once.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[resource(group = "windlass.dev", version = "v1alpha1", kind = "Restore", status = RestoreStatus)]
#[resource(column("Into", path = ".spec.into.name"), column("Phase", path = ".status.phase"))]
#[resource(column("Recovered to", path = ".status.recoveredTo"), column("Error", path = ".status.error", priority = 1))]
#[schema(cel("self == oldSelf", message = "a restore is done once: make another one"))]
pub struct RestoreSpec {
    /// What is restored.
    pub source: RestoreSource,
    /// The time as of which; the last that there is if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub time: Option<String>,
    /// What comes into being. It must not be there yet.
    pub into: BackupTarget,
    /// A restore that is not done by then has failed.
    #[schema(min = 1, max = 2592000, default = 86400)]
    pub deadline_seconds: u32,
}

/// A backup that is known to the cluster, or storage alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[schema(cel("has(self.backup) != has(self.storage)", message = "say either backup or storage"))]
pub struct RestoreSource {
    /// The name of a `Backup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 253, nullable = false)]
    pub backup: Option<String>,
    /// Where backups are, also of what is long gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub storage: Option<RestoreStorage>,
}

/// Backups in storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct RestoreStorage {
    /// The storage.
    pub location: Location,
    /// Where in it: namespace/name of what was backed up, or further down. The last backup that was complete in time is taken.
    #[schema(min_length = 1, max_length = 1024)]
    pub path: String,
}

/// What is known of a restore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct RestoreStatus {
    /// How far it is.
    pub phase: Phase,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub completed_at: Option<String>,
    /// How long it took until what was restored worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// The backup that it began with, by its name in storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    /// As of when the data is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered_to: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
