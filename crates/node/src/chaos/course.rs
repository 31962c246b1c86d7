//! Where a `Chaos` stands and what comes next, decided from its status alone.

use k8s_openapi::jiff::Timestamp;

use super::plan::Plan;
use super::resource::{ChaosStatus, Phase};

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A round begins.
    Begin(u32),
    /// The round goes on.
    Hold,
    /// The round is over.
    End,
    /// Nothing, until something changes.
    Rest,
}

/// What comes next, and when to look again if nothing changes before.
pub(crate) fn step(plan: &Plan, status: &ChaosStatus, generation: i64, now: Timestamp) -> (Step, Option<Timestamp>) {
    let is_new = status.observed_generation != generation;
    match status.phase {
        Phase::Pending => (Step::Begin(1), None),
        Phase::Active => {
            let end = status.ends_at.as_ref().map_or(now, |time| time.0);
            if is_new || end <= now { (Step::End, None) } else { (Step::Hold, Some(end)) }
        }
        _ if is_new => (Step::Begin(1), None),
        Phase::Waiting => match &status.next_at {
            Some(next) if next.0 > now => (Step::Rest, Some(next.0)),
            _ => (Step::Begin(status.round + 1), None),
        },
        Phase::Ended | Phase::Failed => {
            debug_assert!(plan.repeat.is_none_or(|(_, times)| times > 0), "a plan has a round");
            (Step::Rest, None)
        }
    }
}

/// When the round after this one begins; none if it was the last.
pub(crate) fn next_round(plan: &Plan, status: &ChaosStatus) -> Option<Timestamp> {
    let (every, times) = plan.repeat?;
    let begun = status.started_at.as_ref()?.0;
    (status.round < times).then(|| begun + every)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    const GENERATION: i64 = 3;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn check(phase: Phase, generation: i64, now: i64, expect: Step) {
        let status = ChaosStatus {
            phase,
            round: 1,
            started_at: Some(Time(at(0))),
            ends_at: Some(Time(at(10))),
            next_at: Some(Time(at(20))),
            observed_generation: GENERATION,
            ..ChaosStatus::default()
        };
        let plan = Plan { round: Duration::from_secs(10), repeat: None, skew: None, delay: None };
        assert_eq!(step(&plan, &status, generation, at(now)).0, expect, "{phase:?} at {now}");
    }

    #[test]
    fn rounds_begin_end_and_are_followed_by_others() {
        check(Phase::Pending, GENERATION, 0, Step::Begin(1));
        check(Phase::Active, GENERATION, 9, Step::Hold);
        check(Phase::Active, GENERATION, 10, Step::End);
        check(Phase::Waiting, GENERATION, 19, Step::Rest);
        check(Phase::Waiting, GENERATION, 20, Step::Begin(2));
        check(Phase::Ended, GENERATION, 99, Step::Rest);
    }

    #[test]
    fn a_change_ends_the_round_and_begins_anew() {
        check(Phase::Active, GENERATION + 1, 1, Step::End);
        check(Phase::Ended, GENERATION + 1, 1, Step::Begin(1));
        check(Phase::Failed, GENERATION + 1, 1, Step::Begin(1));
    }

    #[test]
    fn the_last_round_has_no_next() {
        let plan =
            Plan { round: Duration::from_secs(1), repeat: Some((Duration::from_secs(60), 2)), skew: None, delay: None };
        let status = |round| ChaosStatus { round, started_at: Some(Time(at(0))), ..ChaosStatus::default() };
        assert_eq!(next_round(&plan, &status(1)), Some(at(60)));
        assert_eq!(next_round(&plan, &status(2)), None);
    }
}
