//! What a pass reports: the status, written once and only when it changed.

use jiff::Timestamp;
use kube::core::ApiResource;
use serde_json::json;
use windlass_core::{CustomResource, Outcome, Statement, Status, condition, names};

use super::act::{Place, Trouble};
use super::deletion::held_by;
use super::heat;
use super::parts::Standing;
use super::switch::{Switches, paused_statement, resumed_statement};
use super::upgrade::Way;
use crate::reconcile::{Context, Crash, Error};

/// How a pass went.
pub(crate) enum Pass<'a, R: CustomResource> {
    /// The operator answered, and its intent was carried out or not.
    Made {
        outcome: &'a Outcome<R::Status>,
        carried: Option<&'a Result<Standing, Trouble>>,
        switches: &'a Switches,
        way: Option<&'a Way<R>>,
    },
    /// A revision failed. Nothing was done yet.
    TurnsBack(&'a Way<R>),
    /// The operator did not answer.
    Crashed(&'a Crash),
    /// Nothing was done, because what was done before does not last.
    HotLoop { message: &'a str },
    /// The resource is paused.
    Paused,
    /// The resource is to go, and its parts go before it.
    Deleting { message: &'a str },
    /// The resource is to go, and something hinders that.
    DeletionBlocked { reason: &'static str, why: &'a str },
}

/// The status of `resource` after `pass`.
pub(crate) fn status<R: CustomResource>(resource: &R, pass: &Pass<'_, R>, now: Timestamp) -> Status<R::Status> {
    let mut status = resource.status().cloned().unwrap_or_default();
    let generation = resource.meta().generation;
    let statements = match pass {
        Pass::Made { outcome, carried, switches, way } => {
            status.observed_generation = generation;
            if let Some(own) = outcome.desired().and_then(|desired| desired.status.clone()) {
                status.own = own;
            }
            status.upgrade = way.map(|way| way.record.clone());
            let further = way.map(|way| way.statements(Some(outcome))).unwrap_or_default();
            let mut statements = made(outcome, *carried, (&status, further));
            if matches!(carried, Some(Ok(_))) {
                statements.extend(switches.statements());
            }
            statements
        }
        Pass::TurnsBack(way) => {
            status.upgrade = Some(way.record.clone());
            way.statements(None)
        }
        Pass::Crashed(crash) => vec![
            Statement::new(names::condition::READY, false, crash.reason(), crash.to_string()),
            Statement::new(names::condition::PROGRESSING, true, crash.reason(), "it is tried again"),
        ],
        Pass::HotLoop { message } => vec![heat::hot_statement(message)],
        Pass::Paused => paused(resource),
        Pass::Deleting { message } => deleting(&status, message),
        Pass::DeletionBlocked { reason, why } => {
            let mut statements = blocked(reason, why).to_vec();
            statements.extend(resumed(&status));
            statements
        }
    };
    for statement in last_words(statements) {
        condition::set(&mut status.conditions, statement, generation, now);
    }
    status
}

/// Nothing is touched, and so nothing is cleaned up: a resource that the runtime holds does not go.
fn paused<R: CustomResource>(resource: &R) -> Vec<Statement> {
    let is_held = resource.meta().deletion_timestamp.is_some() && !held_by(resource).is_empty();
    let why = format!("it is paused: its deletion goes on when the annotation {} is taken away", names::PAUSED);
    let mut statements = vec![paused_statement()];
    statements.extend(is_held.then(|| blocked("Paused", &why)).into_iter().flatten());
    statements
}

fn blocked(reason: &'static str, why: &str) -> [Statement; 2] {
    [
        Statement::new(names::condition::DELETION_BLOCKED, true, reason, why),
        Statement::new(names::condition::READY, false, "Deleting", "the resource is being deleted"),
    ]
}

fn unblocked() -> Statement {
    Statement::new(names::condition::DELETION_BLOCKED, false, "Unblocked", "")
}

/// What is to be said of a resource that goes on, if its status is from a time when it was paused.
fn resumed<S>(status: &Status<S>) -> Option<Statement> {
    condition::is_true(&status.conditions, names::condition::PAUSED).then(resumed_statement)
}

/// Of several statements about one condition the last counts. The others must not move its time of transition to and fro.
fn last_words(statements: Vec<Statement>) -> Vec<Statement> {
    let mut last: Vec<Statement> = Vec::with_capacity(statements.len());
    for statement in statements {
        match last.iter_mut().find(|known| known.type_ == statement.type_) {
            Some(known) => *known = statement,
            None => last.push(statement),
        }
    }
    last
}

fn deleting<S>(status: &Status<S>, message: &str) -> Vec<Statement> {
    let mut statements = vec![
        Statement::new(names::condition::READY, false, "Deleting", message),
        Statement::new(names::condition::PROGRESSING, true, "Deleting", message),
    ];
    if condition::is_true(&status.conditions, names::condition::DELETION_BLOCKED) {
        statements.push(unblocked());
    }
    statements.extend(resumed(status));
    statements
}

fn made<S>(
    outcome: &Outcome<S>,
    carried: Option<&Result<Standing, Trouble>>,
    (status, further): (&Status<S>, Vec<Statement>),
) -> Vec<Statement> {
    let mut statements = outcome.statements();
    match carried {
        Some(Ok(standing)) => statements.extend(standing.statements().into_iter().chain(further)),
        Some(Err(trouble)) => statements.extend(troubled(trouble)),
        None => statements.extend(further),
    }
    let unsaid = |type_: &str| {
        let is_said = statements.iter().any(|statement| statement.type_ == type_);
        condition::find(&status.conditions, type_).filter(|_| !is_said)
    };
    let resumed = unsaid(names::condition::PAUSED).map(|_| resumed_statement());
    let over = unsaid(names::condition::DEGRADED).map(|degraded| heat::over_statement(&degraded.reason));
    let unblocked = unsaid(names::condition::DELETION_BLOCKED).filter(|it| it.status == "True").map(|_| unblocked());
    statements.extend(resumed.into_iter().chain(over).chain(unblocked));
    statements
}

fn troubled(trouble: &Trouble) -> [Statement; 3] {
    let (reason, message, stalled) = (trouble.reason(), trouble.to_string(), trouble.needs_a_person());
    [
        Statement::new(names::condition::READY, false, reason, message.clone()),
        Statement::new(names::condition::PROGRESSING, !stalled, reason, message.clone()),
        Statement::new(names::condition::STALLED, stalled, reason, if stalled { &message } else { "" }),
    ]
}

/// Writes a status if it is not what the resource has already.
pub(crate) async fn write<R: CustomResource>(
    resource: &R,
    status: Status<R::Status>,
    cx: &Context<R>,
) -> Result<(), Error> {
    if resource.status() == Some(&status) {
        return Ok(());
    }
    let meta = resource.meta();
    let api_resource = ApiResource::erase::<R>(&());
    // What is remembered of upgrades is written only over what was read: an old view must not forget a failure.
    let version = meta.resource_version.as_ref().filter(|_| status.upgrade.is_some());
    // The uid keeps a late report off a successor with the same name.
    let patch = json!({
        "apiVersion": api_resource.api_version,
        "kind": api_resource.kind,
        "metadata": {"name": meta.name, "uid": meta.uid, "resourceVersion": version},
        "status": status,
    });
    let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
    let place = Place { resource: &api_resource, namespace, name };
    match place.apply(&cx.client(), cx.name(), Some("status"), &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_statements_about_a_condition_counts() {
        let said = [("Ready", true), ("Stalled", false), ("Ready", false)];
        let said = said.map(|(type_, truth)| Statement::new(type_, truth, "Said", ""));
        let last: Vec<_> =
            last_words(said.to_vec()).into_iter().map(|it| format!("{}={}", it.type_, it.truth.as_str())).collect();
        assert_eq!(last, ["Ready=False", "Stalled=False"]);
    }
}
