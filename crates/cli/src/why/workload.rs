//! What keeps a workload from having its Pods: a quota, a policy, a webhook, a pause, a zero.

use serde_json::Value;

use super::facts::{Facts, condition, holds, message, text};
use super::finding::{Depth, Finding};

/// The events in which controllers say that they may not make something.
const REFUSED: [&str; 3] = ["FailedCreate", "ReplicaSetCreateError", "FailedDelete"];

/// What is wrong with an object that has others below it.
pub(super) fn look(object: &Value, facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = refused(object, facts).into_iter().collect();
    match text(&object["kind"]) {
        "Deployment" => findings.extend(deployment(object)),
        "Job" => findings.extend(job(object)),
        "CronJob" if object["spec"]["suspend"] == true => {
            findings.push(choice(object, "is suspended: no Job is begun", "set spec.suspend to false to go on"));
        }
        _ => {}
    }
    findings
}

fn choice(object: &Value, says: &str, advice: &str) -> Finding {
    Finding::new(Depth::Choice, object, says).advice(advice)
}

/// In whose words Pods are refused.
fn refusal(object: &Value, facts: &Facts) -> Option<String> {
    let from_condition = holds(object, "ReplicaFailure").map(message);
    from_condition.or_else(|| facts.event(object, &REFUSED).filter(|_| is_short(object)).map(message))
}

/// Whether what is said is still so: a controller that was refused once and then was not leaves its event behind.
fn is_short(object: &Value) -> bool {
    let wanted = object["spec"]["replicas"].as_i64();
    let has = object["status"]["replicas"].as_i64().unwrap_or(0);
    wanted.is_none_or(|wanted| has < wanted)
}

fn refused(object: &Value, facts: &Facts) -> Option<Finding> {
    // A Deployment repeats what its ReplicaSet says.
    let is_copy = text(&object["kind"]) == "Deployment"
        && facts.tree.all().iter().any(|below| text(&below["kind"]) == "ReplicaSet" && refusal(below, facts).is_some());
    let why = refusal(object, facts).filter(|_| !is_copy)?;
    let (says, advice) = match why.as_str() {
        it if it.contains("exceeded quota") => {
            ("Pods are refused by a quota", "raise the quota (`windlass get quota`), or ask for less")
        }
        it if it.contains("failed quota") => (
            "Pods are refused by a quota",
            "set what the quota counts: resources.requests and limits of each container",
        ),
        it if it.contains("violates PodSecurity") => (
            "Pods are refused by the policy of the namespace",
            "correct the security context, or the labels of the namespace",
        ),
        it if it.contains("admission webhook") => {
            ("Pods are refused by a webhook", "do what the webhook asks for, or ask who runs it")
        }
        it if it.contains("failed calling webhook") => {
            ("Pods cannot be made because a webhook does not answer", "see whether the service of the webhook runs")
        }
        it if it.contains("ValidatingAdmissionPolicy") => {
            ("Pods are refused by a policy", "do what the policy asks for")
        }
        it if it.contains("serviceaccount") || it.contains("service account") => {
            ("Pods cannot be made", "make the service account that they name, or correct the name")
        }
        it if it.contains("forbidden") => ("Pods are refused", "see who may do what, and the message"),
        _ => ("Pods cannot be made", "see the message"),
    };
    Some(Finding::new(Depth::Refusal, object, format!("{says}: {why}")).advice(advice))
}

fn deployment(deployment: &Value) -> Option<Finding> {
    if deployment["spec"]["paused"] == true {
        let says = "its rollout is paused: changes of the template wait";
        return Some(choice(deployment, says, "go on with `kubectl rollout resume`"));
    }
    let progressing = condition(deployment, "Progressing")?;
    let is_late = text(&progressing["reason"]) == "ProgressDeadlineExceeded";
    is_late.then(|| {
        Finding::new(Depth::Effect, deployment, format!("its rollout does not get on: {}", message(progressing)))
    })
}

fn job(job: &Value) -> Option<Finding> {
    if job["spec"]["suspend"] == true {
        return Some(choice(job, "is suspended", "set spec.suspend to false to go on"));
    }
    let failed = holds(job, "Failed")?;
    let says = format!("has failed ({}): {}", text(&failed["reason"]), message(failed));
    Some(
        Finding::new(Depth::Refusal, job, says)
            .advice("see what its Pods printed; a Job that failed is not tried again"),
    )
}
