//! Autoscalers between their two stable versions; v2 is stored.
//!
//! Version 1 knows one metric, the utilization of the CPU. What it cannot express travels in annotations, as upstream does.

use serde_json::{Map, Value, json};

/// Fields of version 2 that version 1 carries in annotations: the parent, the field, the annotation.
const CARRIED: [(&str, &str, &str); 4] = [
    ("spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"),
    ("spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"),
    ("status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"),
    ("status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"),
];

/// An `autoscaling/v2` autoscaler as `autoscaling/v1`.
pub fn autoscaler_to_v1(mut object: Value) -> Value {
    let target = take_cpu(&mut object, "spec", "metrics", "target");
    let current = take_cpu(&mut object, "status", "currentMetrics", "current");
    set(&mut object, "spec", "targetCPUUtilizationPercentage", target);
    set(&mut object, "status", "currentCPUUtilizationPercentage", current);
    for (parent, field, annotation) in CARRIED {
        let value = object.get_mut(parent).and_then(Value::as_object_mut).and_then(|parent| parent.remove(field));
        if let Some(value) = value.filter(|value| !is_empty(value)) {
            let text = value.to_string();
            annotations(&mut object).map(|annotations| annotations.insert(annotation.to_owned(), text.into()));
        }
    }
    object["apiVersion"] = "autoscaling/v1".into();
    object
}

/// An `autoscaling/v1` autoscaler as `autoscaling/v2`.
pub fn autoscaler_to_v2(mut object: Value) -> Value {
    let target = remove(&mut object, "spec", "targetCPUUtilizationPercentage");
    let current = remove(&mut object, "status", "currentCPUUtilizationPercentage");
    for (parent, field, annotation) in CARRIED {
        let text = remove_annotation(&mut object, annotation);
        let value = text.and_then(|text| serde_json::from_str(&text).ok());
        set(&mut object, parent, field, value);
    }
    // The CPU comes first, so that the way back finds the same metric.
    let cpu = |name: &str, value: Value| json!({"type": "Resource", "resource": {"name": "cpu", name: value}});
    if let Some(target) = target {
        let metric = cpu("target", json!({"type": "Utilization", "averageUtilization": target}));
        prepend(&mut object, "spec", "metrics", metric);
    }
    if let Some(current) = current {
        let metric = cpu("current", json!({"averageUtilization": current}));
        prepend(&mut object, "status", "currentMetrics", metric);
    }
    object["apiVersion"] = "autoscaling/v2".into();
    object
}

/// Removes the first metric of the utilization of the CPU and gives the percentage.
fn take_cpu(object: &mut Value, parent: &str, list: &str, kind: &str) -> Option<Value> {
    let metrics = object.get_mut(parent)?.get_mut(list)?.as_array_mut()?;
    let utilization = |metric: &Value| metric["resource"][kind]["averageUtilization"].clone();
    let index = metrics.iter().position(|metric| {
        metric["type"] == "Resource" && metric["resource"]["name"] == "cpu" && utilization(metric).is_number()
    })?;
    Some(utilization(&metrics.remove(index)))
}

fn prepend(object: &mut Value, parent: &str, list: &str, item: Value) {
    let Some(parent) = object.get_mut(parent).and_then(Value::as_object_mut) else { return };
    let list = parent.entry(list).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(items) = list {
        items.insert(0, item);
    }
}

fn set(object: &mut Value, parent: &str, field: &str, value: Option<Value>) {
    if let (Some(value), Some(parent)) = (value, object.get_mut(parent).and_then(Value::as_object_mut)) {
        parent.insert(field.to_owned(), value);
    }
}

fn remove(object: &mut Value, parent: &str, field: &str) -> Option<Value> {
    object.get_mut(parent)?.as_object_mut()?.remove(field)
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

fn remove_annotation(object: &mut Value, name: &str) -> Option<String> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(name)?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    value.as_str().map(str::to_owned)
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way_to_version_1_and_back() {
        let v2 = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a"}, "behavior": {"scaleDown": {"selectPolicy": "Max"}},
                     "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
                                 {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]},
            "status": {"desiredReplicas": 1, "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}]}
        });
        let v1 = autoscaler_to_v1(v2.clone());
        assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 80);
        assert_eq!(v1["status"]["currentCPUUtilizationPercentage"], 7);
        assert!(v1["spec"].get("metrics").is_none() && v1["spec"].get("behavior").is_none());
        assert_eq!(autoscaler_to_v2(v1), v2);
    }

    #[test]
    fn a_plain_version_1_needs_no_annotations() {
        let v1 = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}, "status": {"currentReplicas": 0}
        });
        let v2 = autoscaler_to_v2(v1.clone());
        assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
        assert_eq!(autoscaler_to_v1(v2), v1);
    }
}
