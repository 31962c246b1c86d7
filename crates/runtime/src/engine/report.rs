//! What a pass reports: the status, written once and only when it changed.

use jiff::Timestamp;
use windlass_core::{CustomResource, Outcome, Statement, Status, condition, names};

use super::act::Trouble;
use super::switch::Switches;
use crate::reconcile::Crash;

/// How a pass went.
pub(crate) enum Pass<'a, S> {
    /// The operator answered, and its intent was carried out or not.
    Made { outcome: &'a Outcome<S>, trouble: Option<&'a Trouble>, switches: &'a Switches },
    /// The operator did not answer.
    Crashed(&'a Crash),
    /// Nothing was done, because what was done before does not last.
    HotLoop { message: &'a str },
    /// The resource is paused.
    Paused,
    /// The cleanup failed.
    DeletionBlocked { why: &'a str },
}

/// The status of `resource` after `pass`.
pub(crate) fn status<R: CustomResource>(resource: &R, pass: &Pass<'_, R::Status>, now: Timestamp) -> Status<R::Status> {
    let mut status = resource.status().cloned().unwrap_or_default();
    let generation = resource.meta().generation;
    let statements = match pass {
        Pass::Made { outcome, trouble, switches } => {
            status.observed_generation = generation;
            if let Some(own) = outcome.desired().and_then(|desired| desired.status.clone()) {
                status.own = own;
            }
            let mut statements = made(outcome, *trouble, &status);
            if trouble.is_none() && outcome.desired().is_some() {
                statements.extend(switches.statements());
            }
            statements
        }
        Pass::Crashed(crash) => vec![
            Statement::new(names::condition::READY, false, crash.reason(), crash.to_string()),
            Statement::new(names::condition::PROGRESSING, true, crash.reason(), "it is tried again"),
        ],
        Pass::HotLoop { message } => {
            vec![Statement::new(names::condition::DEGRADED, true, "HotLoop", *message)]
        }
        Pass::Paused => {
            let message = format!("nothing is touched while the annotation {} is true", names::PAUSED);
            vec![Statement::new(names::condition::PAUSED, true, "Paused", message)]
        }
        Pass::DeletionBlocked { why } => vec![
            Statement::new(names::condition::DELETION_BLOCKED, true, "CleanupFailed", *why),
            Statement::new(names::condition::READY, false, "Deleting", "the resource is being deleted"),
        ],
    };
    for statement in statements {
        condition::set(&mut status.conditions, statement, generation, now);
    }
    status
}

fn made<S>(outcome: &Outcome<S>, trouble: Option<&Trouble>, status: &Status<S>) -> Vec<Statement> {
    let mut statements = outcome.statements();
    if let Some(trouble) = trouble {
        let (reason, message, stalled) = (trouble.reason(), trouble.to_string(), trouble.needs_a_person());
        statements.push(Statement::new(names::condition::READY, false, reason, message.clone()));
        statements.push(Statement::new(names::condition::PROGRESSING, !stalled, reason, message.clone()));
        statements.push(Statement::new(
            names::condition::STALLED,
            stalled,
            reason,
            if stalled { &message } else { "" },
        ));
    }
    for (type_, reason) in [(names::condition::PAUSED, "Resumed"), (names::condition::DEGRADED, "LoopEnded")] {
        if condition::find(&status.conditions, type_).is_some() {
            statements.push(Statement::new(type_, false, reason, ""));
        }
    }
    statements
}
