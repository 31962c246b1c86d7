//! The next step of a StatefulSet, and what its status says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::identity;
use crate::percent::{self, Round};
use crate::pods;
use crate::revisions::HASH_LABEL;

/// What to do, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make the Pod with that ordinal of the current or of the updated revision.
    Create { ordinal: i32, updated: bool },
    /// Delete the Pod with that ordinal.
    Delete { ordinal: i32 },
}

/// What a StatefulSet sees.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) set: &'a StatefulSet,
    pub(crate) pods: &'a [&'a Pod],
    /// Names of the two revisions.
    pub(crate) current: &'a str,
    pub(crate) update: &'a str,
    pub(crate) now: Timestamp,
}

impl Observed<'_> {
    fn replicas(&self) -> i32 {
        self.set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
    }

    fn start(&self) -> i32 {
        let ordinals = self.set.spec.as_ref().and_then(|spec| spec.ordinals.as_ref());
        ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0)
    }

    fn is_ordered(&self) -> bool {
        self.set.spec.as_ref().and_then(|spec| spec.pod_management_policy.as_deref()) != Some("Parallel")
    }

    /// The first ordinal that gets the updated revision; `None` when updates wait for a deletion.
    fn update_from(&self) -> Option<i32> {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        Some(self.start() + rolling.and_then(|rolling| rolling.partition).unwrap_or(0))
    }

    /// How many Pods may be unwell at the same time during an update.
    fn max_unavailable(&self) -> usize {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        let most = strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.max_unavailable.clone());
        let most = most.map_or(1, |most| percent::of(&most, self.replicas(), Round::Up));
        usize::try_from(most).unwrap_or(1).max(1)
    }

    fn min_ready_seconds(&self) -> i32 {
        self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0)
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        let available = pods::available_at(pod, self.min_ready_seconds()).is_some_and(|at| at <= self.now);
        pods::phase(pod) == "Running" && available && !pods::is_terminating(pod)
    }

    fn by_ordinal(&self) -> BTreeMap<i32, &Pod> {
        self.pods.iter().filter_map(|pod| Some((identity::ordinal(self.set, pod)?, *pod))).collect()
    }

    pub(crate) fn is_wanted(&self, ordinal: i32) -> bool {
        (self.start()..self.start() + self.replicas()).contains(&ordinal)
    }

    /// Whether a Pod made now is of the updated revision: below the partition it is still the current one.
    fn makes_updated(&self, ordinal: i32) -> bool {
        self.update_from().is_none_or(|from| ordinal >= from)
    }
}

/// Decides the next steps: in order one at a time, in parallel all at once.
pub(crate) fn steps(observed: Observed<'_>) -> Vec<Step> {
    if observed.set.metadata.deletion_timestamp.is_some() {
        return vec![];
    }
    let known = observed.by_ordinal();
    let mut steps = vec![];
    for ordinal in observed.start()..observed.start() + observed.replicas() {
        let step = match known.get(&ordinal) {
            None => Some(Step::Create { ordinal, updated: observed.makes_updated(ordinal) }),
            Some(pod) if pods::is_terminating(pod) => None,
            // A Pod that has ended is made anew under the same name.
            Some(pod) if pods::is_finished(pod) => Some(Step::Delete { ordinal }),
            Some(pod) if observed.is_healthy(pod) => continue,
            Some(_) => None,
        };
        steps.extend(step);
        if observed.is_ordered() {
            return steps;
        }
    }
    steps.extend(shrink(observed, &known));
    if steps.is_empty() {
        steps.extend(update(observed, &known));
    }
    steps
}

