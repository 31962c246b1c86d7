//! What people are told of an upgrade: conditions and events, from its record.

use windlass_core::{Event, FailedRevision, News, Outcome, Statement, UpgradeStatus, names};

use names::condition::{DEGRADED, PROGRESSING, READY, STALLED};

/// The reason of conditions and events after a rollback, …
const ROLLED_BACK: &str = "RolledBack";
/// … on the way there, …
const ROLLING_BACK: &str = "RollingBack";
/// … and of a first revision that failed.
const INSTALL_FAILED: &str = "InstallFailed";
/// The reason while another revision is tried.
const UPGRADING: &str = "Upgrading";

/// The conditions that follow, beyond those of the outcome.
pub(super) fn statements<S>(record: &UpgradeStatus, outcome: Option<&Outcome<S>>) -> Vec<Statement> {
    let is_settled = matches!(outcome, Some(Outcome::Settled(_)));
    match (&record.failed_revision, outcome) {
        // What is said of such resources is more urgent.
        (_, Some(Outcome::Invalid { .. } | Outcome::Retry { .. })) => Vec::new(),
        (Some(failed), _) if failed.rolled_back_to.is_none() && !is_settled => install_failed(failed),
        // It is well after all.
        (Some(failed), Some(outcome)) if failed.rolled_back_to.is_none() => well(outcome).into_iter().collect(),
        (Some(failed), Some(Outcome::Settled(_))) => rolled_back(failed),
        (Some(failed), Some(Outcome::Waiting { message, .. })) => rolling_back(failed, message),
        (Some(failed), None) => rolling_back(failed, "it has just failed"),
        (None, Some(outcome)) => {
            let progress = match outcome {
                Outcome::Waiting { message, .. } => upgrading(record, message),
                _ => None,
            };
            progress.into_iter().chain(well(outcome)).collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Nothing was taken back. It is always said, unless the author says more: a resource that was put right is as it was before.
fn well<S>(outcome: &Outcome<S>) -> Option<Statement> {
    let mut said = outcome.desired()?.conditions.iter();
    said.all(|statement| statement.type_ != DEGRADED).then(|| Statement::new(DEGRADED, false, "Settled", ""))
}

fn rolled_back(failed: &FailedRevision) -> Vec<Statement> {
    let message = format!("{}. {}", what(failed), remedy(failed));
    vec![
        Statement::new(READY, false, ROLLED_BACK, message.clone()),
        Statement::new(PROGRESSING, false, ROLLED_BACK, message.clone()),
        Statement::new(STALLED, true, ROLLED_BACK, message.clone()),
        Statement::new(DEGRADED, true, ROLLED_BACK, message),
    ]
}

fn rolling_back(failed: &FailedRevision, progress: &str) -> Vec<Statement> {
    let message = format!("{}; on the way back: {progress}", what(failed));
    vec![
        Statement::new(READY, false, ROLLING_BACK, message.clone()),
        Statement::new(PROGRESSING, true, ROLLING_BACK, message.clone()),
        Statement::new(DEGRADED, true, ROLLING_BACK, message),
    ]
}

fn install_failed(failed: &FailedRevision) -> Vec<Statement> {
    let message = format!("{}. {}", what(failed), remedy(failed));
    vec![
        Statement::new(READY, false, INSTALL_FAILED, message.clone()),
        Statement::new(PROGRESSING, false, INSTALL_FAILED, message.clone()),
        Statement::new(STALLED, true, INSTALL_FAILED, message),
    ]
}

/// What an upgrade waits for; a first revision is no upgrade.
fn upgrading(record: &UpgradeStatus, progress: &str) -> Option<Statement> {
    let (good, trial) = (record.last_known_good.as_ref()?, record.in_progress.as_ref()?);
    let message = format!("from {} to {}: {progress}", good.version, trial.version);
    Some(Statement::new(PROGRESSING, true, UPGRADING, message))
}

/// The event about what is new.
pub(crate) fn event(news: &News) -> Event {
    match news {
        News::Succeeded { from, to } => {
            Event::normal("Upgraded", format!("From {from} to {to}, which is known to be good now"))
        }
        News::RolledBack(failed) => Event::warning(ROLLED_BACK, format!("{}. {}", what(failed), remedy(failed))),
        News::Failed(failed) => Event::warning(INSTALL_FAILED, format!("{}. {}", what(failed), remedy(failed))),
    }
}

fn what(failed: &FailedRevision) -> String {
    let FailedRevision { hash, version, reason, rolled_back_to, .. } = failed;
    let back = rolled_back_to.as_ref().map(|good| format!(", and {good} takes its place"));
    format!("{version} (revision {hash}) failed{}: {reason}", back.unwrap_or_default())
}

fn remedy(failed: &FailedRevision) -> String {
    let annotation = names::RETRY_UPGRADE;
    match failed.rolled_back_to {
        Some(_) => format!(
            "It is not tried again: ask for another one in the spec, or give the annotation {annotation} a new value to try this one again"
        ),
        None => "No version was known to be good before, so there is none to go back to: put right what is missing, or ask for another one in the spec".into(),
    }
}
