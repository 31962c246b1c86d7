//! The decisions of an upgrade: what is tried, when it has failed, what is gone back to, and when it is known to be good.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::health::Health;
use super::record::{FailedRevision, KnownGood, Trial, UpgradeStatus};

/// A revision has failed when one of its members failed to start so often.
pub const ATTEMPTS_MAX: u32 = 3;
/// A revision has failed when one of its members cannot be started at all for so long: a registry that is away for a moment is
/// no failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// A revision that is late has failed when it is still late after this time: a clock that was moved, or an operator that was
/// away, must not take back what nobody looked at.
const GRACE: Duration = Duration::from_secs(60);
/// How often a revision that is tried is looked at, even if nothing changes.
const LOOK: Duration = Duration::from_secs(10);

/// How long a revision has.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// So long it has to be healthy before it is known to be good.
    pub window: Duration,
    /// So long it may take to become healthy.
    pub deadline: Duration,
}

/// What is asked for now.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The revision that is asked for, by its hash.
    pub hash: &'a str,
    /// What people call it.
    pub version: &'a str,
    /// The value of the annotation that asks for another attempt.
    pub retry: Option<&'a str>,
    /// How long it has.
    pub terms: Terms,
    /// The time.
    pub now: Timestamp,
}

/// What two records differ in that people and metrics are told.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A revision took the place of another one, and is known to be good.
    Succeeded {
        /// The version that was good before.
        from: String,
        /// The version that is.
        to: String,
    },
    /// A revision failed, and the last one that was good takes its place.
    RolledBack(FailedRevision),
    /// A revision failed, and there is none to go back to.
    Failed(FailedRevision),
}

impl UpgradeStatus {
    /// The record when `situation` was looked at, before anything is done: `health` is how the revision does that is tried.
    #[must_use]
    pub fn choose(&self, situation: &Situation<'_>, health: impl FnOnce() -> Health) -> Self {
        let mut next = self.clone();
        next.desired_version = Some(situation.version.to_owned());
        let is_over = |failed: &FailedRevision| {
            let is_asked_again = situation.retry.is_some() && situation.retry != failed.retry.as_deref();
            failed.hash != situation.hash || is_asked_again
        };
        if next.failed_revision.as_ref().is_some_and(is_over) {
            next.failed_revision = None;
        }
        next.in_progress = next.in_progress.filter(|trial| trial.hash == situation.hash);
        if let (Some(trial), None) = (&mut next.in_progress, &next.failed_revision) {
            let health = health();
            let is_out_of_hand = matches!(health, Health::Failing { attempts: 0, .. });
            let known = trial.failing_since.clone().filter(|since| since.0 <= situation.now);
            trial.failing_since = is_out_of_hand.then(|| known.unwrap_or_else(|| whole(situation.now)));
            if let Some(reason) = failure(trial, &health, situation) {
                next.fail(reason, situation);
            }
        }
        next.begin(situation);
        next
    }

    /// Whether the last revision that was good has to stand in for the one that is asked for.
    pub fn is_rolled_back(&self) -> bool {
        let failed = self.failed_revision.as_ref();
        failed.is_some_and(|failed| failed.rolled_back_to.is_some()) && self.last_known_good.is_some()
    }

    fn fail(&mut self, reason: String, situation: &Situation<'_>) {
        let good = self.last_known_good.as_ref().filter(|good| good.hash != situation.hash);
        let rolled_back_to = good.map(|good| good.version.clone());
        if rolled_back_to.is_some() {
            self.current_version = rolled_back_to.clone();
            self.in_progress = None;
        }
        self.failed_revision = Some(FailedRevision {
            hash: situation.hash.to_owned(),
            version: situation.version.to_owned(),
            reason,
            at: whole(situation.now),
            rolled_back_to,
            retry: situation.retry.map(Into::into),
        });
    }

