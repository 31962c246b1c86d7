//! What people ask for, and what they are told, of a schedule of backups.

use crate::backup::kind::BackupTarget;
use crate::prelude::*;

/// Backups of one resource, again and again.
#[derive(Resource, Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[resource(group = "windlass.dev", version = "v1alpha1", kind = "BackupSchedule", status = BackupScheduleStatus)]
#[resource(column("Target", path = ".spec.target.name"), column("Schedule", path = ".spec.schedule"))]
#[resource(column("Suspended", path = ".spec.suspend", type = "boolean"))]
#[resource(
    column("Last success", path = ".status.lastSuccessfulTime", type = "date"),
    column("Next", path = ".status.nextTime")
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the API")]
pub struct BackupScheduleSpec {
    /// What is backed up.
    #[schema(immutable)]
    pub target: BackupTarget,
    /// How; the way that the target's operator prefers if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 63)]
    pub method: Option<String>,
    /// When, in the language of cron: minute, hour, day, month, weekday.
    #[schema(min_length = 1, max_length = 255)]
    pub schedule: String,
    /// The time zone of the schedule; UTC if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 63)]
    pub time_zone: Option<String>,
    /// Whether no backups are taken for now.
    #[serde(default)]
    pub suspend: bool,
    /// Whether the first one is taken at once.
    #[serde(default)]
    pub immediate: bool,
    /// A moment that was missed for longer than this is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min = 1, max = 31536000)]
    pub starting_deadline_seconds: Option<u32>,
    /// A backup that has not begun, or has not ended, by then has failed.
    #[schema(min = 1, max = 604800, default = 3600)]
    pub deadline_seconds: u32,
    /// Whether each is restored, as soon as it is there, into something that is thrown away: to see that it can be.
    #[serde(default)]
    pub verify: bool,
    /// What is kept; everything if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// What is kept of the backups of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub struct Retention {
    /// So many of the last that succeeded, and of the last that failed. The files of the others are removed, too, whenever one
    /// succeeds.
    #[schema(min = 1, max = 1000)]
    pub keep: u32,
}

/// What is known of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default, rename_all = "camelCase")]
pub struct BackupScheduleStatus {
    /// The last moment that was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub last_time: Option<String>,
    /// The `Backup` that was made then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<String>,
    /// When the last one succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub last_successful_time: Option<String>,
    /// The next moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub next_time: Option<String>,
}
