//! What may change in the resources of a Pod that runs.

use serde_json::{Map, Value};

use super::cursor::At;
use super::{metadata, pod};
use crate::pod_resources::{COMPUTE, service_class};
use crate::{FieldError, Kind};

const MIRROR: &str = "kubernetes.io/config.mirror";
const RESTART: &str = "RestartContainer";
const POLICIES: [&str; 2] = ["NotRequired", RESTART];
const FROZEN: &str = "only cpu and memory resources are mutable";

/// Checks a Pod of which only the resources were written, against the `old` one.
pub fn validate_pod_resize(kind: &Kind, new: &Value, old: &Value) -> Vec<FieldError> {
    if old.pointer("/metadata/annotations").is_some_and(|notes| notes.get(MIRROR).is_some()) {
        return vec![FieldError::forbidden("", "static pods cannot be resized")];
    }
    if old.pointer("/spec/os/name").is_some_and(|name| name == "windows") {
        return vec![FieldError::forbidden("", "windows pods cannot be resized")];
    }
    let mut errors = metadata::validate_metadata(kind, new, Some(old));
    pod::sound(&At::root(new), &mut errors);
    let class = old["status"]["qosClass"].as_str().unwrap_or_else(|| service_class(old));
    if class != service_class(new) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", class, detail));
    }
    if !is_supported(old) {
        errors.push(FieldError::forbidden("spec", "Pod running on node without support for resize"));
    }
    let (new, old) = (At::root(new).member("spec"), At::root(old).member("spec"));
    whole(&new, &old, &mut errors);
    let before = errors.len();
    for list in ["containers", "initContainers"] {
        same_containers(&new.member(list), &old.member(list), list, &mut errors);
    }
    if errors.len() > before {
        return errors;
    }
    for list in ["initContainers", "containers"] {
        for (new, old) in new.member(list).items().zip(old.member(list).items()) {
            container(&new, &old, list, &mut errors);
        }
    }
    errors
}

/// Checks how a container takes changes of its resources.
pub(super) fn policies(container: &At<'_>, list: &str, pod_policy: &str, errors: &mut Vec<FieldError>) {
    let all = container.member("resizePolicy");
    let mut seen = Vec::new();
    let beside = container.member("restartPolicy").text() == "Always";
    for (index, entry) in all.items().enumerate() {
        let (resource, policy) = (entry.member("resourceName"), entry.member("restartPolicy"));
        if seen.contains(&resource.text()) {
            errors.push(FieldError::duplicate(entry.path.clone(), resource.text()));
        }
        seen.push(resource.text());
        known(&all, resource.text(), &COMPUTE, errors);
        known(&all, policy.text(), &POLICIES, errors);
        if pod_policy == "Never" && policy.text() != POLICIES[0] {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(all.path.clone(), policy.text(), detail));
        }
        if list == "initContainers" && !beside && policy.text() == RESTART {
            let path = format!("{}[{index}].restartPolicy", all.path);
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(FieldError::invalid(path, policy.text(), detail));
        }
    }
}

fn known(at: &At<'_>, word: &str, words: &[&str], errors: &mut Vec<FieldError>) {
    if word.is_empty() {
        errors.push(at.missing(""));
    } else if !words.contains(&word) {
        errors.push(FieldError::not_supported(at.path.clone(), word, words));
    }
}

/// A node that does not tell what a running container has cannot change it.
fn is_supported(pod: &Value) -> bool {
    let statuses = pod["status"]["containerStatuses"].as_array();
    let running = statuses.into_iter().flatten().find(|status| !status["state"]["running"].is_null());
    running.is_none_or(|status| !status["resources"].is_null())
}

/// What the Pod says of itself as a whole.
fn whole(new: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    let (now, before) = (new.member("resources"), old.member("resources"));
    if !before.value.is_null() && now.value.is_null() {
        return errors.push(now.forbidden("pod-level resources cannot be removed"));
    }
    for (side, word) in [("requests", "requests"), ("limits", "limits")] {
        if is_removed(&now.member(side), &before.member(side)) {
            errors.push(now.member(side).forbidden(format!("pod-level resource {word} cannot be removed")));
        }
    }
    if lasting(now.value) != lasting(before.value) {
        errors.push(new.forbidden(format!("{FROZEN} at pod-level")));
    }
}

fn same_containers(new: &At<'_>, old: &At<'_>, list: &str, errors: &mut Vec<FieldError>) {
    if new.items().count() != old.items().count() {
        return errors.push(new.forbidden(format!("{list} may not be added or removed on resize")));
    }
    for (new, old) in new.items().zip(old.items()) {
        let name = new.member("name");
        if name.value != old.member("name").value {
            errors.push(name.forbidden(format!("{list} may not be renamed or reordered on resize")));
        }
    }
}

