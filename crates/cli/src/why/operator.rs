//! What an operator says of its resource, and what is wrong with the operator itself.

use serde_json::Value;
use windlass::names;
use windlass::names::condition::{DEGRADED, PAUSED, PROGRESSING, READY, STALLED};
use windlass::runtime::journal::{Run, Turn};

use super::facts::{Facts, condition, group, holds, message, text, title};
use super::finding::{Depth, Finding};
use super::pod;

/// What is wrong from the operator's side, with the object itself or the one above it that an operator serves.
pub(super) fn look(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for object in std::iter::once(facts.object()).chain(&facts.owners) {
        findings.extend(choices(object));
        if is_custom(object) {
            findings.extend(reported(object));
            findings.extend(unseen(object, facts));
        }
    }
    findings.extend(replicas(facts));
    findings.extend(run(facts));
    findings
}

/// Kinds outside Kubernetes' own groups are an operator's.
pub(super) fn is_custom(object: &Value) -> bool {
    let group = group(object);
    group.contains('.') && !group.ends_with(".k8s.io")
}

fn choices(object: &Value) -> Option<Finding> {
    let is_paused = object["metadata"]["annotations"][names::PAUSED] == "true";
    let (kind, name) = (text(&object["kind"]).to_lowercase(), text(&object["metadata"]["name"]));
    (is_paused || holds(object, PAUSED).is_some()).then(|| {
        let says = format!("is paused: its operator does nothing while the annotation {} is true", names::PAUSED);
        Finding::new(Depth::Choice, object, says).advice(format!("kubectl annotate {kind} {name} {}-", names::PAUSED))
    })
}

/// What the conditions say.
fn reported(object: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(hot) = holds(object, DEGRADED).filter(|one| text(&one["reason"]) == "HotLoop") {
        let advice = "let only one of the two set the field; the operator looks again every 30 seconds";
        findings.push(Finding::new(Depth::Cause, object, format!("is in a loop: {}", message(hot))).advice(advice));
    }
    if let Some(stalled) = holds(object, STALLED) {
        let finding = Finding::new(Depth::Cause, object, format!("cannot get on: {}", message(stalled)));
        findings.push(finding.advice("do what the message says; a change is looked at at once"));
        return findings;
    }
    let Some(ready) = condition(object, READY).filter(|one| one["status"] == "False") else { return findings };
    let says = message(ready);
    let (depth, advice) = match text(&ready["reason"]) {
        "ApplyFailed" => (Depth::Refusal, Some(refusal(&says))),
        "WatchFailed" => (Depth::Operator, Some("the operator's /readyz names the permission to add".to_owned())),
        "ReconcilePanicked" | "ReconcileTimedOut" => {
            (Depth::Operator, Some("a defect of the operator: its log has more (`windlass logs`)".to_owned()))
        }
        "Retrying" => (Depth::Operator, None),
        // It waits for what is below it, which is looked at by itself.
        _ if holds(object, PROGRESSING).is_some() => (Depth::Effect, None),
        _ => (Depth::Effect, None),
    };
    findings.push(Finding { advice, ..Finding::new(depth, object, format!("is not ready: {says}")) });
    findings
}

fn refusal(says: &str) -> String {
    let advice = match says {
        it if it.contains("exceeded quota") => "raise the quota (`windlass get quota`), or ask for less",
        it if it.contains("admission webhook") => "do what the webhook asks for, or ask who runs it",
        it if it.contains("cannot") && it.contains("forbidden") => "let the operator do it: see its role",
        it if it.contains("terminating") || it.contains("being terminated") => {
            "the namespace is being deleted: use another"
        }
        _ => "see the message; the operator tries again by itself",
    };
    advice.to_owned()
}

/// A resource that its operator has not looked at.
fn unseen(object: &Value, facts: &Facts) -> Option<Finding> {
    let generation = object["metadata"]["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    let says = if object["status"].is_null() {
        "no operator has looked at it yet".to_owned()
    } else if observed.is_some() && observed < generation {
        format!("its last change (generation {}) has not been looked at", generation.unwrap_or_default())
    } else {
        return None;
    };
    let is_served = facts.serving(object).next().is_some();
    let works = facts.serving(object).any(|(_, replica)| replica.works);
    let advice = match (is_served, works) {
        (true, true) => "the operator is at work: ask again in a moment, and see its log if that does not help",
        (true, false) => "the operator runs, but does not work yet: it waits for its lease, or for its watches",
        (false, _) if facts.operators.pods.is_empty() => "no operator for this kind was found: install or start it",
        (false, _) => "see whether its operator runs",
    };
    Some(Finding::new(Depth::Operator, object, says).advice(advice))
}

/// Trouble of the operator's own Pods.
fn replicas(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        facts.operators.pods.iter().flat_map(|operator| pod::look(operator, facts)).collect();
    for finding in &mut findings {
        finding.depth = Depth::Operator;
        finding.says = format!("is the operator, and {}", finding.says);
    }
    let object = std::iter::once(facts.object()).chain(&facts.owners).find(|object| is_custom(object));
    let Some(object) = object else { return findings };
    for (pod, replica) in facts.serving(object) {
        findings.extend(replica.trouble.iter().map(|trouble| Finding {
            depth: Depth::Operator,
            object: format!("Pod {pod}"),
            others: 0,
            says: format!("the operator {} is not ready: {trouble}", replica.operator),
            advice: None,
        }));
    }
    findings
}

/// A last run that failed, where no condition tells of it.
fn run(facts: &Facts) -> Option<Finding> {
    let (_, history) = facts.operators.history.as_ref()?;
    let object = std::iter::once(facts.object()).chain(&facts.owners);
    let object = object.into_iter().find(|object| text(&object["metadata"]["name"]) == history.object.name)?;
    if let Some(running) = &history.running {
        let seconds = facts.now.duration_since(running.started).as_secs();
        if seconds > 60 {
            let says = format!("its operator has been at work on it for {seconds}s, in one run");
            return Some(
                Finding::new(Depth::Operator, object, says).advice("something that the run waits for does not answer"),
            );
        }
    }
    let last = history.runs.first()?;
    let is_told = condition(object, READY).is_some() || holds(object, STALLED).is_some();
    (!is_told).then(|| failure(object, last)).flatten()
}

fn failure(object: &Value, run: &Run) -> Option<Finding> {
    let what = match run.turn {
        Turn::Failed | Turn::Refused => "fails",
        Turn::Crashed => "crashes",
        Turn::Invalid => "finds it invalid",
        _ => return None,
    };
    let says = format!("the operator's look at {} {what}: {}", title(object), run.message);
    Some(Finding::new(Depth::Operator, object, says))
}