    /// Begins to try what is asked for, if it is neither known to be good nor known to be bad.
    fn begin(&mut self, situation: &Situation<'_>) {
        if let Some(good) = self.last_known_good.as_ref().filter(|good| good.hash == situation.hash) {
            self.current_version = Some(good.version.clone());
            self.in_progress = None;
        } else if self.in_progress.is_none() && !self.is_rolled_back() {
            self.in_progress = Some(Trial {
                hash: situation.hash.to_owned(),
                version: situation.version.to_owned(),
                started_at: whole(situation.now),
                healthy_since: None,
                failing_since: None,
                late_since: None,
                blocked_by: None,
            });
        }
    }

    /// The record after the revision that is tried was found to be healthy, or not, because of `objection`. `revision` is
    /// what it is.
    #[must_use]
    pub fn prove(&self, situation: &Situation<'_>, objection: Option<String>, revision: &Value) -> Self {
        let mut next = self.clone();
        let Some(trial) = &mut next.in_progress else { return next };
        let Situation { now, terms, .. } = *situation;
        // A clock that was put back must not make anybody wait until it is where it was.
        let known = |time: &Time| time.0 <= now;
        trial.started_at = Some(trial.started_at.clone()).filter(known).unwrap_or_else(|| whole(now));
        trial.blocked_by = objection;
        if trial.blocked_by.is_some() {
            trial.healthy_since = None;
            let is_late = since(&trial.started_at, now) >= terms.deadline;
            trial.late_since = is_late.then(|| trial.late_since.clone().filter(known).unwrap_or_else(|| whole(now)));
            return next;
        }
        let healthy = trial.healthy_since.clone().filter(known).unwrap_or_else(|| whole(now));
        let is_good = since(&healthy, now) >= terms.window;
        (trial.healthy_since, trial.late_since) = (Some(healthy), None);
        next.current_version = Some(trial.version.clone());
        if is_good {
            let (hash, version) = (trial.hash.clone(), trial.version.clone());
            next.last_known_good = Some(KnownGood { hash, version, at: whole(now), revision: revision.clone() });
            next.in_progress = None;
            next.failed_revision = None;
        }
        next
    }

    /// When to look again even if nothing changes.
    pub fn recheck(&self, situation: &Situation<'_>) -> Option<Duration> {
        let trial = self.in_progress.as_ref()?;
        let healthy = trial.healthy_since.as_ref().map(|healthy| since(healthy, situation.now));
        let left = healthy.map(|healthy| situation.terms.window.saturating_sub(healthy));
        Some(left.unwrap_or(LOOK).clamp(Duration::from_secs(1), LOOK))
    }

    /// What is new since `before`.
    pub fn news(&self, before: &Self) -> Option<News> {
        if let Some(failed) = self.failed_revision.as_ref().filter(|_| before.failed_revision.is_none()) {
            let is_undone = failed.rolled_back_to.is_some();
            return Some(if is_undone { News::RolledBack(failed.clone()) } else { News::Failed(failed.clone()) });
        }
        let (from, to) = (before.last_known_good.as_ref()?, self.last_known_good.as_ref()?);
        let is_other = from.hash != to.hash;
        is_other.then(|| News::Succeeded { from: from.version.clone(), to: to.version.clone() })
    }
}

/// Why a revision has failed, if it has.
fn failure(trial: &Trial, health: &Health, situation: &Situation<'_>) -> Option<String> {
    let is_past = |time: &Option<Time>, max: Duration| time.as_ref().is_some_and(|it| since(it, situation.now) >= max);
    let is_counted = matches!(health, Health::Failing { attempts: ATTEMPTS_MAX.., .. });
    if is_counted || is_past(&trial.failing_since, PATIENCE) {
        return health.objection();
    }
    if !is_past(&trial.late_since, GRACE) {
        return None;
    }
    let why = health.objection().or_else(|| trial.blocked_by.clone()).unwrap_or_else(|| "it is not ready".into());
    Some(format!("not healthy within {:?}: {why}", situation.terms.deadline))
}

/// The time since `time`; none if that is yet to come.
fn since(time: &Time, now: Timestamp) -> Duration {
    now.duration_since(time.0).max(SignedDuration::ZERO).unsigned_abs()
}

/// The API keeps whole seconds; more would make the stored record differ from this one.
fn whole(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