fn container(new: &At<'_>, old: &At<'_>, list: &str, errors: &mut Vec<FieldError>) {
    let (now, before) = (new.member("resources"), old.member("resources"));
    for side in ["requests", "limits"] {
        if is_removed(&now.member(side), &before.member(side)) {
            errors.push(now.member(side).forbidden(format!("resource {side} cannot be removed")));
        }
    }
    let rest = |container: &Value| {
        let mut rest = container.as_object().cloned().unwrap_or_default();
        rest.insert("resources".to_owned(), lasting(&container["resources"]));
        rest
    };
    if rest(new.value) == rest(old.value) {
        return;
    }
    errors.push(match list {
        "containers" => FieldError::forbidden("spec", FROZEN),
        _ => new.forbidden("only cpu and memory resources for init or sidecar containers are mutable"),
    });
}

/// What of resources may not change.
fn lasting(resources: &Value) -> Value {
    let mut rest = Map::new();
    for (side, amounts) in resources.as_object().into_iter().flatten() {
        let mut amounts = amounts.clone();
        if let Some(members) = amounts.as_object_mut() {
            COMPUTE.iter().for_each(|name| drop(members.remove(*name)));
        }
        let is_empty = amounts.is_null() || amounts.as_object().is_some_and(Map::is_empty);
        if !is_empty {
            rest.insert(side.clone(), amounts);
        }
    }
    rest.into()
}

fn is_removed(new: &At<'_>, old: &At<'_>) -> bool {
    old.entries().any(|(name, _)| new.value.get(name).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(resources: Value, policy: Value) -> Value {
        let container = json!({"name": "c", "image": "i", "resources": resources, "resizePolicy": policy});
        json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]},
            "status": {"qosClass": "Burstable"}})
    }

    fn check(change: impl Fn(&mut Value), expect: &[&str]) {
        let resources = json!({"requests": {"cpu": "1", "memory": "1Gi", "example.com/x": "1"},
            "limits": {"cpu": "2", "example.com/x": "1"}});
        let old = pod(resources, Value::Null);
        let mut new = old.clone();
        change(&mut new);
        let table = crate::builtin();
        let kind = table.find("", "v1", "pods").unwrap();
        let told: Vec<String> = validate_pod_resize(kind, &new, &old).iter().map(ToString::to_string).collect();
        assert_eq!(told, expect);
    }

    #[test]
    fn only_amounts_of_processors_and_memory_change() {
        let resources = |pod: &mut Value, side: &str, name: &str, amount: Value| {
            pod["spec"]["containers"][0]["resources"][side][name] = amount;
        };
        check(|_| {}, &[]);
        check(|pod| resources(pod, "limits", "cpu", json!("3")), &[]);
        check(|pod| resources(pod, "limits", "memory", json!("2Gi")), &[]);
        check(
            |pod| resources(pod, "requests", "example.com/x", json!("2")),
            &[
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be equal to example.com/x limit of 1",
                "spec: Forbidden: only cpu and memory resources are mutable",
            ],
        );
        check(
            |pod| pod["spec"]["containers"][0]["image"] = json!("other"),
            &["spec: Forbidden: only cpu and memory resources are mutable"],
        );
        let remove = |pod: &mut Value| {
            drop(pod["spec"]["containers"][0]["resources"]["limits"].as_object_mut().unwrap().remove("cpu"));
        };
        check(remove, &["spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"]);
        check(
            |pod| pod["spec"]["containers"][0]["name"] = json!("d"),
            &["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"],
        );
    }

    #[test]
    fn the_class_of_service_stays() {
        let guaranteed = |pod: &mut Value| {
            let all = json!({"cpu": "1", "memory": "1Gi", "example.com/x": "1"});
            pod["spec"]["containers"][0]["resources"] = json!({"limits": all, "requests": all});
        };
        check(
            guaranteed,
            &["spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing"],
        );
    }

    #[test]
    fn policies_fit_the_pod() {
        let check = |policy: Value, pod_policy: &str, list: &str, expect: &[&str]| {
            let container = json!({"resizePolicy": policy});
            let mut errors = Vec::new();
            policies(&At::root(&container), list, pod_policy, &mut errors);
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
        };
        let restart = || json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        check(restart(), "Always", "containers", &[]);
        check(
            restart(),
            "Never",
            "containers",
            &[
                "resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
            ],
        );
        check(
            restart(),
            "Always",
            "initContainers",
            &[
                "resizePolicy[0].restartPolicy: Invalid value: \"RestartContainer\": must not be set to 'RestartContainer' for non-sidecar initContainers",
            ],
        );
        check(
            json!([{"resourceName": "disk", "restartPolicy": "NotRequired"}]),
            "Always",
            "containers",
            &["resizePolicy: Unsupported value: \"disk\": supported values: \"cpu\", \"memory\""],
        );
    }
}
