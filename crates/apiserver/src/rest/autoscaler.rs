//! Autoscalers in their first version, which knows processors only; what it cannot say travels in annotations.

use serde_json::{Map, Value, json};

use crate::object::Object;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// From the stored version to the first one.
pub(super) fn to_old(object: &mut Value) {
    let target = take_processor(object, "/spec/metrics", "/resource/target/averageUtilization");
    let current = take_processor(object, "/status/currentMetrics", "/resource/current/averageUtilization");
    for (section, field, annotation) in [
        ("spec", "metrics", METRICS),
        ("spec", "behavior", BEHAVIOR),
        ("status", "currentMetrics", CURRENT_METRICS),
        ("status", "conditions", CONDITIONS),
    ] {
        let members = object.get_mut(section).and_then(Value::as_object_mut);
        let Some(value) = members.and_then(|members| members.remove(field)) else { continue };
        if !is_empty(&value) {
            annotations(object).insert(annotation.to_owned(), value.to_string().into());
        }
    }
    if let Some(target) = target {
        object["spec"]["targetCPUUtilizationPercentage"] = target;
    }
    if let Some(current) = current {
        object["status"]["currentCPUUtilizationPercentage"] = current;
    }
}

/// From the first version to the stored one.
pub(super) fn to_new(object: &mut Value) {
    for (section, field, annotation) in [
        ("spec", "metrics", METRICS),
        ("spec", "behavior", BEHAVIOR),
        ("status", "currentMetrics", CURRENT_METRICS),
        ("status", "conditions", CONDITIONS),
    ] {
        let Some(text) = object.annotation(annotation) else { continue };
        let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
        annotations(object).remove(annotation);
        object[section][field] = value;
    }
    if annotations(object).is_empty() {
        object.set_meta("annotations", Value::Null);
    }
    put_processor(
        object,
        "spec",
        "targetCPUUtilizationPercentage",
        "metrics",
        |percent| json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}),
    );
    put_processor(
        object,
        "status",
        "currentCPUUtilizationPercentage",
        "currentMetrics",
        |percent| json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}),
    );
}

fn annotations(object: &mut Value) -> &mut Map<String, Value> {
    let annotations = object.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations.as_object_mut().expect("made a map above")
}

/// Takes the utilization of processors out of a list of metrics.
fn take_processor(object: &mut Value, list: &str, percent: &str) -> Option<Value> {
    let metrics = object.pointer_mut(list)?.as_array_mut()?;
    let found = metrics.iter().position(|metric| {
        metric.pointer("/resource/name").is_some_and(|name| name == "cpu") && metric.pointer(percent).is_some()
    })?;
    metrics.remove(found).pointer_mut(percent).map(Value::take)
}

fn put_processor(object: &mut Value, section: &str, field: &str, list: &str, metric: fn(Value) -> Value) {
    let Some(members) = object.get_mut(section).and_then(Value::as_object_mut) else { return };
    let Some(percent) = members.remove(field) else { return };
    let metrics = members.entry(list).or_insert_with(|| json!([]));
    if let Some(metrics) = metrics.as_array_mut() {
        metrics.insert(0, metric(percent));
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_the_versions() {
        let new = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "behavior": {"scaleUp": {}}, "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}]},
            "status": {"conditions": [{"type": "AbleToScale"}]}});
        let mut object = new.clone();
        to_old(&mut object);
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert!(object.annotation(METRICS).is_some_and(|text| text.contains("memory")));
        to_new(&mut object);
        assert_eq!(object, new);
    }
}
