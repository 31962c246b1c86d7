//! How far the handlers of a resource are, as conditions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass_core::{Desired, Outcome, Statement, condition, names};

use super::decide::{Cause, Due, Entry, State, due, turns};
use super::seen::Seen;

/// The reason while something is to be done that did not fail yet.
const HANDLING: &str = "Handling";
/// The reason while something is tried again.
const RETRYING: &str = "HandlerRetrying";
/// The reason when something was given up.
const FAILED: &str = "HandlerFailed";

/// The reason when a deletion does not go on.
pub(super) const DELETION_FAILED: &str = "CleanupFailed";

/// How far the handlers of one resource are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// What is given up until a change.
    pub(super) gave_up: Vec<String>,
    /// What failed and is tried again.
    pub(super) retrying: Vec<String>,
    /// What is to be done and did not fail yet.
    pub(super) working: Vec<String>,
    /// Timers that fail.
    pub(super) timers: Vec<String>,
    /// Daemons that fail.
    pub(super) daemons: Vec<String>,
}

impl Standing {
    /// How far they are.
    pub(super) fn of(entries: &[Entry], seen: &Seen, state: &State, now: Timestamp) -> Self {
        let mut standing = Self::default();
        for (_, entry) in turns(entries, seen, state) {
            let due = due(entry, seen, state, now);
            let tries = state.tries(entry, &seen.mark(entry));
            let has_failed = tries.is_some_and(|tries| tries.due.is_some() || tries.count > 1);
            let list = match (due, entry.cause) {
                (Due::GaveUp, Cause::Timer) => &mut standing.timers,
                (_, Cause::Timer) if has_failed => &mut standing.timers,
                (_, Cause::Timer) | (Due::Never, _) => continue,
                (Due::GaveUp, _) => &mut standing.gave_up,
                _ if has_failed => &mut standing.retrying,
                _ => &mut standing.working,
            };
            list.push(entry.id.clone());
        }
        standing
    }

    /// The first handler that keeps a deletion from going on, because it failed.
    pub(super) fn first_failed(&self) -> Option<&String> {
        self.gave_up.first().or_else(|| self.retrying.first())
    }

    /// As an outcome, from which the usual conditions follow.
    pub(super) fn outcome<S>(&self, status: Option<S>, words: &Words<'_>) -> Outcome<S> {
        let mut desired = Desired::new();
        desired.status = status;
        desired.conditions.extend(self.degraded(words));
        if let Some(id) = self.gave_up.first() {
            let message = format!(
                "{} (it is not tried again: change the spec, or give {} a new value)",
                words.of(id, FAILED),
                names::FORCE
            );
            let is_busy = self.retrying.len() + self.working.len() > 0;
            let more = [
                Statement::new(names::condition::PROGRESSING, is_busy, FAILED, message.clone()),
                Statement::new(names::condition::STALLED, true, FAILED, message.clone()),
            ];
            desired.conditions.extend(more);
            return desired.progress(message).waiting(FAILED);
        }
        if let Some(id) = self.retrying.first() {
            return desired.progress(words.of(id, RETRYING)).waiting(RETRYING);
        }
        match self.working.first() {
            Some(_) => desired.progress("handlers are at work").waiting(HANDLING),
            None => desired.settled(),
        }
    }

    fn degraded(&self, words: &Words<'_>) -> Option<Statement> {
        let (id, reason) = match (self.timers.first(), self.daemons.first()) {
            (Some(id), _) => (id, "TimerFailed"),
            (None, Some(id)) => (id, "DaemonFailed"),
            (None, None) => return None,
        };
        Some(Statement::new(names::condition::DEGRADED, true, reason, words.of(id, reason)))
    }
}

/// What is known of why handlers failed.
pub(super) struct Words<'a> {
    /// What they said to this process.
    pub(super) said: &'a BTreeMap<String, String>,
    /// What the resource says already: an earlier process may have heard it.
    pub(super) conditions: &'a [Condition],
}

impl Words<'_> {
    /// Why a handler failed, for people.
    pub(super) fn of(&self, id: &str, reason: &str) -> String {
        if let Some(why) = self.said.get(id) {
            return format!("{id}: {why}");
        }
        let begins = format!("{id}: ");
        let known = [names::condition::READY, names::condition::DEGRADED, names::condition::DELETION_BLOCKED]
            .into_iter()
            .filter_map(|type_| condition::find(self.conditions, type_))
            .find(|it| it.reason == reason && it.message.starts_with(&begins));
        match known {
            Some(known) => known.message.split(" (it is not tried again").next().unwrap_or_default().to_owned(),
            None => format!("{id}: failed before this process began; see the events of the resource"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(standing: &Standing, expected: &str) {
        let said = BTreeMap::from([("a".to_owned(), "no route".to_owned())]);
        let outcome: Outcome<()> = standing.outcome(None, &Words { said: &said, conditions: &[] });
        let mut conditions = Vec::new();
        for statement in outcome.statements() {
            condition::set(&mut conditions, statement, Some(1), Timestamp::UNIX_EPOCH);
        }
        let text: Vec<_> = conditions.iter().map(|it| format!("{}={} {}", it.type_, it.status, it.reason)).collect();
        assert_eq!(text.join(", "), expected);
        let is_told = conditions.iter().any(|it| it.message.contains("a: no route"));
        assert_eq!(is_told, standing.first_failed().is_some() || !standing.timers.is_empty());
    }

    #[test]
    fn conditions_follow_from_progress() {
        let a = || vec!["a".to_owned()];
        let none = Standing::default;
        check(&none(), "Ready=True Settled, Progressing=False Settled, Stalled=False Settled");
        check(
            &Standing { working: a(), ..none() },
            "Ready=False Handling, Progressing=True Handling, Stalled=False Handling",
        );
        check(
            &Standing { retrying: a(), ..none() },
            "Ready=False HandlerRetrying, Progressing=True HandlerRetrying, Stalled=False HandlerRetrying",
        );
        check(
            &Standing { gave_up: a(), ..none() },
            "Ready=False HandlerFailed, Progressing=False HandlerFailed, Stalled=True HandlerFailed",
        );
        check(
            &Standing { gave_up: a(), working: a(), ..none() },
            "Ready=False HandlerFailed, Progressing=True HandlerFailed, Stalled=True HandlerFailed",
        );
        check(
            &Standing { timers: a(), ..none() },
            "Ready=True Settled, Progressing=False Settled, Stalled=False Settled, Degraded=True TimerFailed",
        );
    }

    #[test]
    fn what_an_earlier_process_heard_is_said_on() {
        let mut conditions = Vec::new();
        let statement = Statement::new("Ready", false, FAILED, "a: no route (it is not tried again: …)");
        condition::set(&mut conditions, statement, Some(1), Timestamp::UNIX_EPOCH);
        let words = Words { said: &BTreeMap::new(), conditions: &conditions };
        assert_eq!(words.of("a", FAILED), "a: no route");
        assert!(words.of("b", FAILED).starts_with("b: failed before"));
    }
}
