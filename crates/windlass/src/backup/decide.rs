//! The next step of a backup: from what is seen to what is done about it.

use jiff::{SignedDuration, Timestamp};

use super::kind::Phase;
use super::record::{BackupRecord, VerificationRecord};

/// Who runs Jobs ends one at its deadline; when nobody does, this much later it is ended here.
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// All that counts for the next step of a backup.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// How far it is, as it was written down.
    pub(super) phase: Phase,
    /// When it was asked for.
    pub(super) asked: Timestamp,
    /// When it began, if it did.
    pub(super) started: Option<Timestamp>,
    pub(super) now: Timestamp,
    pub(super) deadline: SignedDuration,
    /// What the spec has that cannot be served.
    pub(super) flaw: Option<String>,
    /// The Job that takes it.
    pub(super) job: JobSeen<Box<BackupRecord>>,
    /// Another backup of the same target that is taken now.
    pub(super) busy: Option<String>,
    /// Another one that was asked for before and has not begun.
    pub(super) ahead: Option<String>,
    /// Why the target cannot be backed up now.
    pub(super) obstacle: Option<(String, String)>,
}

/// The Job that takes a backup, or verifies one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JobSeen<R> {
    /// There is none.
    None,
    /// It has not ended.
    Active,
    /// It ended well, and left this; or what it left is no record of the backup.
    Done(Result<R, String>),
    /// It failed, with its last words.
    Failed { reason: String, message: String },
}

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing: it is over.
    Rest,
    /// Waits.
    Wait { reason: String, message: String },
    /// Has a Pod take it.
    Begin,
    /// A Pod takes it: says so.
    Watch,
    /// It is there.
    Finish(Box<BackupRecord>),
    /// It failed. A Job that is still there is ended.
    Fail { reason: String, message: String },
}

/// Decides.
pub(super) fn decide(seen: &Seen) -> Step {
    if seen.phase.is_over() {
        return Step::Rest;
    }
    match &seen.job {
        JobSeen::Done(Ok(record)) => Step::Finish(record.clone()),
        JobSeen::Done(Err(why)) => fail("NoRecord", why.clone()),
        JobSeen::Failed { reason, message } => fail(reason, message.clone()),
        JobSeen::Active if is_late(seen) => fail("DeadlineExceeded", late(seen, "it did not end")),
        JobSeen::Active => Step::Watch,
        // It began, and what took it is gone: what it left is not known.
        JobSeen::None if seen.phase == Phase::Running => fail("JobGone", "the Job that took it was deleted".into()),
        JobSeen::None => begin(seen),
    }
}

fn begin(seen: &Seen) -> Step {
    if let Some(flaw) = &seen.flaw {
        return fail("Invalid", flaw.clone());
    }
    let blocker = blocker(seen);
    if seen.now.duration_since(seen.asked) > seen.deadline {
        let why = blocker.map_or_else(|| "its operator was away".to_owned(), |(_, message)| message);
        return fail("NotStarted", late(seen, &format!("it did not begin: {why}")));
    }
    match blocker {
        Some((reason, message)) => Step::Wait { reason, message },
        None => Step::Begin,
    }
}

/// Why it cannot begin now.
fn blocker(seen: &Seen) -> Option<(String, String)> {
    let busy = |name: &String| ("OtherBackupRuns".to_owned(), format!("{name} is taken at the moment"));
    let ahead = |name: &String| ("OtherBackupFirst".to_owned(), format!("{name} was asked for before"));
    seen.busy.as_ref().map(busy).or(seen.ahead.as_ref().map(ahead)).or(seen.obstacle.clone())
}

fn is_late(seen: &Seen) -> bool {
    let since = seen.started.unwrap_or(seen.now);
    seen.now.duration_since(since) > seen.deadline + GRACE
}

fn late(seen: &Seen, what: &str) -> String {
    format!("{what} within {} s", seen.deadline.as_secs())
}

fn fail(reason: &str, message: String) -> Step {
    Step::Fail { reason: reason.into(), message }
}

/// What is done next to verify a backup that is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check {
    /// Nothing: nobody asked for it, or it is over.
    Rest,
    /// Has a Pod restore it.
    Begin,
    /// A Pod restores it.
    Watch,
    /// It can be restored.
    Confirm(VerificationRecord),
    /// It cannot be restored.
    Refute(String),
}

/// Decides how a backup that is there is verified: each request is answered once.
pub(super) fn check(
    request: Option<&str>,
    answered: Option<&str>,
    job: &JobSeen<VerificationRecord>,
    can_be: bool,
) -> Check {
    if request.is_none() || request == answered {
        return Check::Rest;
    }
    match job {
        JobSeen::None if can_be => Check::Begin,
        JobSeen::None => Check::Refute("backups of this kind cannot be verified".into()),
        JobSeen::Active => Check::Watch,
        JobSeen::Done(Ok(record)) => Check::Confirm(record.clone()),
        JobSeen::Done(Err(why)) => Check::Refute(why.clone()),
        JobSeen::Failed { reason, message } => Check::Refute(format!("{reason}: {message}")),
    }
}

/// A request for a backup of the same target.
pub(super) struct Rival {
    pub(super) name: String,
    pub(super) asked: Timestamp,
    pub(super) phase: Phase,
}

