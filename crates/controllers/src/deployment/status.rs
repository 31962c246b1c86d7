//! The status of a Deployment: counts, and the conditions Available, Progressing and ReplicaFailure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::scale;
use crate::replicaset::REPLICA_FAILURE;

pub(crate) const AVAILABLE: &str = "Available";
pub(crate) const PROGRESSING: &str = "Progressing";

/// Reasons of the condition Progressing that decide what happens next.
pub(crate) const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// "No deadline", as clients write it.
const NO_DEADLINE_SECONDS: i32 = i32::MAX;

/// The counts, with the conditions as they were and Available decided anew.
pub(crate) fn counts(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let all = || old.iter().copied().chain(new);
    let sum = |of: fn(&ReplicaSet) -> i32| all().map(of).sum::<i32>();
    let available = sum(scale::available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(replicas)),
        updated_replicas: nonzero(new.map_or(0, replicas)),
        ready_replicas: nonzero(sum(ready)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((sum(scale::size) - available).max(0)),
        terminating_replicas: Some(sum(terminating)),
        collision_count: before.collision_count,
        conditions: before.conditions,
    };
    let enough = available >= scale::wanted(deployment) - scale::limits(deployment).unavailable;
    let (reason, message) = match enough {
        true => ("MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    };
    set(&mut status, condition(AVAILABLE, if enough { "True" } else { "False" }, reason, message, now), Progress::Same);
    status
}

/// Decides Progressing and ReplicaFailure during a rollout.
pub(crate) fn rollout(
    deployment: &Deployment,
    new: Option<&ReplicaSet>,
    old: &[&ReplicaSet],
    now: Timestamp,
) -> DeploymentStatus {
    let mut status = counts(deployment, new, old, now);
    let known = find(&status, PROGRESSING).cloned();
    let was_complete = status.replicas == status.updated_replicas
        && known.as_ref().is_some_and(|known| known.reason.as_deref() == Some(NEW_SET_AVAILABLE));
    match deadline_seconds(deployment) {
        None => remove(&mut status, PROGRESSING),
        Some(_) if was_complete => {}
        Some(deadline) => {
            let subject = new.map_or_else(
                || format!("Deployment \"{}\"", deployment.name_any()),
                |new| format!("ReplicaSet \"{}\"", new.name_any()),
            );
            if is_complete(deployment, &status) {
                let message = format!("{subject} has successfully progressed.");
                set(&mut status, condition(PROGRESSING, "True", NEW_SET_AVAILABLE, &message, now), Progress::Same);
            } else if has_progressed(deployment, &status) {
                let message = format!("{subject} is progressing.");
                set(&mut status, condition(PROGRESSING, "True", "ReplicaSetUpdated", &message, now), Progress::Made);
            } else if known.is_some_and(|known| timed_out(&known, deadline, now)) {
                let message = format!("{subject} has timed out progressing.");
                set(&mut status, condition(PROGRESSING, "False", DEADLINE_EXCEEDED, &message, now), Progress::Same);
            }
        }
    }
    failure(&mut status, new, old);
    status
}

/// When the rollout runs into its deadline if nothing moves.
pub(crate) fn deadline(deployment: &Deployment, status: &DeploymentStatus) -> Option<Timestamp> {
    let seconds = deadline_seconds(deployment)?;
    let progressing = find(status, PROGRESSING)?;
    if matches!(progressing.reason.as_deref(), Some(NEW_SET_AVAILABLE | DEADLINE_EXCEEDED)) {
        return None;
    }
    due(progressing, seconds)
}

/// Whether every Pod is of the new template and available, and the spec has been seen.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = scale::wanted(deployment);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.observed_generation >= deployment.metadata.generation
}

/// Sets Progressing with that status, reason and message, if the Deployment has a deadline at all.
pub(crate) fn note(
    deployment: &Deployment,
    status: &mut DeploymentStatus,
    (value, reason): (&str, &str),
    message: &str,
    now: Timestamp,
) {
    if deadline_seconds(deployment).is_some() {
        set(status, condition(PROGRESSING, value, reason, message, now), Progress::Same);
    }
}

/// The reason of Progressing, if it is set.
pub(crate) fn progress_reason(status: &DeploymentStatus) -> Option<&str> {
    find(status, PROGRESSING)?.reason.as_deref()
}

fn deadline_seconds(deployment: &Deployment) -> Option<i32> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds.unwrap_or(600);
    (seconds != NO_DEADLINE_SECONDS).then_some(seconds)
}

