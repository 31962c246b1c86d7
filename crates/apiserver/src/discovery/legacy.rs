//! Discovery in single documents, as every client understands it.

use serde_json::{Value, json};
use windlass_schema::{Kind, Subresource};

use super::groups::{Group, group as one_group, groups as all_groups};
use crate::registry::Catalog;

/// The answer at `/api`.
pub(super) fn versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// The answer at `/apis`.
pub(super) fn groups(catalog: &Catalog) -> Value {
    let groups: Vec<Value> =
        all_groups(catalog).iter().filter(|group| !group.name.is_empty()).map(group_value).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// The answer at `/apis/GROUP`; `None` if there is no such group.
pub(super) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let mut value = group_value(&one_group(catalog, name).filter(|_| !name.is_empty())?);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Some(value)
}

fn group_value(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": version.name(group.name), "version": version.version}))
        .collect();
    json!({"name": group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// The answer at `/api/v1` or `/apis/GROUP/VERSION`; `None` if there is no such version.
pub(super) fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let group = one_group(catalog, group)?;
    let version = group.versions.iter().find(|known| known.version == version)?;
    let mut resources = Vec::new();
    for kind in &version.kinds {
        resources.push(resource(kind));
        resources.extend(kind.subresources.iter().map(|part| subresource(kind, part)));
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version.name(group.name),
        "resources": resources,
    }))
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        value["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        value["categories"] = kind.categories.clone().into();
    }
    if let Some(hash) = &kind.storage_version_hash {
        value["storageVersionHash"] = hash.as_str().into();
    }
    value
}

fn subresource(kind: &Kind, part: &Subresource) -> Value {
    let mut value = json!({
        "name": format!("{}/{}", kind.plural, part.name),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind,
        "verbs": part.verbs,
    });
    if (&part.group, &part.version) != (&kind.group, &kind.version) {
        value["group"] = part.group.as_str().into();
        value["version"] = part.version.as_str().into();
    }
    value
}
