//! The next step of a restore: from what is seen to what is done about it.

use crate::backup::capability::Progress;
use crate::backup::kind::Phase;

/// All that counts for the next step of a restore.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// How far it is, as it was written down.
    pub(super) phase: Phase,
    /// Whether the backup can be restored.
    pub(super) source: Source,
    /// What there is of what it makes.
    pub(super) target: Target,
    /// Whether its time is over.
    pub(super) is_late: bool,
}

/// What is restored.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// It can be.
    Usable,
    /// It may come.
    Awaited(String),
    /// It will not.
    Unusable(String),
}

/// What a restore makes.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// It is not there.
    Absent,
    /// Something of that name is there, and was not made by this restore.
    Foreign,
    /// It is there, and this restore made it.
    Own(Progress),
}

/// What is done next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Nothing: it is over.
    Rest,
    /// Waits.
    Wait { reason: &'static str, message: String },
    /// Makes the resource.
    Make,
    /// The resource is on its way.
    Watch(String),
    /// It works.
    Finish { backup: Option<String>, recovered_to: Option<String> },
    /// It failed.
    Fail { reason: &'static str, message: String },
}

/// Decides.
pub(super) fn decide(seen: &Seen) -> Step {
    if seen.phase.is_over() {
        return Step::Rest;
    }
    let fail = |reason, message: &str| Step::Fail { reason, message: message.to_owned() };
    match (&seen.target, &seen.source) {
        (Target::Own(Progress::Done { backup, recovered_to }), _) => {
            Step::Finish { backup: backup.clone(), recovered_to: recovered_to.clone() }
        }
        (Target::Own(Progress::Failed(why)), _) => fail("RestoreFailed", why),
        (Target::Own(Progress::Working(what)), _) if seen.is_late => {
            fail("DeadlineExceeded", &format!("it did not end in time: {what}"))
        }
        (Target::Own(Progress::Working(what)), _) => Step::Watch(what.clone()),
        (Target::Foreign, _) => fail(
            "TargetExists",
            "what is to be made is there already, and nothing is restored over it: choose another name, or delete it",
        ),
        (Target::Absent, _) if seen.phase == Phase::Running => {
            fail("TargetGone", "what was being restored was deleted")
        }
        (Target::Absent, Source::Unusable(why)) => fail("NoBackup", why),
        (Target::Absent, Source::Awaited(what)) if seen.is_late => {
            fail("DeadlineExceeded", &format!("it did not begin in time: {what}"))
        }
        (Target::Absent, Source::Awaited(what)) => Step::Wait { reason: "NoBackup", message: what.clone() },
        (Target::Absent, Source::Usable) => Step::Make,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(phase: Phase, target: Target, source: Source, is_late: bool, expected: &str) {
        let seen = Seen { phase, source, target, is_late };
        let word = match decide(&seen) {
            Step::Rest => "rest".to_owned(),
            Step::Wait { reason, .. } => format!("wait {reason}"),
            Step::Make => "make".into(),
            Step::Watch(_) => "watch".into(),
            Step::Finish { backup, .. } => format!("finish {}", backup.unwrap_or_default()),
            Step::Fail { reason, .. } => format!("fail {reason}"),
        };
        assert_eq!(word, expected, "{seen:?}");
    }

    #[test]
    fn a_restore_goes_its_way_wherever_it_was_cut_off() {
        use Phase::{Failed, Pending, Running, Succeeded};
        let working = || Target::Own(Progress::Working("copies".into()));
        let done = || Target::Own(Progress::Done { backup: Some("b".into()), recovered_to: None });
        check(Pending, Target::Absent, Source::Usable, false, "make");
        // The resource was made, and the operator died before it said so.
        check(Pending, working(), Source::Usable, false, "watch");
        check(Running, working(), Source::Usable, false, "watch");
        // What it began from may go meanwhile.
        check(Running, working(), Source::Unusable("gone".into()), false, "watch");
        check(Running, done(), Source::Unusable("gone".into()), false, "finish b");
        check(Running, done(), Source::Usable, true, "finish b");
        check(Running, Target::Own(Progress::Failed("no log".into())), Source::Usable, false, "fail RestoreFailed");
        check(Running, working(), Source::Usable, true, "fail DeadlineExceeded");
        check(Running, Target::Absent, Source::Usable, false, "fail TargetGone");
        check(Succeeded, Target::Absent, Source::Usable, false, "rest");
        check(Failed, done(), Source::Usable, false, "rest");
    }

    #[test]
    fn nothing_is_restored_over_what_is_there_or_from_nothing() {
        use Phase::Pending;
        check(Pending, Target::Foreign, Source::Usable, false, "fail TargetExists");
        check(Pending, Target::Absent, Source::Awaited("runs".into()), false, "wait NoBackup");
        check(Pending, Target::Absent, Source::Awaited("runs".into()), true, "fail DeadlineExceeded");
        check(Pending, Target::Absent, Source::Unusable("failed".into()), false, "fail NoBackup");
    }
}