/// The one that is to begin before `mine`: asked for before, and of two at the same moment the first by name.
pub(super) fn ahead<'a>(rivals: &'a [Rival], mine: (&str, Timestamp)) -> Option<&'a str> {
    let earlier = |rival: &&Rival| (rival.asked, rival.name.as_str()) < (mine.1, mine.0);
    let waiting = rivals.iter().filter(|rival| rival.phase == Phase::Pending && rival.name != mine.0);
    waiting.filter(earlier).min_by_key(|rival| (rival.asked, rival.name.as_str())).map(|rival| rival.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::record::sample;

    const ASKED: &str = "2026-01-01T00:00:00Z";

    fn at(seconds: i64) -> Timestamp {
        ASKED.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
    }

    fn seen(phase: Phase, job: JobSeen<Box<BackupRecord>>, now: i64) -> Seen {
        Seen {
            phase,
            asked: at(0),
            started: (phase != Phase::Pending).then(|| at(5)),
            now: at(now),
            deadline: SignedDuration::from_secs(100),
            flaw: None,
            job,
            busy: None,
            ahead: None,
            obstacle: None,
        }
    }

    /// The step in a word, with its reason.
    fn word(seen: &Seen) -> String {
        match decide(seen) {
            Step::Rest => "rest".into(),
            Step::Wait { reason, .. } => format!("wait {reason}"),
            Step::Begin => "begin".into(),
            Step::Watch => "watch".into(),
            Step::Finish(record) => format!("finish {}", record.id),
            Step::Fail { reason, .. } => format!("fail {reason}"),
        }
    }

    #[test]
    fn a_backup_goes_its_way_wherever_it_was_cut_off() {
        use Phase::{Failed, Pending, Running, Succeeded};
        let done = || JobSeen::Done(Ok(Box::new(sample("b", "2026-01-01T00:00:30Z"))));
        let failed = || JobSeen::Failed { reason: "JobFailed".into(), message: "no space".into() };
        let rows = [
            (seen(Pending, JobSeen::None, 1), "begin"),
            // The Job was made, and the operator died before it said so.
            (seen(Pending, JobSeen::Active, 1), "watch"),
            (seen(Pending, done(), 1), "finish b"),
            (seen(Running, JobSeen::Active, 50), "watch"),
            (seen(Running, done(), 50), "finish b"),
            (seen(Running, failed(), 50), "fail JobFailed"),
            (seen(Running, JobSeen::Done(Err("?".into())), 50), "fail NoRecord"),
            (seen(Running, JobSeen::None, 50), "fail JobGone"),
            // Whoever runs Jobs ends it at 105; here it is ended a minute later.
            (seen(Running, JobSeen::Active, 165), "watch"),
            (seen(Running, JobSeen::Active, 166), "fail DeadlineExceeded"),
            (seen(Succeeded, JobSeen::None, 50), "rest"),
            (seen(Failed, done(), 50), "rest"),
        ];
        for (seen, expected) in rows {
            assert_eq!(word(&seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn one_begins_when_it_is_its_turn_and_not_too_late() {
        let pending = || seen(Phase::Pending, JobSeen::None, 1);
        let other = || Some("other".to_owned());
        let obstacle = || Some(("NotReady".to_owned(), "no member".to_owned()));
        let rows = [
            (Seen { busy: other(), ..pending() }, "wait OtherBackupRuns"),
            (Seen { ahead: other(), ..pending() }, "wait OtherBackupFirst"),
            (Seen { obstacle: obstacle(), ..pending() }, "wait NotReady"),
            (Seen { obstacle: obstacle(), now: at(100), ..pending() }, "wait NotReady"),
            (Seen { obstacle: obstacle(), now: at(101), ..pending() }, "fail NotStarted"),
            (Seen { now: at(101), ..pending() }, "fail NotStarted"),
            (Seen { flaw: Some("no such method".into()), ..pending() }, "fail Invalid"),
        ];
        for (seen, expected) in rows {
            assert_eq!(word(&seen), expected, "{seen:?}");
        }
        let late = decide(&Seen { busy: other(), now: at(101), ..pending() });
        let Step::Fail { message, .. } = late else { panic!("{late:?}") };
        assert_eq!(message, "it did not begin: other is taken at the moment within 100 s");
    }

    #[test]
    fn a_backup_is_verified_once_and_only_if_somebody_asks() {
        let record = VerificationRecord { id: "b".into(), verified_at: at(9), recovery_seconds: 2.0 };
        let failed = JobSeen::Failed { reason: "JobFailed".into(), message: "damaged".into() };
        let done = JobSeen::Done(Ok(record.clone()));
        let asked = Some("");
        assert_eq!(check(None, None, &JobSeen::None, true), Check::Rest);
        assert_eq!(check(asked, None, &JobSeen::None, true), Check::Begin);
        assert!(matches!(check(asked, None, &JobSeen::None, false), Check::Refute(_)));
        assert_eq!(check(asked, None, &JobSeen::Active, true), Check::Watch);
        assert_eq!(check(asked, None, &done, true), Check::Confirm(record));
        assert_eq!(check(asked, None, &failed, true), Check::Refute("JobFailed: damaged".into()));
        assert_eq!(check(asked, asked, &JobSeen::None, true), Check::Rest);
        assert_eq!(check(Some("again"), asked, &JobSeen::None, true), Check::Begin);
    }

    #[test]
    fn of_those_that_wait_the_first_goes_first() {
        let rival = |name: &str, asked: i64, phase| Rival { name: name.into(), asked: at(asked), phase };
        let rivals = [
            rival("old", 0, Phase::Succeeded),
            rival("b", 1, Phase::Pending),
            rival("a", 2, Phase::Pending),
            rival("c", 2, Phase::Pending),
        ];
        let check = |name: &str, asked: i64, expected: Option<&str>| {
            assert_eq!(ahead(&rivals, (name, at(asked))), expected, "{name}");
        };
        check("b", 1, None);
        check("a", 2, Some("b"));
        check("c", 2, Some("b"));
        check("z", 0, None);
    }
}
