//! The kind `BackupSchedule`: a `Backup` at every moment of a schedule, and no more of them than are kept.

mod control;
mod decide;
mod kind;

pub use control::{ScheduleControl, schedules};
pub use kind::{BackupSchedule, BackupScheduleSpec, BackupScheduleStatus, Retention};
