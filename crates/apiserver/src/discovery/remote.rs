//! The groups of other servers among those of this one.

use serde_json::{Value, json};

use crate::aggregation::Remote;

/// Adds groups to the list at `/apis`.
pub(super) fn add_groups(list: &mut Value, remotes: &[Remote]) {
    let Some(groups) = list["groups"].as_array_mut() else { return };
    for remote in remotes {
        match groups.iter_mut().find(|group| group["name"] == remote.group.as_str()) {
            Some(group) => add_version(group, remote),
            None => groups.push(group(remote)),
        }
    }
}

/// The group at `/apis/GROUP`, of which this server may know a part itself.
pub(super) fn with_versions(known: Option<Value>, name: &str, remotes: &[Remote]) -> Option<Value> {
    let mut found = known;
    for remote in remotes.iter().filter(|remote| remote.group == name) {
        match &mut found {
            Some(group) => add_version(group, remote),
            None => {
                let mut made = group(remote);
                made["kind"] = "APIGroup".into();
                made["apiVersion"] = "v1".into();
                found = Some(made);
            }
        }
    }
    found
}

/// Adds groups to the one document at `/apis`.
pub(super) fn add_items(list: &mut Value, remotes: &[Remote]) {
    let Some(items) = list["items"].as_array_mut() else { return };
    for remote in remotes {
        let known = items.iter_mut().find(|item| item["metadata"]["name"] == remote.group.as_str());
        let versions = match known {
            Some(item) => &mut item["versions"],
            None => {
                items.push(json!({"metadata": {"name": remote.group}, "versions": []}));
                let Some(last) = items.last_mut() else { continue };
                &mut last["versions"]
            }
        };
        let Some(versions) = versions.as_array_mut() else { continue };
        versions.retain(|version| version["version"] != remote.version.as_str());
        versions.push(json!({
            "version": remote.version,
            "resources": resources(remote),
            "freshness": if remote.is_available { "Current" } else { "Stale" },
        }));
    }
}

fn group(remote: &Remote) -> Value {
    let version = version(remote);
    json!({"name": remote.group, "versions": [version], "preferredVersion": version})
}

fn version(remote: &Remote) -> Value {
    json!({"groupVersion": format!("{}/{}", remote.group, remote.version), "version": remote.version})
}

fn add_version(group: &mut Value, remote: &Remote) {
    let Some(versions) = group["versions"].as_array_mut() else { return };
    if !versions.iter().any(|known| known["version"] == remote.version.as_str()) {
        versions.push(version(remote));
    }
}

/// What the server says of its resources, with subresources below their resource.
fn resources(remote: &Remote) -> Vec<Value> {
    let all = remote.resources.as_deref().map(Vec::as_slice).unwrap_or_default();
    let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
    let kind = |resource: &Value| {
        let or =
            |field: &str, own: &str| resource[field].as_str().filter(|text| !text.is_empty()).unwrap_or(own).to_owned();
        json!({"group": or("group", &remote.group), "version": or("version", &remote.version), "kind": resource["kind"]})
    };
    let parts = |of: &str| -> Vec<Value> {
        let below =
            all.iter().filter_map(|part| Some((part, name(part).strip_prefix(of)?.strip_prefix('/')?.to_owned())));
        below
            .map(|(part, name)| json!({"subresource": name, "responseKind": kind(part), "verbs": part["verbs"]}))
            .collect()
    };
    let whole = all.iter().filter(|resource| !name(resource).contains('/'));
    whole
        .map(|resource| {
            let mut made = json!({
                "resource": name(resource), "responseKind": kind(resource),
                "scope": if resource["namespaced"] == true { "Namespaced" } else { "Cluster" },
                "singularResource": resource["singularName"], "verbs": resource["verbs"],
            });
            for member in ["shortNames", "categories"] {
                if resource[member].is_array() {
                    made[member] = resource[member].clone();
                }
            }
            let parts = parts(&name(resource));
            if !parts.is_empty() {
                made["subresources"] = parts.into();
            }
            made
        })
        .collect()
}
