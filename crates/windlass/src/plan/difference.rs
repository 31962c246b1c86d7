//! What is different between two objects, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::place::meta;

/// What the API keeps for itself: it says nothing about what is wanted.
const KEPT: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "selfLink",
    "deletionGracePeriodSeconds",
];
/// What follows from other fields: it would only be in the way.
const FOLLOWS: [&str; 3] = ["lastTransitionTime", "observedGeneration", "ownerReferences"];
/// Shown instead of what is secret.
const HIDDEN: &str = "(hidden)";

/// A field that is different.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Field {
    /// Where, such as `spec.replicas` or `spec.containers[web].image`.
    pub(super) path: String,
    /// What is there; none if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<Value>,
    /// What would be there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Value>,
}

/// The fields that differ, in the order of their paths. The contents of Secrets are not shown.
pub(super) fn fields(before: Option<&Value>, now: Option<&Value>) -> Vec<Field> {
    let is_secret = before.or(now).is_some_and(|object| object["kind"] == "Secret");
    let (before, now) = (leaves(before), leaves(now));
    let paths: std::collections::BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let different = paths.into_iter().filter(|path| before.get(*path) != now.get(*path));
    let show = |path: &str, value: Option<&Value>| {
        let is_hidden = is_secret && (path.starts_with("data") || path.starts_with("stringData"));
        value.map(|value| if is_hidden { HIDDEN.into() } else { value.clone() })
    };
    let field =
        |path: &String| Field { path: path.clone(), from: show(path, before.get(path)), to: show(path, now.get(path)) };
    different.map(field).collect()
}

/// The values of an object by their paths, without what the API keeps for itself.
fn leaves(object: Option<&Value>) -> BTreeMap<String, Value> {
    let Some(Value::Object(members)) = object else { return BTreeMap::new() };
    let mut members = members.clone();
    for identity in ["apiVersion", "kind"] {
        members.remove(identity);
    }
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.retain(|name, _| !KEPT.contains(&name.as_str()) && name != "name" && name != "namespace");
    }
    let mut leaves = BTreeMap::new();
    walk(String::new(), &Value::Object(members), &mut leaves);
    leaves
}

fn walk(path: String, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members.iter().filter(|(name, _)| !FOLLOWS.contains(&name.as_str())) {
                // A name with a dot in it would read as two.
                let step = if name.contains('.') { format!("[{name}]") } else { format!(".{name}") };
                let path =
                    if path.is_empty() { step.trim_start_matches('.').to_owned() } else { format!("{path}{step}") };
                walk(path, member, leaves);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                let key = key(item);
                let step = key.and_then(|key| item[key].as_str()).map_or_else(|| index.to_string(), str::to_owned);
                let mut item = item.clone();
                if let Value::Object(members) = &mut item
                    && members.len() > 1
                {
                    members.retain(|name, _| Some(name.as_str()) != key); // The path says it.
                }
                walk(format!("{path}[{step}]"), &item, leaves);
            }
        }
        Value::Null | Value::Object(_) | Value::Array(_) => {}
        value => {
            leaves.insert(path, value.clone());
        }
    }
}

/// The member that tells an item of a list from the others, so that one that moves is not different.
fn key(item: &Value) -> Option<&'static str> {
    ["name", "type", "mountPath"].into_iter().find(|key| item[*key].is_string())
}

/// Kind, namespace and name of an object.
pub(super) fn title(object: &Value) -> String {
    let (kind, name) = (object["kind"].as_str().unwrap_or("object"), meta(object, "name").unwrap_or_default());
    match meta(object, "namespace") {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(before: Option<Value>, now: Option<Value>, expected: &[(&str, Option<Value>, Option<Value>)]) {
        let found: Vec<_> = fields(before.as_ref(), now.as_ref());
        let found: Vec<_> =
            found.iter().map(|field| (field.path.as_str(), field.from.clone(), field.to.clone())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn differences_are_named_by_their_paths() {
        let pod = |image: &str| {
            json!({
                "kind": "Pod", "metadata": {"name": "p", "uid": image, "labels": {"a.b/c": image}},
                "spec": {"containers": [{"name": "web", "image": image, "args": ["x"]}]},
            })
        };
        check(Some(pod("1")), Some(pod("1")), &[]);
        check(
            Some(pod("1")),
            Some(pod("2")),
            &[
                ("metadata.labels[a.b/c]", Some(json!("1")), Some(json!("2"))),
                ("spec.containers[web].image", Some(json!("1")), Some(json!("2"))),
            ],
        );
        check(
            None,
            Some(json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}})),
            &[("data.k", None, Some(json!("v")))],
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let secret = |text: &str| json!({"kind": "Secret", "metadata": {"name": "s"}, "data": {"password": text}});
        check(
            Some(secret("YQ==")),
            Some(secret("Yg==")),
            &[("data.password", Some(json!("(hidden)")), Some(json!("(hidden)")))],
        );
    }
}
