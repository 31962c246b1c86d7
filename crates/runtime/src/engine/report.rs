//! What a pass reports: the status, written once and only when it changed.

use jiff::Timestamp;
use kube::core::ApiResource;
use serde_json::json;
use windlass_core::{CustomResource, Outcome, Statement, Status, condition, names};

use super::act::{Place, Trouble};
use super::heat;
use super::parts::Standing;
use super::switch::{Switches, paused_statement, resumed_statement};
use crate::reconcile::{Context, Crash, Error};

/// How a pass went.
pub(crate) enum Pass<'a, S> {
    /// The operator answered, and its intent was carried out or not.
    Made { outcome: &'a Outcome<S>, carried: Option<&'a Result<Standing, Trouble>>, switches: &'a Switches },
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
pub(crate) fn status<R: CustomResource>(resource: &R, pass: &Pass<'_, R::Status>, now: Timestamp) -> Status<R::Status> {
    let mut status = resource.status().cloned().unwrap_or_default();
    let generation = resource.meta().generation;
    let statements = match pass {
        Pass::Made { outcome, carried, switches } => {
            status.observed_generation = generation;
            if let Some(own) = outcome.desired().and_then(|desired| desired.status.clone()) {
                status.own = own;
            }
            let mut statements = made(outcome, *carried, &status);
            if matches!(carried, Some(Ok(_))) {
                statements.extend(switches.statements());
            }
            statements
        }
        Pass::Crashed(crash) => vec![
            Statement::new(names::condition::READY, false, crash.reason(), crash.to_string()),
            Statement::new(names::condition::PROGRESSING, true, crash.reason(), "it is tried again"),
        ],
        Pass::HotLoop { message } => vec![heat::hot_statement(message)],
        Pass::Paused => vec![paused_statement()],
        Pass::Deleting { message } => deleting(&status, message),
        Pass::DeletionBlocked { reason, why } => vec![
            Statement::new(names::condition::DELETION_BLOCKED, true, reason, *why),
            Statement::new(names::condition::READY, false, "Deleting", "the resource is being deleted"),
        ],
    };
    for statement in statements {
        condition::set(&mut status.conditions, statement, generation, now);
    }
    status
}

fn deleting<S>(status: &Status<S>, message: &str) -> Vec<Statement> {
    let mut statements = vec![
        Statement::new(names::condition::READY, false, "Deleting", message),
        Statement::new(names::condition::PROGRESSING, true, "Deleting", message),
    ];
    if condition::is_true(&status.conditions, names::condition::DELETION_BLOCKED) {
        statements.push(Statement::new(names::condition::DELETION_BLOCKED, false, "Unblocked", ""));
    }
    statements
}

fn made<S>(outcome: &Outcome<S>, carried: Option<&Result<Standing, Trouble>>, status: &Status<S>) -> Vec<Statement> {
    let mut statements = outcome.statements();
    match carried {
        Some(Ok(standing)) => statements.extend(standing.statements()),
        Some(Err(trouble)) => statements.extend(troubled(trouble)),
        None => {}
    }
    let unsaid = |type_: &str| {
        let is_said = statements.iter().any(|statement| statement.type_ == type_);
        condition::find(&status.conditions, type_).filter(|_| !is_said)
    };
    let resumed = unsaid(names::condition::PAUSED).map(|_| resumed_statement());
    let over = unsaid(names::condition::DEGRADED).map(|degraded| heat::over_statement(&degraded.reason));
    statements.extend(resumed.into_iter().chain(over));
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
    // The uid keeps a late report off a successor with the same name.
    let patch = json!({
        "apiVersion": api_resource.api_version,
        "kind": api_resource.kind,
        "metadata": {"name": meta.name, "uid": meta.uid},
        "status": status,
    });
    let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
    let place = Place { resource: &api_resource, namespace, name };
    match place.apply(&cx.client(), cx.name(), Some("status"), &patch).await {
        Ok(()) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