/// Deletes surplus Pods from the highest ordinal down; in order, each one waits for those before it to be well.
fn shrink(observed: Observed<'_>, known: &BTreeMap<i32, &Pod>) -> Vec<Step> {
    let surplus: Vec<(i32, &Pod)> =
        known.iter().rev().filter(|(ordinal, _)| !observed.is_wanted(**ordinal)).map(|(o, pod)| (*o, *pod)).collect();
    if !observed.is_ordered() {
        let alive = surplus.into_iter().filter(|(_, pod)| !pods::is_terminating(pod));
        return alive.map(|(ordinal, _)| Step::Delete { ordinal }).collect();
    }
    // One that is not well waits for those below it that are not, so that nothing goes while all of them are in trouble.
    let first_unwell = known.iter().find(|(_, pod)| !observed.is_healthy(pod)).map(|(ordinal, _)| *ordinal);
    match surplus.first() {
        Some((ordinal, pod))
            if !pods::is_terminating(pod) && (observed.is_healthy(pod) || first_unwell == Some(*ordinal)) =>
        {
            vec![Step::Delete { ordinal: *ordinal }]
        }
        _ => vec![],
    }
}

/// Replaces Pods of an older revision from the highest ordinal down, until as many as may be are replaced or unwell.
fn update(observed: Observed<'_>, known: &BTreeMap<i32, &Pod>) -> Vec<Step> {
    let Some(from) = observed.update_from() else { return vec![] };
    if known.keys().any(|ordinal| !observed.is_wanted(*ordinal)) {
        return vec![];
    }
    let mut room = observed.max_unavailable();
    let mut steps = vec![];
    for (ordinal, pod) in known.range(from..).rev() {
        if room == 0 {
            break;
        }
        let is_old = revision(pod) != Some(observed.update) && !pods::is_terminating(pod);
        if is_old {
            steps.push(Step::Delete { ordinal: *ordinal });
        }
        room -= usize::from(is_old || !observed.is_healthy(pod));
    }
    steps
}

