//! Backups of whatever an operator keeps: kinds of the group `windlass.dev`, served by any operator that implements [`Backups`].
//!
//! The author says which Pod takes a backup, and which resource a restore makes. Everything else is done here: one backup at a time
//! for each target, deadlines, status, conditions, events and metrics. What decides is in `decide`, pure; what looks and acts is
//! beside it. A Pod that takes a backup reads its [`BackupOrder`] from its environment, leaves a [`BackupRecord`] beside the data
//! (so that storage alone tells what there is) and the same record, without the configuration, as its last words.

mod capability;
mod control;
mod decide;
mod job;
mod kind;
mod location;
mod record;
mod report;
mod restore;
mod schedule;
mod selection;
mod storage;
mod verification;

pub use jiff::Timestamp;

pub use capability::{Backups, Obstacle, Progress};
pub use control::{BackupControl, backups};
pub use kind::{Backup, BackupSpec, BackupStatus, BackupTarget, Phase};
pub use location::{Encryption, Location, S3, S3Credentials, VolumeClaim};
pub use record::{
    BackupOrder, BackupRecord, FORMAT_VERSION, ORDER_VARIABLE, RecordError, RestoreOrder, TERMINATION_FILE,
    VerificationRecord,
};
pub use restore::{Restore, RestoreControl, RestoreSource, RestoreSpec, RestoreStatus, RestoreStorage, restores};
pub use schedule::{BackupSchedule, BackupScheduleSpec, BackupScheduleStatus, Retention, ScheduleControl, schedules};
pub use selection::{SelectionError, select, surplus};
pub use storage::{
    Attachment, Encrypted, Folder, KeyRing, Keys, Listing, ObjectStorage, Put, Storage, StorageError, open, remove,
    seal, stored,
};
