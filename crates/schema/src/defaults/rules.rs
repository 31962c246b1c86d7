//! Defaults that depend on other fields.

use serde_json::{Value, json};

use super::{Object, is_empty, object_at, objects_at, pod, service, set_empty};

/// Applies the rule of a struct, by its OpenAPI name without `io.k8s.`.
pub(super) fn apply(name: &str, object: &mut Object) {
    match name {
        "api.core.v1.Pod" => pod::pod(object),
        "api.core.v1.PodSpec" => pod::spec(object),
        "api.core.v1.Container" | "api.core.v1.EphemeralContainerCommon" => pod::container(object),
        "api.core.v1.Volume" => pod::volume(object),
        "api.core.v1.Service" => service::service(object),
        "api.core.v1.ReplicationController" => replication_controller(object),
        "api.core.v1.Namespace" => namespace(object),
        "api.core.v1.NodeStatus" => node_status(object),
        "api.core.v1.LimitRangeItem" => limit_range_item(object),
        "api.apps.v1.DeploymentSpec" => rolling_update(object, "strategy", ("25%".into(), "25%".into())),
        "api.apps.v1.DaemonSetSpec" => rolling_update(object, "updateStrategy", (1.into(), 0.into())),
        "api.apps.v1.StatefulSetSpec" => stateful_set_spec(object),
        "api.core.v1.PersistentVolume" => persistent_volume(object),
        "api.batch.v1.Job" => job(object),
        "api.autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler(object),
        "api.rbac.v1.Subject" => subject(object),
        "api.networking.v1.NetworkPolicySpec" => network_policy(object),
        "api.storage.v1.CSIDriverSpec" => set_empty(object, "volumeLifecycleModes", json!(["Persistent"])),
        "api.resource.v1.ExactDeviceRequest" | "api.resource.v1.DeviceSubRequest" => device_request(object),
        "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition" => {
            custom_resource_definition(object)
        }
        _ => {}
    }
}

fn replication_controller(object: &mut Object) {
    let labels = object.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone()).unwrap_or_default();
    if labels.is_null() {
        return;
    }
    if let Some(spec) = object_at(object, "spec") {
        set_empty(spec, "selector", labels.clone());
    }
    if let Some(metadata) = object_at(object, "metadata") {
        set_empty(metadata, "labels", labels);
    }
}

fn namespace(object: &mut Object) {
    let Some(metadata) = object_at(object, "metadata") else { return };
    if let Some(name) = metadata.get("name").cloned().filter(|name| *name != "")
        && let Some(labels) = object_at(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
}

fn node_status(object: &mut Object) {
    if let (Some(capacity), true) = (object.get("capacity").cloned(), is_empty(object, "allocatable")) {
        object.insert("allocatable".to_owned(), capacity);
    }
}

/// A limit defaults to the maximum, a request to the limit, else to the minimum.
fn limit_range_item(object: &mut Object) {
    if object.get("type").is_none_or(|r#type| r#type != "Container") {
        return;
    }
    for (target, origin) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let amounts = object.get(origin).and_then(Value::as_object).cloned().unwrap_or_default();
        if amounts.is_empty() {
            continue;
        }
        for (name, amount) in amounts {
            if let Some(target) = object_at(object, target) {
                target.entry(name).or_insert(amount);
            }
        }
    }
}

/// The type and the bounds of a rolling update: what may be unavailable, and the surge.
fn rolling_update(spec: &mut Object, strategy: &str, (max_unavailable, max_surge): (Value, Value)) {
    let Some(strategy) = object_at(spec, strategy) else { return };
    set_empty(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate"
        && let Some(bounds) = object_at(strategy, "rollingUpdate")
    {
        bounds.entry("maxUnavailable").or_insert(max_unavailable);
        bounds.entry("maxSurge").or_insert(max_surge);
    }
}

fn stateful_set_spec(spec: &mut Object) {
    // Whatever a client writes there, a template says that it is a claim.
    for claim in objects_at(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    }
    let Some(strategy) = object_at(spec, "updateStrategy") else { return };
    if is_empty(strategy, "type") {
        strategy.insert("type".to_owned(), "RollingUpdate".into());
        object_at(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate"
        && let Some(bounds) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
    {
        bounds.entry("partition").or_insert(0.into());
    }
}

fn persistent_volume(object: &mut Object) {
    if let Some(spec) = object_at(object, "spec") {
        set_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_empty(spec, "volumeMode", "Filesystem");
    }
}

/// Only of Jobs: the template in a CronJob stays as it was written.
fn job(object: &mut Object) {
    let labels = object.get("spec").map(|spec| spec["template"]["metadata"]["labels"].clone()).unwrap_or_default();
    if let Some(metadata) = object_at(object, "metadata").filter(|_| !labels.is_null()) {
        set_empty(metadata, "labels", labels);
    }
    if let Some(spec) = object_at(object, "spec") {
        job_spec(spec);
    }
}

fn job_spec(spec: &mut Object) {
    let has = |spec: &Object, name: &str| !is_empty(spec, name);
    if !has(spec, "completions") && !has(spec, "parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    set_empty(spec, "parallelism", 1);
    // Every index has its own limit, so the job as a whole has none.
    let backoff_limit = if has(spec, "backoffLimitPerIndex") { i32::MAX } else { 6 };
    set_empty(spec, "backoffLimit", backoff_limit);
    set_empty(spec, "completionMode", "NonIndexed");
    set_empty(spec, "suspend", false);
    set_empty(spec, "manualSelector", false);
    let replacement =
        if spec.get("podFailurePolicy").is_some_and(Value::is_object) { "Failed" } else { "TerminatingOrFailed" };
    set_empty(spec, "podReplacementPolicy", replacement);
}

fn autoscaler(spec: &mut Object) {
    let utilization = json!({"type": "Utilization", "averageUtilization": 80});
    set_empty(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}]));
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = object_at(behavior, "scaleUp") {
        set_empty(up, "stabilizationWindowSeconds", 0);
        set_empty(up, "selectPolicy", "Max");
        set_empty(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = object_at(behavior, "scaleDown") {
        set_empty(down, "selectPolicy", "Max");
        set_empty(down, "policies", json!([percent]));
    }
}

fn subject(subject: &mut Object) {
    if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
        set_empty(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn network_policy(spec: &mut Object) {
    let types = if is_empty(spec, "egress") { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
    set_empty(spec, "policyTypes", types);
}

fn device_request(request: &mut Object) {
    set_empty(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" && request.get("count").is_none_or(|count| *count == 0) {
        request.insert("count".to_owned(), 1.into());
    }
}

fn custom_resource_definition(object: &mut Object) {
    let Some(spec) = object_at(object, "spec") else { return };
    if let Some(names) = object_at(spec, "names") {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            set_empty(names, "singular", kind.to_lowercase());
            set_empty(names, "listKind", format!("{kind}List"));
        }
    }
    set_empty(spec, "conversion", json!({"strategy": "None"}));
    let stored =
        objects_at(spec, "versions").find(|version| version.get("storage").is_some_and(|storage| *storage == true));
    let stored = stored.and_then(|version| version.get("name").cloned());
    if let (Some(stored), Some(status)) = (stored, object_at(object, "status")) {
        set_empty(status, "storedVersions", json!([stored]));
    }
}
