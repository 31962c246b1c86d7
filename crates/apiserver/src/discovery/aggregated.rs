//! Discovery in one document.

use serde_json::{Value, json};
use windlass_schema::{Kind, Subresource};

use super::{groups, negotiate::AggregatedVersion};
use crate::registry::Catalog;

/// The list at `/api` (`core`) or at `/apis`.
pub(super) fn list(catalog: &Catalog, core: bool, version: AggregatedVersion) -> Value {
    let items: Vec<Value> = groups(catalog)
        .iter()
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = version.kinds.iter().map(|kind| resource(kind)).collect();
                    json!({"version": version.version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": version.api_version(), "metadata": {}, "items": items})
}

fn resource(kind: &Kind) -> Value {
    let mut value = json!({
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    if !kind.short_names.is_empty() {
        value["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        value["categories"] = kind.categories.clone().into();
    }
    if !kind.subresources.is_empty() {
        value["subresources"] = kind.subresources.iter().map(subresource).collect();
    }
    value
}

fn subresource(part: &Subresource) -> Value {
    json!({
        "subresource": part.name,
        "responseKind": {"group": part.group, "version": part.version, "kind": part.kind},
        "verbs": part.verbs,
    })
}
