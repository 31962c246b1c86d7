//! Pods: their state at birth, and how long they may take to end.

use serde_json::{Value, json};
use windlass_schema::{APP_ARMOR, app_armor_profile, pod_resources::service_class};

const GRACE_SECONDS_DEFAULT: i64 = 30;
const CONTAINER_LISTS: [&str; 3] = ["containers", "ephemeralContainers", "initContainers"];

pub(super) fn prepare_create(object: &mut Value) -> Vec<String> {
    object["status"] = json!({ "phase": "Pending", "qosClass": service_class(object) });
    let gates = object.pointer("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": object["metadata"]["creationTimestamp"],
        }]);
    }
    confine(object)
}

/// Gives containers the AppArmor profiles that annotations name, as fields; what is said so is deprecated.
fn confine(object: &mut Value) -> Vec<String> {
    let of_pod = object.pointer("/spec/securityContext/appArmorProfile").cloned();
    let notes = object.pointer("/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_windows = object.pointer("/spec/os/name").is_some_and(|name| name == "windows");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut).filter(|_| !is_windows) else {
        return Vec::new();
    };
    let lists = spec.iter_mut().filter(|(name, _)| CONTAINER_LISTS.contains(&name.as_str()));
    let containers = lists.flat_map(|(_, list)| list.as_array_mut().into_iter().flatten());
    let mut said = Vec::new();
    for container in containers {
        let key = format!("{APP_ARMOR}{}", container["name"].as_str().unwrap_or_default());
        let has_field = container.pointer("/securityContext/appArmorProfile").is_some_and(|field| !field.is_null());
        let Some(note) = notes.get(&key).and_then(Value::as_str).filter(|_| !has_field) else { continue };
        let profile = app_armor_profile(note);
        if profile.is_some() && profile == of_pod {
            continue;
        }
        if let Some(profile) = profile {
            container["securityContext"]["appArmorProfile"] = profile;
        }
        said.push(format!(
            r#"metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead"#
        ));
    }
    said
}

/// The class of service is decided at birth; a status that leaves it out keeps it.
pub(super) fn keep_quality(object: &mut Value, old: &Value) {
    let quality = old.pointer("/status/qosClass");
    if let (Some(quality), Some(Value::Object(status))) = (quality, object.get_mut("status")) {
        status.entry("qosClass").or_insert_with(|| quality.clone());
    }
}

/// Addresses are one list, of which the first is also told by itself; where the two differ, the single one counts.
pub(super) fn align_addresses(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    for (one, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let first = status.get(all).and_then(|list| list.get(0)?.get("ip")).cloned();
        match (status.get(one).cloned(), first) {
            (Some(address), first) if first.as_ref() != Some(&address) => {
                status.insert(all.to_owned(), json!([{ "ip": address }]));
            }
            (None, Some(first)) => drop(status.insert(one.to_owned(), first)),
            _ => {}
        }
    }
}

/// How long the Pod may take: nobody runs one without a node or one that is done.
pub(super) fn grace_seconds(live: &Value, asked: Option<i64>) -> i64 {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    let own = live.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    match asked.or(own).unwrap_or(GRACE_SECONDS_DEFAULT) {
        ..0 => 1,
        seconds => seconds,
    }
}
