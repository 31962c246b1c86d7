//! What keeps an object from being gone: finalizers, whose they are, and whether anybody serves them.

use serde_json::Value;
use windlass::names;

use super::facts::{Facts, condition, message, text, title};
use super::finding::{Depth, Finding};

/// An object that was just deleted is not in trouble yet.
const PATIENCE_SECONDS: i64 = 5;
/// So many of the objects that keep a namespace are named.
const NAMED_MAX: usize = 5;

/// What keeps an object that was deleted.
pub(super) fn look(object: &Value, facts: &Facts) -> Vec<Finding> {
    let Some(since) = deleted_for(object, facts) else { return Vec::new() };
    if text(&object["kind"]) == "Namespace" {
        return vec![namespace(object, facts)];
    }
    if since < PATIENCE_SECONDS {
        return Vec::new();
    }
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let mut findings: Vec<Finding> = finalizers.map(|finalizer| kept(object, text(finalizer), facts)).collect();
    if findings.is_empty() && text(&object["kind"]) == "Pod" {
        findings.push(ending(object, since));
    }
    findings
}

/// For how many seconds an object has been on its way out.
fn deleted_for(object: &Value, facts: &Facts) -> Option<i64> {
    let metadata = &object["metadata"];
    let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let due: jiff::Timestamp = text(&metadata["deletionTimestamp"]).parse().ok()?;
    Some(facts.now.duration_since(due).as_secs() + grace)
}

fn ending(pod: &Value, since: i64) -> Finding {
    let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let node = text(&pod["spec"]["nodeName"]);
    if since > grace + PATIENCE_SECONDS {
        let says = format!("was to end {}s ago, and its node {node} has not said that it did", since - grace);
        return Finding::new(Depth::Cause, pod, says).advice(format!("see whether the node {node} is there"));
    }
    Finding::new(Depth::Effect, pod, format!("is ending: its programs have {grace}s to do so"))
}

fn kept(object: &Value, finalizer: &str, facts: &Facts) -> Finding {
    let found = |says: String| Finding::new(Depth::Cause, object, says);
    let known = match finalizer {
        "kubernetes.io/pvc-protection" => Some(("a Pod still uses it", "delete the Pods that use the claim")),
        "kubernetes.io/pv-protection" => Some(("a claim is still bound to it", "delete the claim")),
        "foregroundDeletion" => Some(("it waits until what it owns is gone", "look at what it owns, below")),
        "orphan" => Some(("what it owns is being let go", "the garbage collector does this; see whether it runs")),
        "batch.kubernetes.io/job-tracking" => {
            Some(("its Job has not counted it yet", "see whether the Job's controller runs"))
        }
        "service.kubernetes.io/load-balancer-cleanup" => {
            Some(("its load balancer is still there", "see the controller of load balancers"))
        }
        "customresourcecleanup.apiextensions.k8s.io" => {
            Some(("objects of this kind are still there", "delete them, and see what keeps them"))
        }
        _ => None,
    };
    if let Some((why, advice)) = known {
        return found(format!("is deleted but kept by the finalizer {finalizer}: {why}")).advice(advice);
    }
    served(object, finalizer, facts)
}

/// A finalizer of an operator.
fn served(object: &Value, finalizer: &str, facts: &Facts) -> Finding {
    let found = |says: String| Finding::new(Depth::Cause, object, says);
    let owner = setter(object, finalizer);
    let is_paused = object["metadata"]["annotations"][names::PAUSED] == "true";
    if is_paused && [names::FINALIZER, names::ORDER_FINALIZER, names::RELEASE_FINALIZER].contains(&finalizer) {
        return found(format!(
            "is deleted but kept by the finalizer {finalizer}, which nobody serves while it is paused"
        ));
    }
    if let Some(blocked) = condition(object, names::condition::DELETION_BLOCKED).filter(|one| one["status"] == "True") {
        let says = format!("is deleted, but the work of {finalizer} fails: {}", message(blocked));
        return found(says).advice("put right what the message names; the operator tries again by itself");
    }
    let by = owner.map_or_else(String::new, |owner| format!(" (set by {owner})"));
    let is_served = facts.serving(object).any(|(_, replica)| replica.works);
    let task = match finalizer {
        names::FINALIZER => Some("cleans up"),
        names::RELEASE_FINALIZER => Some("sees to what is to stay"),
        _ => None,
    };
    if let Some(task) = task.filter(|_| is_served) {
        return found(format!("is deleted, and its operator {task} before {finalizer} goes{by}"));
    }
    let place =
        object["metadata"]["namespace"].as_str().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    let patch = format!(
        "kubectl patch {} {}{place} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{}\"}}]'",
        text(&object["kind"]).to_lowercase(),
        text(&object["metadata"]["name"]),
        position(object, finalizer),
    );
    let advice =
        format!("start the program that serves it; only if it is gone for good, and what it guards too: {patch}");
    found(format!("is deleted but kept by the finalizer {finalizer}{by}, which nobody seems to serve")).advice(advice)
}

fn position(object: &Value, finalizer: &str) -> usize {
    let mut all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    all.position(|one| one == finalizer).unwrap_or(0)
}

/// Who set a finalizer, by the record of who set which field.
fn setter<'a>(object: &'a Value, finalizer: &str) -> Option<&'a str> {
    let key = format!("v:\"{finalizer}\"");
    let has = |entry: &&Value| entry["fieldsV1"]["f:metadata"]["f:finalizers"].get(&key).is_some();
    object["metadata"]["managedFields"].as_array()?.iter().find(has).map(|entry| text(&entry["manager"]))
}

fn namespace(object: &Value, facts: &Facts) -> Finding {
    let said = ["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure"];
    let failing = ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure"];
    if let Some(failure) = failing.iter().find_map(|type_| super::facts::holds(object, type_)) {
        let says = format!("does not end because the API cannot be listed: {}", message(failure));
        let advice = "see which APIService does not answer (`windlass get apiservices`), and mend or delete it";
        return Finding::new(Depth::Cause, object, says).advice(advice);
    }
    let words = said.iter().find_map(|type_| super::facts::holds(object, type_)).map(message).unwrap_or_default();
    let finalizers = |object: &Value| object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let left: Vec<&Value> = facts.tree.children.iter().map(|node| &node.object).collect();
    let held: Vec<String> = left.iter().filter(|object| finalizers(object)).map(|object| title(object)).collect();
    let mut says = "is ending".to_owned();
    if !held.is_empty() {
        let more = held.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        says =
            format!("does not end while {}{more} is kept by finalizers", held[..held.len().min(NAMED_MAX)].join(", "));
    } else if !left.is_empty() {
        says = format!("is ending: {} objects are left", left.len());
    }
    if !words.is_empty() {
        says = format!("{says} ({words})");
    }
    let finding = Finding::new(if held.is_empty() { Depth::Effect } else { Depth::Refusal }, object, says);
    if held.is_empty() {
        finding
    } else {
        finding.advice("see what keeps them, above; do not remove the namespace's own finalizer")
    }
}
