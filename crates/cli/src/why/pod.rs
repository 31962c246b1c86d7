//! What keeps a Pod from running: no node, no image, no volume, a program that ends, a probe that fails.

use serde_json::Value;

use super::facts::{Facts, condition, message, text};
use super::finding::{Depth, Finding, warned};

/// What is wrong with a Pod.
pub(super) fn look(pod: &Value, facts: &Facts) -> Vec<Finding> {
    if text(&pod["status"]["phase"]) == "Succeeded" || !pod["metadata"]["deletionTimestamp"].is_null() {
        return Vec::new();
    }
    if text(&pod["status"]["phase"]) == "Failed" && text(&pod["status"]["reason"]) == "Evicted" {
        let says = format!("was evicted: {}", text(&pod["status"]["message"]));
        return vec![Finding::new(Depth::Cause, pod, says).advice("give it the room that the message names")];
    }
    if let Some(finding) = unscheduled(pod) {
        return vec![finding];
    }
    let statuses = ["initContainerStatuses", "containerStatuses"];
    let statuses = statuses.iter().flat_map(|list| pod["status"][*list].as_array().into_iter().flatten());
    let mut findings: Vec<Finding> = statuses.filter_map(|status| container(pod, status, facts)).collect();
    if findings.is_empty() && condition(pod, "Ready").is_none_or(|ready| ready["status"] != "True") {
        findings.extend(warned(pod, facts, &["FailedMount", "FailedAttachVolume"]).map(|finding| Finding {
            advice: Some("make what the volume names, or correct its name".to_owned()),
            ..finding
        }));
        findings.extend(warned(pod, facts, &["FailedCreatePodSandBox", "FailedBinding"]));
    }
    findings
}

/// No node takes it.
fn unscheduled(pod: &Value) -> Option<Finding> {
    let scheduled = condition(pod, "PodScheduled").filter(|one| one["status"] == "False")?;
    let why = message(scheduled);
    if text(&scheduled["reason"]) == "SchedulingGated" {
        let finding = Finding::new(Depth::Cause, pod, "is held back by its scheduling gates");
        return Some(finding.advice("whoever put the gates there has to take them away"));
    }
    let advice = match why.as_str() {
        why if why.contains("Insufficient") => "ask for less (resources.requests), free a node, or add one",
        why if why.contains("PersistentVolumeClaim") || why.contains("persistentvolumeclaim") => {
            "see what is said of the claim: `windlass why pvc/NAME`"
        }
        why if why.contains("taint") => "tolerate the taint, or use other nodes",
        why if why.contains("affinity") || why.contains("selector") => {
            "correct the selector or affinity, or label a node"
        }
        why if why.contains("Too many pods") => "delete Pods, or let nodes have more",
        _ => "see `windlass get nodes`",
    };
    // The claim says more than the Pod that waits for it.
    let depth = if why.contains("PersistentVolumeClaim") { Depth::Effect } else { Depth::Cause };
    Some(Finding::new(depth, pod, format!("no node takes it: {why}")).advice(advice))
}

fn container(pod: &Value, status: &Value, facts: &Facts) -> Option<Finding> {
    let (state, name) = (&status["state"], text(&status["name"]));
    if let Some(waiting) = state["waiting"].as_object() {
        let reason = waiting.get("reason").map(text).unwrap_or_default();
        let words = waiting.get("message").map(text).unwrap_or_default();
        return waits(pod, status, reason, words);
    }
    if state["terminated"].is_object() && state["terminated"]["exitCode"] != 0 {
        return Some(ended(pod, status, &state["terminated"]));
    }
    let is_unready = state["running"].is_object() && status["ready"] == false;
    if !is_unready {
        return None;
    }
    let probed = facts.events_of(pod).find(|event| text(&event["reason"]) == "Unhealthy");
    let restarts = status["restartCount"].as_u64().unwrap_or(0);
    match probed {
        Some(event) => {
            let says = format!("container {name} runs, but is not ready: {}", message(event));
            let advice = format!("see what it prints: {}", logs(pod, name, false));
            Some(Finding::new(Depth::Cause, pod, says).advice(advice))
        }
        None if restarts > 0 && status["lastState"]["terminated"].is_object() => {
            Some(ended(pod, status, &status["lastState"]["terminated"]))
        }
        None => None,
    }
}

fn waits(pod: &Value, status: &Value, reason: &str, words: &str) -> Option<Finding> {
    let name = text(&status["name"]);
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    let finding = |says: String| Finding::new(Depth::Cause, pod, says);
    match reason {
        "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName" | "ErrImageInspect" => {
            let image = image_of(pod, name);
            let says = format!("the image {image} of container {name} cannot be had ({reason}){said}");
            let advice = format!("correct the image's name, or make it available (here: `windlass image add {image}`)");
            Some(finding(says).advice(advice))
        }
        "CrashLoopBackOff" => Some(ended(pod, status, &status["lastState"]["terminated"])),
        "CreateContainerConfigError" => {
            let advice = match words {
                words if words.contains("not found") => {
                    "make the ConfigMap or Secret that it names, or correct the name"
                }
                _ => "correct what the message names in the container",
            };
            Some(finding(format!("container {name} cannot be set up{said}")).advice(advice))
        }
        "CreateContainerError" | "RunContainerError" | "StartError" => {
            let advice = "correct the command, the mounts or the security context of the container";
            Some(finding(format!("container {name} cannot be started ({reason}){said}")).advice(advice))
        }
        _ => None,
    }
}

/// A program that ended, and may do so again and again.
fn ended(pod: &Value, status: &Value, terminated: &Value) -> Finding {
    let name = text(&status["name"]);
    let restarts = status["restartCount"].as_u64().unwrap_or(0);
    let again = match restarts {
        0 => String::new(),
        1 => ", 1 restart".to_owned(),
        more => format!(", {more} restarts"),
    };
    if text(&terminated["reason"]) == "OOMKilled" {
        let limit =
            spec_of(pod, name).map(|spec| text(&spec["resources"]["limits"]["memory"])).filter(|it| !it.is_empty());
        let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
        let says = format!("container {name} was ended because it used more memory than its limit{limit}{again}");
        return Finding::new(Depth::Cause, pod, says).advice("raise resources.limits.memory, or let it use less");
    }
    let how = match (terminated["signal"].as_i64().filter(|signal| *signal != 0), terminated["exitCode"].as_i64()) {
        (Some(signal), _) => format!("by signal {signal}"),
        (None, Some(code)) => format!("with exit code {code}"),
        (None, None) => "at once".to_owned(),
    };
    let last = text(&terminated["message"]).trim().lines().last().unwrap_or_default();
    let last = if last.is_empty() { String::new() } else { format!(": {last}") };
    let says = format!("container {name} ends {how}{again}{last}");
    Finding::new(Depth::Cause, pod, says).advice(format!("see what it printed: {}", logs(pod, name, restarts > 0)))
}

fn logs(pod: &Value, container: &str, is_previous: bool) -> String {
    let metadata = &pod["metadata"];
    let previous = if is_previous { " --previous" } else { "" };
    format!("`windlass logs {} -n {} -c {container}{previous}`", text(&metadata["name"]), text(&metadata["namespace"]))
}

fn spec_of<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let lists = ["initContainers", "containers"];
    let mut all = lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
    all.find(|container| container["name"] == name)
}

fn image_of<'a>(pod: &'a Value, name: &str) -> &'a str {
    spec_of(pod, name).map(|spec| text(&spec["image"])).unwrap_or_default()
}
