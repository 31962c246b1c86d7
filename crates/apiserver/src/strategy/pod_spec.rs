//! The rules of what a Pod runs, alike in Pods and in templates.

use std::collections::HashSet;

use serde_json::Value;
use windlass_schema::FieldError;

use crate::rest::label_problems;

/// What is wrong with the specification of a Pod at `path`.
pub(super) fn problems(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let volumes = volumes(spec, path, &mut errors);
    if items(spec, "containers").next().is_none() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut names = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (index, container) in items(spec, list).enumerate() {
            let path = format!("{path}.{list}[{index}]");
            errors.extend(name(container, &path, &mut names));
            if text(container, "image").trim().is_empty() {
                errors.push(FieldError::required(format!("{path}.image"), ""));
            }
            mounts(container, &path, &volumes, &mut errors);
            ports(container, &path, &mut errors);
        }
    }
    errors
}

fn items<'a>(value: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    value.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A name that is a DNS label and that nothing beside it has.
fn name<'a>(value: &'a Value, path: &str, names: &mut HashSet<&'a str>) -> Vec<FieldError> {
    let (name, path) = (text(value, "name"), format!("{path}.name"));
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    if !names.insert(name) {
        return vec![FieldError::duplicate(path, name)];
    }
    label_problems(name).into_iter().map(|why| FieldError::invalid(path.as_str(), name, why)).collect()
}

fn volumes<'a>(spec: &'a Value, path: &str, errors: &mut Vec<FieldError>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (index, volume) in items(spec, "volumes").enumerate() {
        let path = format!("{path}.volumes[{index}]");
        errors.extend(name(volume, &path, &mut names));
        let sources = volume.as_object().map_or(0, |members| members.keys().filter(|key| *key != "name").count());
        match sources {
            0 => errors.push(FieldError::required(path, "must specify a volume type")),
            1 => {}
            _ => errors.push(FieldError::forbidden(path, "may not specify more than 1 volume type")),
        }
    }
    names
}

fn mounts(container: &Value, path: &str, volumes: &HashSet<&str>, errors: &mut Vec<FieldError>) {
    let mut places = HashSet::new();
    for (index, mount) in items(container, "volumeMounts").enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        match text(mount, "name") {
            "" => errors.push(FieldError::required(format!("{path}.name"), "")),
            name if !volumes.contains(name) => errors.push(FieldError::not_found(format!("{path}.name"), name)),
            _ => {}
        }
        match text(mount, "mountPath") {
            "" => errors.push(FieldError::required(format!("{path}.mountPath"), "")),
            place if !places.insert(place) => {
                errors.push(FieldError::invalid(format!("{path}.mountPath"), place, "must be unique"));
            }
            _ => {}
        }
    }
}

fn ports(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, port) in items(container, "ports").enumerate() {
        let path = format!("{path}.ports[{index}].containerPort");
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or(0) {
            0 => errors.push(FieldError::required(path, "")),
            1..=65_535 => {}
            number => errors.push(FieldError::invalid(path, number, "must be between 1 and 65535, inclusive")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: Value, expect: &[&str]) {
        let errors: Vec<String> = problems(&spec, "spec").iter().map(ToString::to_string).collect();
        assert_eq!(errors, expect, "{spec}");
    }

    #[test]
    fn a_pod_runs_named_containers_from_images() {
        check(json!({"containers": [{"name": "a", "image": "x"}]}), &[]);
        check(json!({}), &["spec.containers: Required value"]);
        check(json!({"containers": [{"name": "a"}]}), &["spec.containers[0].image: Required value"]);
        let twice = json!({"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]});
        check(twice, &["spec.containers[1].name: Duplicate value: \"a\""]);
    }

    #[test]
    fn mounts_name_volumes() {
        let spec = json!({"containers": [{"name": "a", "image": "x", "volumeMounts": [
            {"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "n"}]});
        check(
            spec,
            &[
                "spec.volumes[1]: Required value: must specify a volume type",
                "spec.containers[0].volumeMounts[1].name: Not found: \"w\"",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/v\": must be unique",
            ],
        );
    }
}
