//! Which of the backups in storage is restored, and which are no longer kept.

use jiff::Timestamp;

use super::record::BackupRecord;

/// Why no backup can be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is none at all.
    #[error("there is no backup in {0}")]
    None(String),
    /// There is none of that name.
    #[error("there is no backup {0}")]
    Unknown(String),
    /// All of them end after that time.
    #[error("no backup was complete at {at}: the first was at {first}")]
    TooEarly {
        /// The time that was asked for.
        at: Timestamp,
        /// When the first one was complete.
        first: Timestamp,
    },
}

/// The backup to begin with: the one called `id`, or else the last one that was complete at the time that is to be restored.
///
/// # Errors
/// When there is none.
pub fn select<'a>(
    records: &'a [BackupRecord],
    path: &str,
    id: Option<&str>,
    at: Option<Timestamp>,
) -> Result<&'a BackupRecord, SelectionError> {
    let named: Vec<&BackupRecord> = records.iter().filter(|it| id.is_none_or(|id| it.id == id)).collect();
    let Some(first) = named.iter().map(|it| it.completed_at).min() else {
        return Err(id.map_or_else(|| SelectionError::None(path.into()), |id| SelectionError::Unknown(id.into())));
    };
    let in_time = named.into_iter().filter(|it| at.is_none_or(|at| it.completed_at <= at));
    let last = in_time.max_by(|a, b| (a.completed_at, &a.id).cmp(&(b.completed_at, &b.id)));
    last.ok_or_else(|| SelectionError::TooEarly { at: at.unwrap_or_default(), first })
}

/// The backups of a schedule that are more than it keeps, the oldest first. Backups of other schedules, and those that people asked
/// for, stay; so does at least one of the schedule's own.
pub fn surplus<'a>(records: &'a [BackupRecord], schedule: &str, keep: u32) -> Vec<&'a BackupRecord> {
    let mut own: Vec<&BackupRecord> = records.iter().filter(|it| it.schedule.as_deref() == Some(schedule)).collect();
    own.sort_by(|a, b| (a.completed_at, &a.id).cmp(&(b.completed_at, &b.id)));
    own.truncate(own.len().saturating_sub(keep.max(1) as usize));
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::record::sample;

    fn records() -> Vec<BackupRecord> {
        let of = |id: &str, day: u32, schedule: Option<&str>| BackupRecord {
            schedule: schedule.map(Into::into),
            ..sample(id, &format!("2026-01-0{day}T00:00:00Z"))
        };
        vec![
            of("a", 1, Some("nightly")),
            of("hand", 2, None),
            of("b", 3, Some("nightly")),
            of("other", 4, Some("hourly")),
            of("c", 5, Some("nightly")),
        ]
    }

    #[test]
    fn the_last_backup_before_the_time_is_restored() {
        let check = |id: Option<&str>, at: Option<&str>, expected: Result<&str, &str>| {
            let records = records();
            let found = select(&records, "shop", id, at.map(|at| at.parse().unwrap()));
            let found = found.map(|it| it.id.clone()).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{id:?} {at:?}");
        };
        check(None, None, Ok("c"));
        check(None, Some("2026-01-04T12:00:00Z"), Ok("other"));
        check(None, Some("2026-01-03T00:00:00Z"), Ok("b"));
        check(Some("hand"), None, Ok("hand"));
        check(Some("hand"), Some("2026-01-04T12:00:00Z"), Ok("hand"));
        check(Some("x"), None, Err("there is no backup x"));
        let early = "no backup was complete at 2025-12-31T00:00:00Z: the first was at 2026-01-01T00:00:00Z";
        check(None, Some("2025-12-31T00:00:00Z"), Err(early));
        assert_eq!(select(&[], "shop", None, None), Err(SelectionError::None("shop".into())));
    }

    #[test]
    fn a_schedule_keeps_its_last_and_touches_no_others() {
        let check = |schedule: &str, keep: u32, expected: &[&str]| {
            let records = records();
            let ids: Vec<&str> = surplus(&records, schedule, keep).iter().map(|it| it.id.as_str()).collect();
            assert_eq!(ids, expected, "{schedule} {keep}");
        };
        check("nightly", 3, &[]);
        check("nightly", 2, &["a"]);
        check("nightly", 1, &["a", "b"]);
        check("nightly", 0, &["a", "b"]);
        check("hourly", 1, &[]);
    }
}
