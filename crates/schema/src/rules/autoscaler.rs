//! Autoscalers: what they scale, by which metrics, how fast.

use super::cursor::{At, one_of};
use crate::{FieldError, names, quantity};

/// The sources of metrics: the type that names one, and the member that describes it.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
/// The order in which the members are looked at: only the first that is there is checked.
const LOOKED_AT: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];
const WINDOW_SECONDS_MAX: i64 = 3600;
const PERIOD_SECONDS_MAX: i64 = 1800;

pub(super) fn autoscaler(object: &At<'_>, old: Option<&At<'_>>, errors: &mut Vec<FieldError>) {
    let spec = object.member("spec");
    replicas(&spec, errors);
    let target = spec.member("scaleTargetRef");
    reference(&target, errors);
    let wrong = |target: &At<'_>| wrong_version(target.member("apiVersion").text(), true);
    // One that was stored may stay.
    let was_wrong = old.is_some_and(|old| wrong(&old.at("spec.scaleTargetRef")).is_some());
    if let Some(why) = wrong(&target).filter(|_| !was_wrong) {
        let version = target.member("apiVersion");
        errors.push(FieldError::invalid(version.path.clone(), version.text(), why));
    }
    spec.member("metrics").items().for_each(|entry| metric(&entry, errors));
    for direction in ["scaleUp", "scaleDown"] {
        scaling(&spec.member("behavior").member(direction), errors);
    }
}

