//! Which Pods of a DaemonSet to make and delete, and what its status says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::pod::{self, Suit};
use crate::percent::{self, Round};
use crate::pods;
use crate::revisions::HASH_LABEL;

/// What a DaemonSet sees.
#[derive(Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) set: &'a DaemonSet,
    pub(crate) nodes: &'a [&'a Node],
    pub(crate) pods: &'a [&'a Pod],
    /// The hash of the current template.
    pub(crate) hash: &'a str,
    pub(crate) now: Timestamp,
}

/// What to do.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan<'a> {
    /// Nodes that get a Pod.
    pub(crate) create: Vec<String>,
    pub(crate) delete: Vec<&'a Pod>,
}

/// The Pods of one node that are not leaving: those of the current template, and older ones.
struct Place<'a> {
    node: String,
    suit: Suit,
    new: Vec<&'a Pod>,
    old: Vec<&'a Pod>,
}

impl<'a> Observed<'a> {
    fn is_available(&self, pod: &Pod) -> bool {
        let seconds = self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        pods::available_at(pod, seconds).is_some_and(|at| at <= self.now)
    }

    fn is_current(&self, pod: &Pod) -> bool {
        pod.labels().get(HASH_LABEL).is_some_and(|hash| hash == self.hash)
    }

    fn by_node(&self) -> BTreeMap<String, Vec<&'a Pod>> {
        let mut by_node: BTreeMap<String, Vec<&'a Pod>> = BTreeMap::new();
        for pod in self.pods {
            by_node.entry(pod::target(pod).unwrap_or_default()).or_default().push(pod);
        }
        by_node.values_mut().for_each(|pods| pods.sort_by_key(|pod| (pod.creation_timestamp(), pod.name_any())));
        by_node
    }

    /// Limits of an update: Pods that may be unavailable, and Pods that may be there twice.
    fn limits(&self, desired: usize) -> Option<(usize, usize)> {
        let strategy = self.set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return None;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.clone()).unwrap_or_default();
        let total = i32::try_from(desired).unwrap_or(i32::MAX);
        let resolve = |value: Option<IntOrString>, default: i32| {
            let number = value.map_or(default, |value| percent::of(&value, total, Round::Up));
            usize::try_from(number).unwrap_or(0)
        };
        let surge = resolve(rolling.max_surge, 0);
        let unavailable = resolve(rolling.max_unavailable, 1);
        Some((if surge == 0 { unavailable.max(1) } else { unavailable }, surge))
    }
}

/// Decides what to make and delete.
pub(crate) fn plan<'a>(observed: Observed<'a>) -> Plan<'a> {
    let mut plan = Plan::default();
    let mut by_node = observed.by_node();
    let mut places = vec![];
    for node in observed.nodes {
        let pods = by_node.remove(&node.name_any()).unwrap_or_default();
        let suit = pod::suit(observed.set, node);
        let leaves = pods.iter().any(|pod| pods::is_terminating(pod));
        let (ended, alive): (Vec<&Pod>, Vec<&Pod>) =
            pods.into_iter().filter(|pod| !pods::is_terminating(pod)).partition(|pod| pods::is_finished(pod));
        // A Pod that has ended is made anew once it is gone.
        plan.delete.extend(&ended);
        if suit == Suit::Never {
            plan.delete.extend(alive);
            continue;
        }
        let (new, old): (Vec<&Pod>, Vec<&Pod>) = alive.into_iter().partition(|pod| observed.is_current(pod));
        if suit == Suit::Runs && new.is_empty() && old.is_empty() && ended.is_empty() && !leaves {
            plan.create.push(node.name_any());
        }
        places.push(Place { node: node.name_any(), suit, new, old });
    }
    // Pods for nodes that are not there; those that are bound are the business of others.
    let lost = by_node.into_values().flatten();
    plan.delete.extend(lost.filter(|pod| pods::node(pod).is_none() && !pods::is_terminating(pod)));
    for place in &places {
        plan.delete.extend(place.new.iter().skip(1));
        plan.delete.extend(place.old.iter().skip(1));
    }
    update(observed, &places, &mut plan);
    plan
}

/// Replaces Pods of older templates within the limits.
fn update<'a>(observed: Observed<'a>, places: &[Place<'a>], plan: &mut Plan<'a>) {
    let running: Vec<&Place<'a>> = places.iter().filter(|place| place.suit == Suit::Runs).collect();
    let Some((unavailable_max, surge_max)) = observed.limits(running.len()) else { return };
    let is_served = |place: &&&Place<'a>| place.new.iter().chain(&place.old).any(|pod| observed.is_available(pod));
    let unavailable = running.iter().filter(|place| !is_served(place)).count();
    let mut may_stop = unavailable_max.saturating_sub(unavailable);
    let doubled = running.iter().filter(|place| !place.new.is_empty() && !place.old.is_empty()).count();
    let mut may_double = surge_max.saturating_sub(doubled);
    for place in running {
        let Some(old) = place.old.first() else { continue };
        let replaced = place.new.first().is_some_and(|new| observed.is_available(new));
        if replaced || !observed.is_available(old) && place.new.is_empty() && surge_max == 0 {
            plan.delete.push(old);
        } else if place.new.is_empty() && may_double > 0 {
            may_double -= 1;
            plan.create.push(place.node.clone());
        } else if surge_max == 0 && may_stop > 0 {
            may_stop -= 1;
            plan.delete.push(old);
        }
    }
}

