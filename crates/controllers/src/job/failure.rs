//! What the failure of a Pod means, by the failure policy of its Job.

use k8s_openapi::api::batch::v1::{Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;

use crate::pods;

/// What a failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// One more failure.
    Count,
    /// None at all.
    Ignore,
    /// The end of its index.
    FailIndex,
    /// The end of the Job, and why.
    FailJob(String),
}

/// Judges a failed Pod: the first rule that matches says what its failure means.
pub(crate) fn judge(job: &Job, pod: &Pod) -> Verdict {
    let policy = job.spec.as_ref().and_then(|spec| spec.pod_failure_policy.as_ref());
    let rules = policy.map(|policy| policy.rules.as_slice()).unwrap_or_default();
    for (number, rule) in rules.iter().enumerate() {
        let Some(why) = matches(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Verdict::Ignore,
            "FailIndex" => Verdict::FailIndex,
            "FailJob" => Verdict::FailJob(format!("{why} matching FailJob rule at index {number}")),
            _ => Verdict::Count,
        };
    }
    Verdict::Count
}

/// What about the Pod matches the rule, in words.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let place = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    if let Some(wanted) = &rule.on_exit_codes {
        let (container, code) = exit_code(wanted, pod)?;
        return Some(format!("Container {container} for pod {place} failed with exit code {code}"));
    }
    let wanted = rule.on_pod_conditions.iter().flatten();
    let found = wanted.filter_map(|wanted| {
        let status = wanted.status.as_deref().unwrap_or("True");
        pods::condition(pod, &wanted.type_).filter(|condition| condition.status == status)
    });
    found.map(|condition| format!("Pod {place} has condition {}", condition.type_)).next()
}

fn exit_code<'a>(wanted: &PodFailurePolicyOnExitCodesRequirement, pod: &'a Pod) -> Option<(&'a str, i32)> {
    let status = pod.status.as_ref()?;
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let meant = all.filter(|container| wanted.container_name.as_ref().is_none_or(|name| *name == container.name));
    let code = |container: &'a ContainerStatus| {
        let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
        Some((container.name.as_str(), code))
    };
    // Success is no failure, whatever the list says.
    let mut failed = meant.filter_map(code).filter(|(_, code)| *code != 0);
    failed.find(|(_, code)| wanted.values.contains(code) == (wanted.operator == "In"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(rules: Value, code: i32, condition: &str, expect: Verdict) {
        let job: Job =
            serde_json::from_value(json!({"spec": {"template": {}, "podFailurePolicy": {"rules": rules}}})).unwrap();
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "ns"}, "status": {
            "conditions": [{"type": condition, "status": "True"}],
            "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"terminated": {"exitCode": code}}}]}}))
        .unwrap();
        assert_eq!(judge(&job, &pod), expect, "{rules}");
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let codes = |action: &str, operator: &str, values: &[i32]| json!({"action": action, "onExitCodes": {"operator": operator, "values": values}});
        let condition = |action: &str, type_: &str| json!({"action": action, "onPodConditions": [{"type": type_, "status": "True"}]});
        check(json!([]), 1, "x", Verdict::Count);
        check(json!([codes("Ignore", "In", &[1, 2])]), 2, "x", Verdict::Ignore);
        check(json!([codes("Ignore", "In", &[1, 2])]), 3, "x", Verdict::Count);
        check(json!([codes("FailIndex", "NotIn", &[1])]), 3, "x", Verdict::FailIndex);
        check(json!([codes("FailIndex", "NotIn", &[1])]), 0, "x", Verdict::Count);
        check(json!([condition("Ignore", "DisruptionTarget")]), 1, "DisruptionTarget", Verdict::Ignore);
        check(
            json!([condition("Ignore", "DisruptionTarget"), codes("FailJob", "In", &[42])]),
            42,
            "x",
            Verdict::FailJob(
                "Container c for pod ns/p failed with exit code 42 matching FailJob rule at index 1".into(),
            ),
        );
    }
}
