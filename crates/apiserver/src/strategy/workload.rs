//! Kinds that make Pods from a template and find them by a selector.

use serde_json::Value;
use windlass_schema::{FieldError, Kind};

use super::{immutable, pod_spec};
use crate::rest::label_selector_matches;

pub(super) fn validate(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if !matches!(
        kind.kind.as_str(),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicationController"
    ) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    counts(object, &mut errors);
    selector(kind, object, &mut errors);
    let template = object.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    errors.extend(pod_spec::problems(template, "spec.template.spec"));
    restart_policy(kind, template, &mut errors);
    let Some(old) = old else { return errors };
    match kind.kind.as_str() {
        "ReplicationController" => {}
        "Job" => {
            immutable(object, old, "/spec/selector", &mut errors);
            immutable(object, old, "/spec/completionMode", &mut errors);
            immutable_template(object, old, &mut errors);
        }
        "StatefulSet" => immutable_set(object, old, &mut errors),
        _ => immutable(object, old, "/spec/selector", &mut errors),
    }
    errors
}

fn counts(object: &Value, errors: &mut Vec<FieldError>) {
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "parallelism", "completions", "backoffLimit"] {
        let number = object.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_i64);
        if let Some(number) = number.filter(|number| *number < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("spec.{field}"), number, why));
        }
    }
}

/// A selector that does not find the Pods of the template would make Pods for ever.
fn selector(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let selector = object.pointer("/spec/selector").unwrap_or(&Value::Null);
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    let empty = selector.as_object().is_none_or(|members| members.values().all(is_empty));
    if empty {
        if selector.is_null() || kind.kind == "ReplicationController" {
            errors.push(FieldError::required("spec.selector", ""));
        } else {
            let why = "empty selector is invalid for deployment";
            errors.push(FieldError::invalid(
                "spec.selector",
                selector.clone(),
                why.replace("deployment", &kind.singular),
            ));
        }
        return;
    }
    let plain = kind.kind == "ReplicationController";
    let wrapped = serde_json::json!({ "matchLabels": selector });
    if !label_selector_matches(if plain { &wrapped } else { selector }, template) {
        let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}

fn restart_policy(kind: &Kind, template: &Value, errors: &mut Vec<FieldError>) {
    let policy = template.get("restartPolicy").and_then(Value::as_str).unwrap_or_default();
    let allowed: &[&str] = if kind.kind == "Job" { &["OnFailure", "Never"] } else { &["Always"] };
    match policy {
        "" if kind.kind == "Job" => {
            let why = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required("spec.template.spec.restartPolicy", why));
        }
        "" => {}
        policy if !allowed.contains(&policy) => {
            errors.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, allowed));
        }
        _ => {}
    }
}

/// A Job that waits may still choose where its Pods run.
fn immutable_template(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let suspended = old.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if !suspended {
        immutable(object, old, "/spec/template", errors);
    }
}

fn immutable_set(object: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let open = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let closed = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Some(members) = spec.as_object_mut() {
            members.retain(|field, _| !open.contains(&field.as_str()));
        }
        spec
    };
    if closed(object) != closed(old) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                   'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden("spec", why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_schema::builtin;

    use super::*;

    fn deployment(selector: &str, label: &str) -> Value {
        json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"app": selector}}, "template": {
            "metadata": {"labels": {"app": label}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}}})
    }

    fn check(object: &Value, old: Option<&Value>, expect: &[&str]) {
        let kind = builtin().find("apps", "v1", "deployments").unwrap();
        let errors: Vec<String> = validate(kind, object, old).iter().map(|error| error.path.clone()).collect();
        assert_eq!(errors, expect);
    }

    #[test]
    fn a_selector_finds_the_pods_of_the_template_and_stays() {
        check(&deployment("a", "a"), None, &[]);
        check(&deployment("a", "b"), None, &["spec.template.metadata.labels"]);
        check(&deployment("b", "b"), Some(&deployment("a", "a")), &["spec.selector"]);
        let mut negative = deployment("a", "a");
        negative["spec"]["replicas"] = (-1).into();
        check(&negative, None, &["spec.replicas"]);
        let mut none = deployment("a", "a");
        none["spec"]["selector"] = json!({});
        check(&none, None, &["spec.selector"]);
    }
}