/// The status, and when it will change by itself.
pub(crate) fn status(observed: Observed<'_>) -> (DaemonSetStatus, Option<Timestamp>) {
    let before = observed.set.status.clone().unwrap_or_default();
    let by_node = observed.by_node();
    let mut status = DaemonSetStatus {
        observed_generation: observed.set.metadata.generation,
        collision_count: before.collision_count,
        conditions: before.conditions,
        ..DaemonSetStatus::default()
    };
    let (mut updated, mut available) = (0, 0);
    for node in observed.nodes {
        let pods = by_node.get(&node.name_any()).map(Vec::as_slice).unwrap_or_default();
        if pod::suit(observed.set, node) != Suit::Runs {
            status.number_misscheduled += i32::from(!pods.is_empty());
            continue;
        }
        status.desired_number_scheduled += 1;
        status.current_number_scheduled += i32::from(!pods.is_empty());
        status.number_ready += i32::from(pods.iter().any(|pod| pods::is_ready(pod)));
        available += i32::from(pods.iter().any(|pod| observed.is_available(pod)));
        updated += i32::from(pods.iter().any(|pod| observed.is_current(pod)));
    }
    let nonzero = |number: i32| (number > 0).then_some(number);
    status.updated_number_scheduled = nonzero(updated);
    status.number_available = nonzero(available);
    status.number_unavailable = nonzero(status.desired_number_scheduled - available);
    let seconds = observed.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let later = observed.pods.iter().filter_map(|pod| pods::available_at(pod, seconds));
    (status, later.filter(|at| *at > observed.now).min())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str) -> Node {
        let taints = match name.as_bytes()[0] {
            b'x' => json!([{"key": "k", "effect": "NoExecute"}]),
            b'y' => json!([{"key": "k", "effect": "NoSchedule"}]),
            _ => json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        };
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"taints": taints}})).unwrap()
    }

    /// Pods as `node:hash:state`, state being r(eady), n(ot ready), t(erminating) or f(ailed).
    fn pod(text: &str) -> Pod {
        let parts: Vec<&str> = text.split(':').collect();
        serde_json::from_value(json!({
            "metadata": {"name": text, "labels": {HASH_LABEL: parts[1]},
                "deletionTimestamp": (parts[2] == "t").then_some("2026-01-01T00:00:00Z")},
            "spec": {"nodeName": parts[0], "containers": []},
            "status": {"phase": if parts[2] == "f" { "Failed" } else { "Running" },
                "conditions": [{"type": "Ready", "status": if parts[2] == "r" { "True" } else { "False" }}]}}))
        .unwrap()
    }

    fn check(strategy: Value, nodes: &str, pods: &str, expect: &str) {
        let set: DaemonSet = serde_json::from_value(json!({"metadata": {"name": "d"}, "spec": {"selector": {},
            "template": {"spec": {"containers": []}}, "updateStrategy": strategy}}))
        .unwrap();
        let nodes: Vec<Node> = nodes.split_whitespace().map(node).collect();
        let list: Vec<Pod> = pods.split_whitespace().map(pod).collect();
        let observed = Observed {
            set: &set,
            nodes: &nodes.iter().collect::<Vec<_>>(),
            pods: &list.iter().collect::<Vec<_>>(),
            hash: "new",
            now: Timestamp::now(),
        };
        let plan = plan(observed);
        let created = plan.create.iter().map(|node| format!("+{node}"));
        let deleted = plan.delete.iter().map(|pod| format!("-{}", pod.name_any()));
        assert_eq!(created.chain(deleted).collect::<Vec<_>>().join(" "), expect, "{pods}");
    }

    #[test]
    fn every_node_that_suits_has_one_pod() {
        let rolling = || json!({"type": "RollingUpdate"});
        check(rolling(), "a b", "", "+a +b");
        check(rolling(), "a b", "a:new:r", "+b");
        check(rolling(), "a x y", "", "+a");
        check(rolling(), "x y", "x:new:r y:new:r", "-x:new:r");
        check(rolling(), "a", "a:new:t", "");
        check(rolling(), "a", "a:new:f", "-a:new:f");
        check(rolling(), "a", "a:new:r a:new:n", "-a:new:r");
    }

    #[test]
    fn updates_stay_within_their_limits() {
        let rolling = || json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        check(rolling(), "a b c", "a:old:r b:old:r c:old:r", "-a:old:r");
        check(rolling(), "a b c", "a:new:n b:old:r c:old:r", "");
        check(rolling(), "a b c", "a:new:r b:old:r c:old:r", "-b:old:r");
        check(rolling(), "a b", "a:old:n b:old:r", "-a:old:n");
        check(json!({"type": "OnDelete"}), "a", "a:old:r", "");
        let surge = || json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
        check(surge(), "a b", "a:old:r b:old:r", "+a");
        check(surge(), "a b", "a:old:r a:new:n b:old:r", "");
        check(surge(), "a b", "a:old:r a:new:r b:old:r", "-a:old:r");
    }
}
