//! Which Pods a ReplicaSet gives up first when it has too many.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::pods;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts `pods` so that the ones to delete come first.
///
/// `neighbours` counts the active Pods of the same family (all ReplicaSets of one Deployment) per node: Pods that share
/// a node with many of them go before Pods that stand alone.
pub(crate) fn by_deletion(pods: &mut [&Pod], neighbours: &HashMap<String, usize>, now: Timestamp) {
    pods.sort_by_cached_key(|pod| rank(pod, neighbours, now));
}

/// What decides, in this order. Ages count by their magnitude alone: within one power of two the choice is by UID, so that
/// the oldest Pods are not always the survivors. (Upstream asks for the UID as soon as two ages differ within a magnitude,
/// which is no order: three Pods can each go before the next.)
type Rank = (bool, u8, bool, i32, Reverse<usize>, Option<u32>, Reverse<i32>, Option<u32>, Option<String>);

fn rank(pod: &Pod, neighbours: &HashMap<String, usize>, now: Timestamp) -> Rank {
    let crowd = pods::node(pod).and_then(|node| neighbours.get(node)).copied().unwrap_or(0);
    let age = |since: Option<Timestamp>| since.map(|since| magnitude(now, since));
    (
        pods::node(pod).is_some(),
        phase_order(pod),
        pods::is_ready(pod),
        deletion_cost(pod),
        Reverse(crowd),
        age(pods::ready_since(pod)),
        Reverse(restarts(pod)),
        age(created(pod)),
        pod.uid(),
    )
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

    #[test]
    fn pods_of_like_age_have_one_order() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        let mut pods = Vec::new();
        for number in 0..64 {
            // Ready at three times of one magnitude, with restarts that would turn the order around.
            let ready = format!("2026-01-01T00:00:{:02}Z", 10 + number % 3);
            let mut pod = pod(&format!("p{:02}", number * 37 % 64), "a", "Running", Some(&ready), "0");
            let restarts =
                json!([{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": number % 5}]);
            pod.status.as_mut().unwrap().container_statuses = serde_json::from_value(restarts).unwrap();
            pods.push(pod);
        }
        let names = |order: Vec<&Pod>| order.iter().map(|pod| pod.name_any()).collect::<Vec<_>>();
        let sorted = |mut order: Vec<&Pod>| {
            by_deletion(&mut order, &HashMap::new(), now);
            names(order)
        };
        assert_eq!(sorted(pods.iter().collect()), sorted(pods.iter().rev().collect()));
    }
}
