//! What is to be said of a node: whether it is silent, and the taints that follow from its conditions.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How long a lease may go without being renewed.
const GRACE: SignedDuration = SignedDuration::from_secs(50);

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// Conditions that only the node itself can know.
const OWN_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// A condition in that state keeps Pods away by the taint of that name.
const TAINTS: [(&str, &str, &str); 6] = [
    ("Ready", "False", "node.kubernetes.io/not-ready"),
    ("Ready", "Unknown", "node.kubernetes.io/unreachable"),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
];
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// When the node is to be taken for silent; `None` for one that has no lease: nobody promised to speak for it.
pub(crate) fn silent_from(lease: Option<&Lease>) -> Option<Timestamp> {
    let renewed = lease?.spec.as_ref()?.renew_time.as_ref()?.0;
    renewed.checked_add(GRACE).ok()
}

/// Whether the node says that it is ready.
pub(crate) fn is_ready(node: &Node) -> bool {
    status_of(node, "Ready") == Some("True")
}

/// The conditions of a node that has gone silent; `None` if they say so already.
pub(crate) fn silenced(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let known = node.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let mut conditions = known.clone();
    for condition in conditions.iter_mut().filter(|condition| OWN_CONDITIONS.contains(&condition.type_.as_str())) {
        if condition.status != "Unknown" {
            condition.status = "Unknown".to_owned();
            condition.reason = Some("NodeStatusUnknown".to_owned());
            condition.message = Some("The node stopped posting its status.".to_owned());
            condition.last_transition_time = Some(Time(now));
        }
    }
    (conditions != known).then_some(conditions)
}

/// The taints that the node should have. With `spare`, none of ours sends Pods away: when no node is well, the fault is
/// more likely ours than theirs.
pub(crate) fn taints(node: &Node, spare: bool, now: Timestamp) -> Vec<Taint> {
    let known = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = wanted(node, spare);
    let is_ours = |taint: &Taint| {
        let condition = TAINTS.iter().find(|(_, _, key)| *key == taint.key);
        match taint.effect.as_str() {
            NO_SCHEDULE => condition.is_some() || taint.key == UNSCHEDULABLE,
            NO_EXECUTE => condition.is_some_and(|(type_, ..)| *type_ == "Ready"),
            _ => false,
        }
    };
    let is_wanted = |taint: &Taint| wanted.iter().any(|(key, effect)| taint.key == *key && taint.effect == *effect);
    let mut taints: Vec<Taint> = known.iter().filter(|taint| !is_ours(taint) || is_wanted(taint)).cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == effect) {
            taints.push(Taint {
                key: key.to_owned(),
                effect: effect.to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    taints
}

fn wanted(node: &Node, spare: bool) -> Vec<(&'static str, &'static str)> {
    let mut wanted = vec![];
    for (type_, status, key) in TAINTS {
        if status_of(node, type_) != Some(status) {
            continue;
        }
        wanted.push((key, NO_SCHEDULE));
        if type_ == "Ready" && !spare {
            wanted.push((key, NO_EXECUTE));
        }
    }
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    wanted
}

fn status_of<'a>(node: &'a Node, type_: &str) -> Option<&'a str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_).map(|condition| condition.status.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(ready: Option<&str>, spec: Value) -> Node {
        let conditions: Vec<Value> = ready.iter().map(|status| json!({"type": "Ready", "status": status})).collect();
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": spec, "status": {"conditions": conditions}}))
            .unwrap()
    }

    fn check(node: &Node, spare: bool, expect: &[&str]) {
        let told = taints(node, spare, Timestamp::UNIX_EPOCH);
        let told: Vec<String> = told.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
        assert_eq!(told, expect);
    }

    #[test]
    fn taints_follow_conditions_and_leave_those_of_others() {
        let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
        let mine = json!({"key": "mine", "effect": "NoExecute"});
        check(&node(Some("True"), json!({"taints": [not_ready, mine]})), false, &["mine:NoExecute"]);
        check(&node(None, json!({"taints": [not_ready]})), false, &[]);
        check(
            &node(Some("False"), json!({"taints": [mine, not_ready]})),
            false,
            &["mine:NoExecute", "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"],
        );
        let unreachable = ["node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"];
        check(&node(Some("Unknown"), json!({"taints": [not_ready]})), false, &unreachable);
        check(&node(Some("Unknown"), json!({})), true, &unreachable[..1]);
        check(
            &node(Some("True"), json!({"unschedulable": true})),
            false,
            &["node.kubernetes.io/unschedulable:NoSchedule"],
        );
    }

    #[test]
    fn a_silent_node_is_unknown_once() {
        let mut silent = node(Some("True"), json!({}));
        let conditions = silenced(&silent, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(conditions[0].status, "Unknown");
        silent.status.as_mut().unwrap().conditions = Some(conditions);
        assert_eq!(silenced(&silent, Timestamp::now()), None);
    }

    #[test]
    fn only_who_promised_to_speak_can_be_silent() {
        let lease = |spec: Value| serde_json::from_value::<Lease>(json!({"spec": spec})).unwrap();
        assert_eq!(silent_from(None), None);
        assert_eq!(silent_from(Some(&lease(json!({})))), None);
        let renewed = lease(json!({"renewTime": "1970-01-01T00:00:10.000000Z"}));
        assert_eq!(silent_from(Some(&renewed)).unwrap().as_second(), 60);
    }
}
