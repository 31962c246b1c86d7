//! Pods and what is in them.

use serde_json::{Map, Value, json};

use super::{Object, object_at, objects_at, set_empty};
use crate::pod_resources::{COMPUTE, of_containers};

/// What only a Pod gets, and not the template of one.
pub(super) fn pod(object: &mut Object) {
    let Some(spec) = object_at(object, "spec") else { return };
    let on_host_network = spec.get("hostNetwork").is_some_and(|value| *value == true);
    for list in ["containers", "initContainers"] {
        for container in objects_at(spec, list) {
            if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                requests_from_limits(resources);
            }
            if on_host_network {
                host_ports(container);
            }
        }
    }
    pod_requests(spec);
    spec.entry("enableServiceLinks").or_insert(true.into());
}

/// The deprecated name of the service account follows the current one.
pub(super) fn spec(spec: &mut Object) {
    if let Some(deprecated) = spec.get("serviceAccount").cloned() {
        set_empty(spec, "serviceAccountName", deprecated);
    }
    if let Some(name) = spec.get("serviceAccountName").cloned().filter(|name| *name != "") {
        spec.insert("serviceAccount".to_owned(), name);
    }
}

pub(super) fn container(container: &mut Object) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = pull_policy(image);
    set_empty(container, "imagePullPolicy", policy);
}

/// A volume without a source is an empty directory.
pub(super) fn volume(volume: &mut Object) {
    if volume.keys().all(|name| name == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
        let policy = pull_policy(image.get("reference").and_then(Value::as_str).unwrap_or_default());
        set_empty(image, "pullPolicy", policy);
    }
}

/// An image that can change under its name is pulled always.
fn pull_policy(image: &str) -> &'static str {
    if !is_reference(image) {
        return "IfNotPresent";
    }
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.rsplit_once(':') {
        Some((_, "latest")) => "Always",
        None if digest.is_none() => "Always",
        _ => "IfNotPresent",
    }
}

/// Whether this can be the name of an image: the last part is small letters and digits, parted by signs.
fn is_reference(image: &str) -> bool {
    let name = image.split('@').next().unwrap_or_default();
    let last = name.rsplit('/').next().unwrap_or_default();
    let last = last.split(':').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    last.starts_with(is_plain)
        && last.ends_with(is_plain)
        && last.chars().all(|letter| is_plain(letter) || matches!(letter, '.' | '_' | '-'))
}

fn requests_from_limits(resources: &mut Object) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    if let Some(requests) = object_at(resources, "requests") {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

fn host_ports(container: &mut Object) {
    for port in objects_at(container, "ports") {
        let number = port.get("containerPort").cloned().unwrap_or_default();
        if port.get("hostPort").is_none_or(|port| *port == 0) {
            port.insert("hostPort".to_owned(), number);
        }
    }
}

/// Requests of the Pod as a whole, where it has limits of its own: what its containers ask for, else its limits.
fn pod_requests(spec: &mut Object) {
    let limits = spec.get("resources").and_then(|resources| resources["limits"].as_object()).cloned();
    let Some(limits) = limits.filter(|limits| !limits.is_empty()) else { return };
    let asked = of_containers(&Value::Object(spec.clone()), "requests");
    let asked = asked.into_iter().filter(|(name, _)| COMPUTE.contains(&name.as_str()));
    let mut missing: Map<String, Value> = asked.map(|(name, amount)| (name, amount.to_string().into())).collect();
    for (name, amount) in limits {
        missing.entry(name).or_insert(amount);
    }
    let resources = spec.get_mut("resources").and_then(Value::as_object_mut);
    if let Some(requests) = resources.and_then(|resources| object_at(resources, "requests")) {
        for (name, amount) in missing {
            requests.entry(name).or_insert(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pull_policy;

    #[test]
    fn the_tag_decides_when_an_image_is_pulled() {
        let check = |image: &str, expect: &str| assert_eq!(pull_policy(image), expect, "{image}");
        check("nginx", "Always");
        check("nginx:latest", "Always");
        check("nginx:1.27", "IfNotPresent");
        check("localhost:5000/nginx", "Always");
        check("localhost:5000/nginx:1", "IfNotPresent");
        check("nginx@sha256:0123", "IfNotPresent");
        check("", "IfNotPresent");
        check("Not Valid!", "IfNotPresent");
        check("2Gi", "IfNotPresent");
    }
}
