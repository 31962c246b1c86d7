//! Which Pods a ReplicaSet gives up first when it has too many.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::pods;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts `pods` so that the ones to delete come first.
///
/// `neighbours` counts the ready Pods of the same family (all ReplicaSets of one Deployment) per node: Pods that share
/// a node with many of them go before Pods that stand alone.
pub(crate) fn by_deletion(pods: &mut [&Pod], neighbours: &HashMap<String, usize>, now: Timestamp) {
    pods.sort_by(|a, b| compare(a, b, neighbours, now));
}

fn compare(a: &Pod, b: &Pod, neighbours: &HashMap<String, usize>, now: Timestamp) -> Ordering {
    let crowd = |pod: &Pod| pods::node(pod).and_then(|node| neighbours.get(node)).copied().unwrap_or(0);
    (pods::node(a).is_some().cmp(&pods::node(b).is_some()))
        .then_with(|| phase_order(a).cmp(&phase_order(b)))
        .then_with(|| pods::is_ready(a).cmp(&pods::is_ready(b)))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| crowd(b).cmp(&crowd(a)))
        .then_with(|| by_age(pods::ready_since(a), pods::ready_since(b), (a, b), now))
        .then_with(|| Reverse(restarts(a)).cmp(&Reverse(restarts(b))))
        .then_with(|| by_age(created(a), created(b), (a, b), now))
}

fn phase_order(pod: &Pod) -> u8 {
    match pods::phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|container| container.restart_count).max().unwrap_or(0)
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

/// The younger first, by magnitude of age: within one power of two the choice is by UID, so that the oldest Pods are
/// not always the survivors.
fn by_age(a: Option<Timestamp>, b: Option<Timestamp>, (pod_a, pod_b): (&Pod, &Pod), now: Timestamp) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else { return b.is_none().cmp(&a.is_none()) };
    if a == b {
        return Ordering::Equal;
    }
    magnitude(now, a).cmp(&magnitude(now, b)).then_with(|| pod_a.uid().cmp(&pod_b.uid()))
}

fn magnitude(now: Timestamp, then: Timestamp) -> u32 {
    let age = u128::try_from(now.duration_since(then).as_nanos()).unwrap_or(0);
    age.checked_ilog2().map_or(0, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, node: &str, phase: &str, ready_since: Option<&str>, cost: &str) -> Pod {
        let conditions = ready_since.map(|at| json!([{"type": "Ready", "status": "True", "lastTransitionTime": at}]));
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {DELETION_COST: cost}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn the_least_useful_pods_go_first() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let pods = [
            pod("old", "a", "Running", Some("2026-01-01T00:00:10Z"), "0"),
            pod("young", "a", "Running", Some("2026-01-01T23:59:50Z"), "0"),
            pod("dear", "a", "Running", Some("2026-01-01T23:59:50Z"), "9"),
            pod("cheap", "a", "Running", Some("2026-01-01T00:00:10Z"), "-1"),
            pod("not-ready", "a", "Running", None, "0"),
            pod("pending", "a", "Pending", None, "0"),
            pod("unassigned", "", "Pending", None, "0"),
            pod("crowded", "b", "Running", Some("2026-01-01T00:00:10Z"), "0"),
        ];
        let mut order: Vec<&Pod> = pods.iter().collect();
        by_deletion(&mut order, &[("a".to_owned(), 1), ("b".to_owned(), 3)].into(), now);
        let names: Vec<_> = order.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["unassigned", "pending", "not-ready", "cheap", "crowded", "young", "old", "dear"]);
    }
}
