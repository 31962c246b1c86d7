//! What a ReplicaSet does next, and what its status says.

use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rank;
use crate::pods;

/// Most Pods made or deleted in one go; the rest follows when these have been seen.
pub(crate) const BURST_MAX: usize = 500;

/// The condition that says why Pods could not be made or deleted.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What is asked for, independent of the kind that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) replicas: i32,
    pub(crate) min_ready_seconds: i32,
    pub(crate) generation: Option<i64>,
}

/// What to do about the number of Pods.
#[derive(Debug, PartialEq)]
pub(crate) enum Change<'a> {
    None,
    Create(usize),
    Delete(Vec<&'a Pod>),
}

/// Compares the active Pods with what is wanted. `neighbours` is asked for only if there are too many.
pub(crate) fn change<'a>(
    wanted: Wanted,
    owned: &[&'a Pod],
    neighbours: impl FnOnce() -> HashMap<String, usize>,
    now: Timestamp,
) -> Change<'a> {
    let mut active: Vec<&Pod> = owned.iter().copied().filter(|pod| pods::is_active(pod)).collect();
    let replicas = usize::try_from(wanted.replicas).unwrap_or(0);
    if active.len() < replicas {
        return Change::Create((replicas - active.len()).min(BURST_MAX));
    }
    let surplus = (active.len() - replicas).min(BURST_MAX);
    if surplus == 0 {
        return Change::None;
    }
    rank::by_deletion(&mut active, &neighbours(), now);
    active.truncate(surplus);
    Change::Delete(active)
}

/// A failure to change the number of Pods, as the status tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The status that follows from the owned Pods, and when it will next change by itself.
pub(crate) fn status(
    wanted: Wanted,
    owned: &[&Pod],
    template_labels: &std::collections::BTreeMap<String, String>,
    now: Timestamp,
) -> (ReplicaSetStatus, Option<Timestamp>) {
    let active: Vec<&Pod> = owned.iter().copied().filter(|pod| pods::is_active(pod)).collect();
    let labelled = |pod: &&&Pod| {
        let labels = pod.metadata.labels.as_ref();
        template_labels.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
    };
    let available_at = |pod: &&Pod| pods::available_at(pod, wanted.min_ready_seconds);
    let terminating = owned.iter().filter(|pod| pods::is_terminating(pod) && !pods::is_finished(pod)).count();
    let status = ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: nonzero(active.iter().filter(labelled).count()),
        ready_replicas: nonzero(active.iter().filter(|pod| pods::is_ready(pod)).count()),
        available_replicas: nonzero(active.iter().filter_map(available_at).filter(|at| *at <= now).count()),
        terminating_replicas: Some(count(terminating)),
        observed_generation: wanted.generation,
        conditions: None,
    };
    (status, active.iter().filter_map(available_at).filter(|at| *at > now).min())
}

/// The conditions after `failure` (or its absence), keeping the time of an unchanged condition.
pub(crate) fn conditions(
    before: Option<&Vec<ReplicaSetCondition>>,
    failure: Option<&Failure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions: Vec<_> = before.into_iter().flatten().cloned().collect();
    let known = conditions.iter().position(|condition| condition.type_ == REPLICA_FAILURE);
    match (failure, known) {
        (Some(failure), None) => conditions.push(ReplicaSetCondition {
            type_: REPLICA_FAILURE.to_owned(),
            status: "True".to_owned(),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.message.clone()),
            last_transition_time: Some(Time(now)),
        }),
        (None, Some(index)) => {
            conditions.remove(index);
        }
        (Some(failure), Some(index)) => {
            conditions[index].reason = Some(failure.reason.to_owned());
            conditions[index].message = Some(failure.message.clone());
        }
        (None, None) => {}
    }
    (!conditions.is_empty()).then_some(conditions)
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Counts of zero are left out of a status, as they are by every other server of this API.
fn nonzero(number: usize) -> Option<i32> {
    (number > 0).then(|| count(number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, phase: &str, ready: &str, deleted: Option<&str>) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "a"},
                "deletionTimestamp": deleted},
            "spec": {"nodeName": "n", "containers": []},
            "status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap()
    }

    fn wanted(replicas: i32) -> Wanted {
        Wanted { replicas, min_ready_seconds: 0, generation: Some(1) }
    }

    #[test]
    fn the_number_of_active_pods_is_made_right() {
        let pods =
            [pod("a", "Running", "True", None), pod("b", "Running", "False", None), pod("c", "Failed", "False", None)];
        let leaving = pod("d", "Running", "True", Some("2026-01-01T00:00:00Z"));
        let owned: Vec<&Pod> = pods.iter().chain([&leaving]).collect();
        let check = |replicas, expect: Change<'_>| {
            assert_eq!(change(wanted(replicas), &owned, HashMap::new, Timestamp::now()), expect, "{replicas}");
        };
        check(2, Change::None);
        check(5, Change::Create(3));
        check(1, Change::Delete(vec![&pods[1]]));
        check(0, Change::Delete(vec![&pods[1], &pods[0]]));
        check(10_000, Change::Create(BURST_MAX));
    }

    #[test]
    fn a_pod_is_available_after_its_time() {
        let pods = [pod("a", "Running", "True", None)];
        let owned: Vec<&Pod> = pods.iter().collect();
        let wanted = Wanted { replicas: 1, min_ready_seconds: 10, generation: None };
        let check = |now: &str, available, again: Option<&str>| {
            let (status, at) = status(wanted, &owned, &Default::default(), now.parse().unwrap());
            assert_eq!(status.available_replicas, available, "{now}");
            assert_eq!(at, again.map(|at| at.parse().unwrap()), "{now}");
        };
        check("2026-01-01T00:00:09Z", None, Some("2026-01-01T00:00:10Z"));
        check("2026-01-01T00:00:10Z", Some(1), None);
    }

    #[test]
    fn a_failure_is_told_until_it_is_over() {
        let failure = Failure { reason: "FailedCreate", message: "quota".to_owned() };
        let failed = conditions(None, Some(&failure), Timestamp::UNIX_EPOCH);
        assert_eq!(failed.as_ref().unwrap()[0].message.as_deref(), Some("quota"));
        assert_eq!(conditions(failed.as_ref(), Some(&failure), Timestamp::now()), failed);
        assert_eq!(conditions(failed.as_ref(), None, Timestamp::now()), None);
    }
}