fn replicas(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    let (min, max) = (spec.member("minReplicas"), spec.member("maxReplicas"));
    if min.int().is_some_and(|min| min < 1) {
        errors.push(min.invalid("must be greater than or equal to 1"));
    }
    match max.int().unwrap_or_default() {
        0 => errors.push(max.missing("must be set and greater than 0")),
        count if count < 0 => errors.push(max.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if min.int().is_some_and(|min| max.int().unwrap_or_default() < min) {
        errors.push(max.invalid("must be greater than or equal to `minReplicas`"));
    }
}

fn reference(target: &At<'_>, errors: &mut Vec<FieldError>) {
    ["kind", "name"].iter().for_each(|name| segment(&target.member(name), "", errors));
}

/// A name that may be part of a path.
fn segment(at: &At<'_>, missing: &str, errors: &mut Vec<FieldError>) {
    if at.is_absent() {
        return errors.push(at.missing(missing));
    }
    errors.extend(names::path_segment(at.text()).into_iter().map(|detail| at.invalid(detail)));
}

/// What is wrong with the `apiVersion` of a reference.
fn wrong_version(version: &str, needs_group: bool) -> Option<String> {
    match version.matches('/').count() {
        0 if needs_group => Some("apiVersion must specify API group".to_owned()),
        0 | 1 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

fn metric(entry: &At<'_>, errors: &mut Vec<FieldError>) {
    let r#type = entry.member("type");
    let types = SOURCES.map(|(name, _)| name);
    if r#type.is_absent() {
        errors.push(r#type.missing("must specify a metric source type"));
    }
    if !types.contains(&r#type.text()) {
        errors.push(FieldError::not_supported(r#type.path.clone(), r#type.text(), &types));
    }
    let present: Vec<&str> = LOOKED_AT.into_iter().filter(|name| !entry.member(name).value.is_null()).collect();
    if let Some(first) = present.first() {
        source(&entry.member(first), first, errors);
    }
    let expected = SOURCES.iter().find(|(name, _)| *name == r#type.text()).map(|(_, member)| *member);
    if let Some(expected) = expected.filter(|expected| !present.contains(expected)) {
        errors.push(entry.member(expected).missing("must populate information for the given metric source"));
    }
    if present.len() != 1 {
        let others = present.iter().filter(|name| Some(**name) != expected);
        errors.extend(others.map(|name| entry.member(name).forbidden("must populate the given metric source only")));
    }
}

fn source(source: &At<'_>, name: &str, errors: &mut Vec<FieldError>) {
    match name {
        "resource" | "containerResource" if source.member("name").is_absent() => {
            errors.push(source.member("name").missing("must specify a resource name"));
        }
        "resource" | "containerResource" => {}
        _ => segment(&source.at("metric.name"), "must specify a metric name", errors),
    }
    if name == "containerResource" {
        let container = source.member("container");
        match container.is_absent() {
            true => errors.push(container.missing("must specify a container")),
            false => errors.extend(names::label(container.text()).into_iter().map(|detail| container.invalid(detail))),
        }
    }
    if name == "object" {
        let object = source.member("describedObject");
        reference(&object, errors);
        let version = object.member("apiVersion");
        let wrong = wrong_version(version.text(), false);
        errors.extend(wrong.map(|why| FieldError::invalid(version.path.clone(), version.text(), why)));
    }
    target(&source.member("target"), name, errors);
}

fn target(target: &At<'_>, source: &str, errors: &mut Vec<FieldError>) {
    let r#type = target.member("type");
    if r#type.is_absent() {
        errors.push(r#type.missing("must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&r#type.text()) {
        let why = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(r#type.path.clone(), r#type.text(), why));
    }
    let (value, average) = (target.member("value"), target.member("averageValue"));
    let utilization = target.member("averageUtilization");
    for amount in [&value, &average] {
        if quantity::nanos(amount.text()).is_some_and(|nanos| nanos <= 0) {
            errors.push(amount.invalid("must be positive"));
        }
    }
    if utilization.int().is_some_and(|percent| percent < 1) {
        errors.push(utilization.invalid("must be greater than 0"));
    }
    let is_set = |at: &At<'_>| !at.value.is_null();
    match (source, is_set(&average)) {
        ("resource" | "containerResource", false) if !is_set(&utilization) => {
            errors.push(utilization.missing("must set either a target raw value or a target utilization"));
        }
        ("resource" | "containerResource", true) if is_set(&utilization) => {
            errors.push(average.forbidden("may not set both a target raw value and a target utilization"));
        }
        ("pods", false) => errors.push(average.missing("must specify a positive target averageValue")),
        ("object", false) if !is_set(&value) => {
            errors.push(average.missing("must set either a target value or averageValue"));
        }
        ("external", false) if !is_set(&value) => {
            errors.push(average.missing("must set either a target value for metric or a per-pod target"));
        }
        ("external", true) if is_set(&value) => {
            errors.push(value.forbidden("may not set both a target value for metric and a per-pod target"));
        }
        _ => {}
    }
}

fn scaling(rules: &At<'_>, errors: &mut Vec<FieldError>) {
    if rules.value.is_null() {
        return;
    }
    let window = rules.member("stabilizationWindowSeconds");
    match window.int() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > WINDOW_SECONDS_MAX => {
            errors.push(window.invalid(format!("must be less than or equal to {WINDOW_SECONDS_MAX}")));
        }
        _ => {}
    }
    one_of(&rules.member("selectPolicy"), &["Disabled", "Max", "Min"], errors);
    let policies = rules.member("policies");
    if policies.is_absent() {
        errors.push(policies.missing("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let (r#type, value, period) = (policy.member("type"), policy.member("value"), policy.member("periodSeconds"));
        if !["Percent", "Pods"].contains(&r#type.text()) {
            errors.push(FieldError::not_supported(r#type.path.clone(), r#type.text(), &["Percent", "Pods"]));
        }
        for number in [&value, &period] {
            if number.int().unwrap_or_default() <= 0 {
                errors.push(number.invalid("must be greater than zero"));
            }
        }
        if period.int().unwrap_or_default() > PERIOD_SECONDS_MAX {
            errors.push(period.invalid(format!("must be less than or equal to {PERIOD_SECONDS_MAX}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::check_update;

    fn check(spec: Value, expect: &[&str]) {
        let mut whole =
            json!({"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}});
        for (name, value) in spec.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let object = json!({"metadata": {"name": "a", "namespace": "default"}, "spec": whole});
        check_update(("autoscaling", "v2", "HorizontalPodAutoscaler"), None, object, expect);
    }

    #[test]
    fn targets_have_a_group() {
        check(json!({}), &[]);
        check(
            json!({"scaleTargetRef": {"apiVersion": "v1", "kind": "a/b"}}),
            &[
                "spec.scaleTargetRef.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.scaleTargetRef.name: Required value",
                "spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": apiVersion must specify API group",
            ],
        );
    }

    #[test]
    fn metrics_say_what_they_measure() {
        let resource = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}});
        check(json!({"metrics": [{"type": "Resource", "resource": resource}]}), &[]);
        let types = "\"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\"";
        check(
            json!({"metrics": [{"type": "Always", "resource": resource}]}),
            &[&format!("spec.metrics[0].type: Unsupported value: \"Always\": supported values: {types}")],
        );
        check(
            json!({"metrics": [{"type": "Pods", "resource": {"target": {"type": "Sum", "averageUtilization": 0}}}]}),
            &[
                "spec.metrics[0].resource.name: Required value: must specify a resource name",
                "spec.metrics[0].resource.target.type: Invalid value: \"Sum\": must be either Utilization, Value, or AverageValue",
                "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
                "spec.metrics[0].pods: Required value: must populate information for the given metric source",
            ],
        );
    }
}
