//! What people are told of a cluster: status and conditions, from what its members say.

use windlass::names::condition;
use windlass::prelude::*;

use super::rolling::Turn;
use super::survey::{Seen, Survey};
use crate::kind::{ArchiveStatus, MemberStatus, PostgresCluster, PostgresClusterStatus, RestoredStatus};
use crate::names;
use crate::wire::{Archiving, Report, Role};

/// Whether writes are taken.
const AVAILABLE: &str = "Available";
/// Whether the log gets into the archive.
const ARCHIVING: &str = "Archiving";
/// What a member waits for that only people can give: the words, and what is to be done.
const NEEDS_A_PERSON: [&str; 3] = ["NoSafeCandidate", "ForeignData", "RestoreFailed"];

/// What is wanted, with how far it is.
pub(super) fn outcome(
    desired: Desired<PostgresClusterStatus>,
    cluster: &PostgresCluster,
    survey: &Survey,
    turn: &Turn,
) -> Outcome<PostgresClusterStatus> {
    let status = status(cluster, survey, turn);
    let blocked = blocked(survey);
    let missing = missing(survey, turn);
    let available = match survey.primary() {
        Some((primary, _)) => Statement::new(AVAILABLE, true, "PrimaryServes", format!("{primary} takes writes")),
        None => Statement::new(AVAILABLE, false, "NoPrimary", "no member takes writes"),
    };
    let is_short = status.primary.is_some() && status.ready_instances < cluster.spec.instances;
    let degraded = if is_short { missing.join("; ") } else { String::new() };
    let reason = if is_short { "MembersAway" } else { "AllThere" };
    let mut desired = desired
        .status(status)
        .condition(available)
        .condition(Statement::new(condition::DEGRADED, is_short, reason, degraded))
        .progress(missing.join("; "));
    if cluster.spec.archive.is_some() {
        desired = desired.condition(archiving(survey));
    }
    if let Some((word, message)) = blocked {
        desired = desired.condition(Statement::new(condition::STALLED, true, word, message));
        return desired.waiting(word);
    }
    desired.ready_when(missing.is_empty())
}

/// Whether the primary, and those that may follow it, get their log into the archive.
fn archiving(survey: &Survey) -> Statement {
    let of = |(name, seen): (&String, &Seen)| Some((name.clone(), seen.report.as_ref()?.archive.clone()?));
    let all: Vec<_> = survey.members.iter().filter_map(of).collect();
    if let Some((member, file)) = all.iter().find_map(|(member, it)| Some((member, it.failing.as_ref()?))) {
        let pod = names::pod(member);
        let message = format!(
            "{member} cannot archive {file}, and keeps its log until it can: `kubectl logs {pod}` says why; is the storage full?"
        );
        return Statement::new(ARCHIVING, false, "ArchiveFails", message);
    }
    let primary = survey.primary().and_then(|(_, seen)| seen.report.as_ref()?.archive.clone());
    match primary.and_then(|archive| archive.last) {
        Some(last) => Statement::new(ARCHIVING, true, "Archiving", format!("{last} is in the archive")),
        None => Statement::new(ARCHIVING, Truth::Unknown, "NothingYet", "nothing was archived yet"),
    }
}

/// What keeps the cluster from being as declared.
fn missing(survey: &Survey, turn: &Turn) -> Vec<String> {
    let mut missing = turn.news.clone();
    if survey.primary().is_none() {
        missing.push("no member takes writes".into());
    }
    for member in survey.all() {
        let seen = survey.members.get(&member);
        let is_wanted = survey.wanted.contains(&member);
        let message = match seen {
            None => Some(format!("{member} is to be made")),
            Some(_) if !is_wanted => Some(format!("{member} is to go")),
            Some(seen) if !seen.is_ready || seen.role() == Role::None => {
                Some(format!("{member} is not ready: {}", saying(seen)))
            }
            Some(seen) if !seen.is_settled() => Some(format!("{member} is to be changed")),
            Some(_) => None,
        };
        missing.extend(message);
    }
    missing
}

fn saying(seen: &Seen) -> String {
    match &seen.report {
        Some(report) if report.message.is_empty() => report.state.clone(),
        Some(report) => format!("{}: {}", report.state, report.message),
        None if seen.is_broken => "its container does not run".into(),
        None => "it has not said anything yet".into(),
    }
}

/// What only people can help with.
fn blocked(survey: &Survey) -> Option<(&'static str, String)> {
    let reports = survey.members.values().filter_map(|seen| seen.report.as_ref());
    let mut all = reports.filter(|report| survey.primary().is_none() || report.state != NEEDS_A_PERSON[0]);
    all.find_map(|report| {
        let word = NEEDS_A_PERSON.into_iter().find(|word| *word == report.state)?;
        Some((word, format!("{}: {}", report.member, report.message)))
    })
}

fn status(cluster: &PostgresCluster, survey: &Survey, turn: &Turn) -> PostgresClusterStatus {
    let before = cluster.status.as_ref().map(|status| status.own.clone()).unwrap_or_default();
    let primary = survey.primary();
    let report: Option<&Report> = primary.and_then(|(_, seen)| seen.report.as_ref());
    let selector = names::labels(&cluster.name_any());
    let ready = survey.members.values().filter(|seen| seen.is_ready).count();
    PostgresClusterStatus {
        instances: u32::try_from(survey.members.len()).unwrap_or(u32::MAX),
        ready_instances: u32::try_from(ready).unwrap_or(u32::MAX),
        selector: selector.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
        primary: primary.map(|(name, _)| name.clone()),
        current_version: report.and_then(|report| report.version.clone()).or(before.current_version),
        timeline: report.and_then(|report| report.position).map(|position| position.timeline).or(before.timeline),
        system_id: report.and_then(|report| report.system_id.clone()).or(before.system_id),
        archive: report.and_then(|report| report.archive.as_ref()).map(archive).or(before.archive),
        restored: survey.members.values().find_map(restored).or(before.restored),
        members: survey.members.iter().map(|(name, seen)| member(name, seen, report)).collect(),
        switchover: turn.switchover.clone(),
    }
}

fn restored(seen: &Seen) -> Option<RestoredStatus> {
    let restored = seen.report.as_ref()?.restored.clone()?;
    Some(RestoredStatus { backup: restored.backup, recovered_to: restored.recovered_to })
}

fn archive(archiving: &Archiving) -> ArchiveStatus {
    ArchiveStatus {
        path: archiving.path.clone(),
        last_segment: archiving.last.clone(),
        failed_segment: archiving.failing.clone(),
    }
}

fn member(name: &str, seen: &Seen, primary: Option<&Report>) -> MemberStatus {
    let report = seen.report.clone().unwrap_or_default();
    let role = match report.role {
        Role::Primary => Some(names::PRIMARY.to_owned()),
        Role::Replica => Some(names::REPLICA.to_owned()),
        Role::None => None,
    };
    MemberStatus {
        name: name.to_owned(),
        role,
        ready: seen.is_ready,
        state: if seen.report.is_some() { report.state } else { "Starting".into() },
        message: report.message,
        timeline: report.position.map(|position| position.timeline),
        version: report.version,
        lag_bytes: primary.and_then(|primary| primary.lags.get(name).copied()),
        pending_restart: report.pending_restart,
    }
}
