//! What a schedule asks for now: which backup is made, which are forgotten, and when to look again.

use jiff::{SignedDuration, Timestamp};
use windlass_core::schedule::Schedule;

use crate::backup::kind::Phase;

/// All that counts for a schedule.
pub(super) struct Seen<'a> {
    pub(super) schedule: &'a Schedule,
    /// When it was made.
    pub(super) created: Timestamp,
    /// The last moment that was served.
    pub(super) served: Option<Timestamp>,
    pub(super) now: Timestamp,
    pub(super) late_max: Option<SignedDuration>,
    pub(super) mode: Mode,
    pub(super) keep: Option<u32>,
    /// The backups that it made.
    pub(super) made: Vec<Made>,
}

/// Whether backups are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// None are, for now.
    Suspended,
    /// From the first moment on.
    Scheduled,
    /// The first at once.
    Immediate,
}

/// A backup that the schedule made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) name: String,
    pub(super) phase: Phase,
    pub(super) completed: Option<Timestamp>,
    pub(super) asked: Timestamp,
}

/// What is done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The moment that a backup is made for.
    pub(super) serve: Option<Timestamp>,
    /// The backups that are forgotten.
    pub(super) forget: Vec<String>,
    /// When to look again.
    pub(super) next: Option<Timestamp>,
    /// When the last one succeeded.
    pub(super) succeeded: Option<Timestamp>,
}

/// Decides.
pub(super) fn decide(seen: &Seen<'_>) -> Step {
    let mut step = Step { forget: forget(seen), succeeded: last_success(&seen.made), ..Step::default() };
    if seen.mode == Mode::Suspended {
        return step;
    }
    let due = seen.schedule.due(seen.served.unwrap_or(seen.created), seen.late_max, seen.now);
    let first = (seen.mode == Mode::Immediate && seen.served.is_none()).then_some(seen.now);
    step.serve = due.now.or(first);
    step.next = due.next;
    step
}

/// Those that are over and more than are kept. Of each sort the last stay: one that failed does not push out one that succeeded.
fn forget(seen: &Seen<'_>) -> Vec<String> {
    let Some(keep) = seen.keep else { return Vec::new() };
    let of = |phase: Phase| {
        let mut all: Vec<&Made> = seen.made.iter().filter(|made| made.phase == phase).collect();
        all.sort_by_key(|made| (made.completed.unwrap_or(made.asked), made.name.clone()));
        all.truncate(all.len().saturating_sub(keep.max(1) as usize));
        all.into_iter().map(|made| made.name.clone())
    };
    of(Phase::Succeeded).chain(of(Phase::Failed)).collect()
}

fn last_success(made: &[Made]) -> Option<Timestamp> {
    made.iter().filter(|made| made.phase == Phase::Succeeded).filter_map(|made| made.completed).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-01-01T{text}Z").parse().unwrap()
    }

    #[test]
    fn a_backup_is_made_when_its_moment_has_come() {
        let schedule = Schedule::parse("0 * * * *", None).unwrap();
        let check = |mode, served: Option<&str>, now: &str, late: Option<i64>, expected: Option<&str>| {
            let seen = Seen {
                schedule: &schedule,
                created: at("00:30:00"),
                served: served.map(at),
                now: at(now),
                late_max: late.map(SignedDuration::from_secs),
                mode,
                keep: None,
                made: Vec::new(),
            };
            let step = decide(&seen);
            assert_eq!(step.serve, expected.map(at), "{mode:?} {served:?} {now}");
            assert_eq!(step.next.is_some(), mode != Mode::Suspended);
        };
        check(Mode::Scheduled, None, "00:59:59", None, None);
        check(Mode::Scheduled, None, "01:00:00", None, Some("01:00:00"));
        check(Mode::Scheduled, Some("01:00:00"), "01:30:00", None, None);
        // Of several that were missed the last is served, if it is not too late.
        check(Mode::Scheduled, Some("01:00:00"), "04:10:00", None, Some("04:00:00"));
        check(Mode::Scheduled, Some("01:00:00"), "04:10:00", Some(300), None);
        check(Mode::Scheduled, Some("01:00:00"), "04:04:00", Some(300), Some("04:00:00"));
        check(Mode::Suspended, Some("01:00:00"), "04:10:00", None, None);
        check(Mode::Immediate, None, "00:30:01", None, Some("00:30:01"));
        check(Mode::Immediate, Some("00:30:01"), "00:30:02", None, None);
        check(Mode::Immediate, Some("00:30:01"), "01:00:00", None, Some("01:00:00"));
    }

    #[test]
    fn the_last_of_each_sort_are_kept_and_none_that_is_not_over() {
        let schedule = Schedule::parse("0 * * * *", None).unwrap();
        let made = |name: &str, phase, minute: u32| Made {
            name: name.into(),
            phase,
            completed: phase.is_over().then(|| at(&format!("00:{minute:02}:00"))),
            asked: at("00:00:00"),
        };
        let check = |keep, forget: &[&str]| {
            let seen = Seen {
                schedule: &schedule,
                created: at("00:00:00"),
                served: None,
                now: at("00:50:00"),
                late_max: None,
                mode: Mode::Suspended,
                keep,
                made: vec![
                    made("s1", Phase::Succeeded, 1),
                    made("s2", Phase::Succeeded, 2),
                    made("f3", Phase::Failed, 3),
                    made("f4", Phase::Failed, 4),
                    made("f5", Phase::Failed, 5),
                    made("r", Phase::Running, 6),
                    made("p", Phase::Pending, 7),
                ],
            };
            let step = decide(&seen);
            assert_eq!(step.forget, forget, "{keep:?}");
            assert_eq!(step.succeeded, Some(at("00:02:00")));
        };
        check(None, &[]);
        check(Some(3), &[]);
        check(Some(2), &["f3"]);
        check(Some(1), &["s1", "f3", "f4"]);
        check(Some(0), &["s1", "f3", "f4"]);
    }
}
