//! The environment of containers, and what of a Pod can be told to them.

use super::cursor::{At, follows, named, required, required_name};
use super::path;
use crate::{FieldError, names, quantity};

const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
/// What of a Pod a variable can hold.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What of a Pod has a name at all.
const KNOWN_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Checks the variables of a container.
pub(super) fn check(container: &At<'_>, errors: &mut Vec<FieldError>) {
    for variable in container.member("env").items() {
        required_name(&variable.member("name"), names::variable, errors);
        value_from(&variable, errors);
    }
    let list = container.member("envFrom");
    for source in list.items() {
        named(&source.member("prefix"), names::variable, errors);
        let references = ["configMapRef", "secretRef"].map(|name| source.member(name));
        let references: Vec<&At<'_>> = references.iter().filter(|reference| reference.is_set()).collect();
        for reference in &references {
            required_name(&reference.member("name"), names::subdomain, errors);
        }
        let wrong = match references.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        // The list is named, not its item.
        errors.push(FieldError::invalid(list.path.clone(), "", wrong));
    }
}

fn value_from(variable: &At<'_>, errors: &mut Vec<FieldError>) {
    let source = variable.member("valueFrom");
    if !source.is_set() {
        return;
    }
    let given: Vec<At<'_>> = SOURCES.iter().map(|name| source.member(name)).filter(At::is_set).collect();
    field(&source.member("fieldRef"), &FIELDS, errors);
    let resource = source.member("resourceFieldRef");
    if resource.is_set() {
        container_resource(&resource, errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        let reference = source.member(name);
        if reference.is_set() {
            follows(&reference.member("name"), names::subdomain, errors);
            required_name(&reference.member("key"), names::config_key, errors);
        }
    }
    let file = source.member("fileKeyRef");
    if file.is_set() {
        required_name(&file.member("key"), names::variable, errors);
        required_name(&file.member("volumeName"), names::label, errors);
        required(&file.member("path"), errors);
        path::without_steps_back(&file.member("path"), errors);
    }
    let wrong = match given.len() {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !variable.member("value").is_absent() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(source.path.clone(), "", wrong));
}

/// Checks a reference to a field of the Pod, one of `allowed`, or a label or an annotation by its key.
pub(super) fn field(reference: &At<'_>, allowed: &[&str], errors: &mut Vec<FieldError>) {
    let (version, path) = (reference.member("apiVersion"), reference.member("fieldPath"));
    if !reference.is_set() {
        return;
    }
    if path.is_absent() {
        return errors.push(path.missing(""));
    }
    let unreadable = |why: String| path.invalid(format!("error converting fieldPath: {why}"));
    if !["", "v1"].contains(&version.text()) {
        return errors.push(unreadable(format!("unsupported pod version: {}", version.text())));
    }
    let (name, key) = subscripted(path.text());
    let name = if name == "spec.host" && key.is_none() { "spec.nodeName" } else { name };
    // What is wrong with the key is said of the reference.
    match (name, key) {
        ("metadata.annotations", Some(key)) => {
            wrong_key(reference, &key.to_lowercase(), errors);
        }
        ("metadata.labels", Some(key)) => wrong_key(reference, key, errors),
        (_, Some(_)) => errors.push(unreadable(format!("field label does not support subscript: {}", path.text()))),
        (_, None) if !FIELDS.contains(&name) && !KNOWN_FIELDS.contains(&name) => {
            errors.push(unreadable(format!("field label not supported: {name}")));
        }
        (_, None) if !allowed.contains(&name) => {
            errors.push(FieldError::not_supported(path.path.clone(), name, allowed));
        }
        _ => {}
    }
}

fn wrong_key(reference: &At<'_>, key: &str, errors: &mut Vec<FieldError>) {
    let wrong = names::qualified(key).into_iter();
    errors.extend(wrong.map(|detail| FieldError::invalid(reference.path.clone(), key, detail)));
}

/// The path and the key of `path['key']`.
fn subscripted(text: &str) -> (&str, Option<&str>) {
    let split = text.strip_suffix("']").and_then(|text| text.split_once("['"));
    split.filter(|(path, _)| !path.is_empty()).map_or((text, None), |(path, key)| (path, Some(key)))
}

/// Checks a reference to what a container asks for or may use.
pub(super) fn container_resource(reference: &At<'_>, errors: &mut Vec<FieldError>) {
    let resource = reference.member("resource");
    let is_huge = HUGE_PAGES.iter().any(|prefix| resource.text().starts_with(prefix));
    if resource.is_absent() {
        errors.push(resource.missing(""));
    } else if !RESOURCES.contains(&resource.text()) && !is_huge {
        errors.push(resource.unsupported(&RESOURCES));
    }
    divisor(reference, errors);
}

/// Checks by what an amount is divided that a reference tells.
pub(super) fn divisor(reference: &At<'_>, errors: &mut Vec<FieldError>) {
    let (resource, divisor) = (reference.member("resource").text(), reference.member("divisor"));
    let text = quantity::canonical(divisor.text()).unwrap_or_else(|| "0".to_owned());
    let kind = match resource.split_once('.').map_or("", |(_, kind)| kind) {
        "cpu" => "cpu",
        "memory" => "memory",
        "ephemeral-storage" => "local ephemeral storage",
        other if other.starts_with("hugepages-") => "hugepages",
        _ => return,
    };
    let is_fine = match kind {
        "cpu" => ["1m", "1"].contains(&text.as_str()),
        _ => BYTE_DIVISORS.contains(&text.as_str()),
    };
    if text == "0" || is_fine {
        return;
    }
    let values = if kind == "cpu" { "1m and 1".to_owned() } else { BYTE_DIVISORS.join(", ") };
    let detail = format!("only divisor's values {values} are supported with the {kind} resource");
    errors.push(FieldError::invalid(divisor.path, resource, detail));
}

/// A file of variables is in a volume that is an empty directory at first.
pub(super) fn file_volumes(spec: &At<'_>, errors: &mut Vec<FieldError>) {
    for container in super::windows::containers(spec) {
        for variable in container.member("env").items() {
            let file = variable.at("valueFrom.fileKeyRef");
            if !file.is_set() {
                continue;
            }
            let name = file.member("volumeName");
            // Of volumes with the same name, the last is meant.
            match spec.member("volumes").items().filter(|volume| volume.member("name").text() == name.text()).last() {
                None => errors.push(FieldError::not_found(name.path.clone(), name.text())),
                Some(volume) if !volume.member("emptyDir").is_set() => {
                    errors.push(name.wrong_text("referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    }
}