fn has_progressed(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let before = deployment.status.clone().unwrap_or_default();
    let count = |number: Option<i32>| number.unwrap_or(0);
    let old = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(status.updated_replicas) > count(before.updated_replicas)
        || old(status) < old(&before)
        || count(status.ready_replicas) > count(before.ready_replicas)
        || count(status.available_replicas) > count(before.available_replicas)
}

fn timed_out(progressing: &DeploymentCondition, deadline_seconds: i32, now: Timestamp) -> bool {
    match progressing.reason.as_deref() {
        Some(NEW_SET_AVAILABLE) => false,
        Some(DEADLINE_EXCEEDED) => true,
        _ => due(progressing, deadline_seconds).is_some_and(|due| due <= now),
    }
}

fn due(progressing: &DeploymentCondition, deadline_seconds: i32) -> Option<Timestamp> {
    let from = progressing.last_update_time.as_ref()?.0;
    from.checked_add(SignedDuration::from_secs(i64::from(deadline_seconds))).ok()
}

fn failure(status: &mut DeploymentStatus, new: Option<&ReplicaSet>, old: &[&ReplicaSet]) {
    let failed = |set: &ReplicaSet| {
        let conditions = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == REPLICA_FAILURE && condition.status == "True")
    };
    let Some(found) = new.into_iter().chain(old.iter().copied()).find_map(failed) else {
        return remove(status, REPLICA_FAILURE);
    };
    let since = found.last_transition_time.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let (reason, message) = (found.reason.unwrap_or_default(), found.message.unwrap_or_default());
    set(status, condition(REPLICA_FAILURE, "True", &reason, &message, since), Progress::Same);
}

/// Whether a condition of the same status and reason is to be renewed: progress moves the deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    Same,
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(Time(now)),
        last_update_time: Some(Time(now)),
    }
}

fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition, progress: Progress) {
    let conditions = status.conditions.get_or_insert_default();
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        None => conditions.push(condition),
        Some(known) => {
            let unchanged = known.status == condition.status && known.reason == condition.reason;
            if unchanged && progress == Progress::Same {
                return;
            }
            if known.status == condition.status {
                condition.last_transition_time = known.last_transition_time.clone();
            }
            *known = condition;
        }
    }
}

fn find<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}

fn replicas(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

fn ready(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)
}

fn terminating(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.terminating_replicas).unwrap_or(0)
}

fn nonzero(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(replicas: i32, available: i32) -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "d-1"}, "spec": {"replicas": 2, "selector": {}},
            "status": {"replicas": replicas, "readyReplicas": available, "availableReplicas": available}}))
        .unwrap()
    }

    /// One look at a Deployment of two, at that second after its start.
    fn look(deployment: &mut Deployment, (replicas, available): (i32, i32), second: i64) -> String {
        let now = Timestamp::from_second(second).unwrap();
        let new = set(replicas, available);
        let mut status = rollout(deployment, Some(&new), &[], now);
        if progress_reason(&status).is_none() {
            note(deployment, &mut status, ("True", "NewReplicaSetCreated"), "", now);
        }
        deployment.status = Some(status.clone());
        let due = deadline(deployment, &status).map(|due| due.as_second().to_string()).unwrap_or_default();
        format!("{} {due}", progress_reason(&status).unwrap_or_default()).trim_end().to_owned()
    }

    #[test]
    fn a_rollout_has_until_its_deadline_for_each_step() {
        let mut deployment: Deployment = serde_json::from_value(json!({"metadata": {"name": "d", "generation": 1},
            "spec": {"replicas": 2, "progressDeadlineSeconds": 60, "selector": {}, "template": {}}}))
        .unwrap();
        assert_eq!(look(&mut deployment, (0, 0), 0), "NewReplicaSetCreated 60");
        assert_eq!(look(&mut deployment, (1, 0), 50), "ReplicaSetUpdated 110", "progress moves the deadline");
        assert_eq!(look(&mut deployment, (1, 0), 109), "ReplicaSetUpdated 110");
        assert_eq!(look(&mut deployment, (1, 0), 110), "ProgressDeadlineExceeded");
        assert_eq!(look(&mut deployment, (2, 1), 200), "ReplicaSetUpdated 260", "late is better than never");
        assert_eq!(look(&mut deployment, (2, 2), 210), "NewReplicaSetAvailable");
        assert_eq!(
            look(&mut deployment, (2, 1), 999),
            "NewReplicaSetAvailable",
            "a Pod that fails later is no rollout"
        );
    }
}