/// The status, and when it will change by itself.
pub(crate) fn status(observed: Observed<'_>) -> (StatefulSetStatus, Option<Timestamp>) {
    let before = observed.set.status.clone().unwrap_or_default();
    let alive: Vec<&Pod> = observed.pods.iter().copied().filter(|pod| !pods::is_terminating(pod)).collect();
    let of = |name: &str| alive.iter().filter(|pod| revision(pod) == Some(name)).count();
    let is_ready = |pod: &&&Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
    let available_at = |pod: &&Pod| pods::available_at(pod, observed.min_ready_seconds());
    let mut status = StatefulSetStatus {
        observed_generation: observed.set.metadata.generation,
        replicas: count(observed.pods.len()),
        ready_replicas: Some(count(alive.iter().filter(is_ready).count())),
        available_replicas: Some(count(alive.iter().filter_map(available_at).filter(|at| *at <= observed.now).count())),
        current_replicas: Some(count(of(observed.current))),
        updated_replicas: Some(count(of(observed.update))),
        current_revision: Some(observed.current.to_owned()),
        update_revision: Some(observed.update.to_owned()),
        collision_count: Some(before.collision_count.unwrap_or(0)),
        conditions: before.conditions,
    };
    let all = Some(status.replicas);
    let is_rolling = observed.update_from().is_some();
    if is_rolling && status.updated_replicas == all && status.ready_replicas == all {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
    let again = alive.iter().filter_map(available_at).filter(|at| *at > observed.now).min();
    (status, again)
}

/// The revision of a Pod.
pub(crate) fn revision(pod: &Pod) -> Option<&str> {
    pod.labels().get(HASH_LABEL).map(String::as_str)
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Pods as `ordinal:state:revision`, state being r(eady), n(ot ready), t(erminating) or f(ailed).
    fn pods(list: &str) -> Vec<Pod> {
        let pod = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let (phase, ready) = match parts[1] {
                "f" => ("Failed", "False"),
                "n" => ("Running", "False"),
                _ => ("Running", "True"),
            };
            serde_json::from_value(json!({
                "metadata": {"name": format!("web-{}", parts[0]), "labels": {HASH_LABEL: parts[2]},
                    "deletionTimestamp": (parts[1] == "t").then_some("2026-01-01T00:00:00Z")},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}))
            .unwrap()
        };
        list.split_whitespace().map(pod).collect()
    }

    fn set(spec: Value) -> StatefulSet {
        let mut all = json!({"selector": {}, "template": {}, "serviceName": "s"});
        spec.as_object().unwrap().iter().for_each(|(key, value)| all[key] = value.clone());
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": all})).unwrap()
    }

    fn check(spec: Value, list: &str, expect: &str) {
        let (set, pods) = (set(spec.clone()), pods(list));
        let pods: Vec<&Pod> = pods.iter().collect();
        let observed = Observed { set: &set, pods: &pods, current: "a", update: "b", now: Timestamp::now() };
        let told: Vec<String> = steps(observed)
            .iter()
            .map(|step| match step {
                Step::Create { ordinal, updated } => format!("+{ordinal}{}", if *updated { "b" } else { "a" }),
                Step::Delete { ordinal } => format!("-{ordinal}"),
            })
            .collect();
        assert_eq!(told.join(" "), expect, "{spec} {list}");
    }

    #[test]
    fn pods_come_and_go_in_order() {
        let three = || json!({"replicas": 3});
        check(three(), "", "+0b");
        check(three(), "0:n:b", "");
        check(three(), "0:r:b", "+1b");
        check(three(), "0:r:b 1:t:b", "");
        check(three(), "0:r:b 1:f:b", "-1");
        check(three(), "0:r:b 1:r:b 2:r:b", "");
        check(json!({"replicas": 1}), "0:r:b 1:r:b 2:r:b", "-2");
        check(json!({"replicas": 1}), "0:r:b 1:r:b 2:t:b", "");
        check(json!({"replicas": 1}), "0:n:b 1:r:b 2:r:b", "");
        check(json!({"replicas": 0}), "0:n:b 1:n:b 2:n:b", "");
        check(json!({"replicas": 0}), "0:n:b 1:n:b 2:r:b", "-2");
        check(json!({"replicas": 0}), "0:r:b 1:r:b 2:n:b", "-2");
        check(json!({"replicas": 2, "ordinals": {"start": 5}}), "", "+5b");
        check(json!({"replicas": 2, "ordinals": {"start": 5}}), "0:r:b 5:r:b 6:r:b", "-0");
    }

    #[test]
    fn in_parallel_nobody_waits() {
        let spec = |replicas: i32| json!({"replicas": replicas, "podManagementPolicy": "Parallel"});
        check(spec(3), "", "+0b +1b +2b");
        check(spec(3), "0:n:b", "+1b +2b");
        check(spec(1), "0:r:b 1:r:b 2:r:b", "-2 -1");
    }

    #[test]
    fn an_update_goes_from_the_end_and_waits_for_health() {
        let three = || json!({"replicas": 3});
        check(three(), "0:r:a 1:r:a 2:r:a", "-2");
        check(three(), "0:r:a 1:r:a", "+2b");
        check(three(), "0:r:a 1:r:a 2:n:b", "");
        check(three(), "0:r:a 1:r:a 2:r:b", "-1");
        let partition =
            || json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
        check(partition(), "0:r:a 1:r:a 2:r:a", "-2");
        check(partition(), "0:r:a 1:r:a 2:r:b", "");
        check(partition(), "0:r:a 2:r:b", "+1a");
        let two_at_once = || {
            json!({"replicas": 4, "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}})
        };
        check(two_at_once(), "0:r:a 1:r:a 2:r:a 3:r:a", "-3 -2");
        check(two_at_once(), "0:r:a 1:r:a 2:r:a 3:n:b", "-2");
        check(two_at_once(), "0:r:a 1:r:a 2:n:b 3:n:b", "");
        check(json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), "0:r:a 1:r:a 2:r:a", "");
        check(json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}), "0:r:a 1:r:a", "+2b");
    }

    #[test]
    fn an_update_is_over_when_all_pods_are_new_and_ready() {
        let current = |list: &str| {
            let (set, pods) = (set(json!({"replicas": 2})), pods(list));
            let pods: Vec<&Pod> = pods.iter().collect();
            let observed = Observed { set: &set, pods: &pods, current: "a", update: "b", now: Timestamp::now() };
            status(observed).0.current_revision.unwrap()
        };
        assert_eq!(current("0:r:a 1:r:b"), "a");
        assert_eq!(current("0:n:b 1:r:b"), "a");
        assert_eq!(current("0:r:b 1:r:b"), "b");
    }
}
