//! How many Pods of a PodDisruptionBudget may be evicted now.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::percent::{self, Round};
use crate::pods;

/// How long an eviction that was granted may take until the Pod is seen to leave.
const DISRUPTION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The status for the Pods that the budget selects, `scale` being how many their controllers want in all; and when it
/// changes by itself.
pub(crate) fn status(
    budget: &PodDisruptionBudget,
    selected: &[&Pod],
    scale: i32,
    now: Timestamp,
) -> (PodDisruptionBudgetStatus, Option<Timestamp>) {
    let before = budget.status.clone().unwrap_or_default();
    let spec = budget.spec.clone().unwrap_or_default();
    let alive: Vec<&Pod> = selected.iter().copied().filter(|pod| !pods::is_finished(pod)).collect();
    let present = i32::try_from(alive.len()).unwrap_or(i32::MAX);
    let (expected, desired) = match (spec.max_unavailable, spec.min_available) {
        (Some(most), _) => (scale, (scale - percent::of(&most, scale, Round::Up)).max(0)),
        (None, Some(IntOrString::Int(least))) => (present, least),
        (None, Some(least)) => (scale, percent::of(&least, scale, Round::Up)),
        (None, None) => (present, 1),
    };
    let due = |since: &Time| since.0.checked_add(DISRUPTION_TIMEOUT).unwrap_or(Timestamp::MAX);
    let mut disrupted = before.disrupted_pods.unwrap_or_default();
    disrupted.retain(|name, since| {
        alive.iter().any(|pod| pod.name_any() == *name && !pods::is_terminating(pod)) && due(since) > now
    });
    let healthy = alive
        .iter()
        .filter(|pod| pods::is_ready(pod) && !pods::is_terminating(pod) && !disrupted.contains_key(&pod.name_any()));
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let again = disrupted.values().map(due).min();
    let status = PodDisruptionBudgetStatus {
        observed_generation: budget.metadata.generation,
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        conditions: Some(conditions(budget, allowed, before.conditions, now)),
    };
    (status, again)
}

fn conditions(
    budget: &PodDisruptionBudget,
    allowed: i32,
    before: Option<Vec<Condition>>,
    now: Timestamp,
) -> Vec<Condition> {
    let (value, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut conditions = before.unwrap_or_default();
    let known = conditions.iter().position(|known| known.type_ == "DisruptionAllowed");
    let known = known.map(|index| conditions.remove(index));
    let since = known.filter(|known| known.status == value).map(|known| known.last_transition_time);
    conditions.push(Condition {
        type_: "DisruptionAllowed".to_owned(),
        status: value.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        observed_generation: budget.metadata.generation,
        last_transition_time: since.unwrap_or(Time(now)),
    });
    conditions
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Pods by letter: r(eady), n(ot ready), t(erminating), f(inished).
    fn check(spec: Value, pods: &str, scale: i32, expect: (i32, i32)) {
        let pod = |(number, state): (usize, char)| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": number.to_string(), "deletionTimestamp": (state == 't').then_some("2026-01-01T00:00:00Z")},
                "status": {"phase": if state == 'f' { "Failed" } else { "Running" },
                    "conditions": [{"type": "Ready", "status": if "rt".contains(state) { "True" } else { "False" }}]}}))
            .unwrap()
        };
        let budget: PodDisruptionBudget = serde_json::from_value(json!({"spec": spec})).unwrap();
        let pods: Vec<Pod> = pods.chars().enumerate().map(pod).collect();
        let (status, _) = status(&budget, &pods.iter().collect::<Vec<_>>(), scale, Timestamp::now());
        assert_eq!((status.desired_healthy.unwrap(), status.disruptions_allowed.unwrap()), expect, "{spec}");
    }

    #[test]
    fn only_what_is_healthy_beyond_need_may_go() {
        check(json!({"minAvailable": 2}), "rrr", 3, (2, 1));
        check(json!({"minAvailable": 2}), "rrn", 3, (2, 0));
        check(json!({"minAvailable": 2}), "rrtf", 3, (2, 0));
        check(json!({"minAvailable": "50%"}), "rrr", 3, (2, 1));
        check(json!({"maxUnavailable": 1}), "rrr", 3, (2, 1));
        check(json!({"maxUnavailable": 1}), "rr", 3, (2, 0));
        check(json!({"maxUnavailable": "100%"}), "rrr", 3, (0, 3));
        check(json!({"maxUnavailable": 1}), "", 0, (0, 0));
    }
}
