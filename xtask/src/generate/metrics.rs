//! The kinds of `metrics.k8s.io`: upstream has their Go types and protobuf, but no OpenAPI document and no discovery.

use serde_json::{Value, json};

use super::discovery::{self, Kind};

const GROUP: &str = "metrics.k8s.io";
const VERSION: &str = "v1beta1";
const PACKAGE: &str = "io.k8s.metrics.pkg.apis.metrics.v1beta1";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The table of the kinds.
pub(super) fn kinds() -> anyhow::Result<String> {
    discovery::render(&[kind("NodeMetrics", "nodes", false), kind("PodMetrics", "pods", true)])
}

fn kind(name: &str, plural: &str, namespaced: bool) -> Kind {
    Kind {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        kind: name.to_owned(),
        list_kind: Some(format!("{name}List")),
        plural: plural.to_owned(),
        singular: plural.trim_end_matches('s').to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        verbs: ["get", "list"].map(str::to_owned).into(),
        storage_version_hash: None,
        definition: format!("{PACKAGE}.{name}"),
        subresources: Vec::new(),
    }
}

/// The definitions, as the Go types have their fields.
pub(super) fn definitions() -> Vec<(String, Value)> {
    let usage = json!({"type": "object", "additionalProperties": {"$ref": format!("#/components/schemas/{QUANTITY}")}});
    let containers = json!({
        "type": "array", "items": reference(PACKAGE, "ContainerMetrics"), "x-kubernetes-list-type": "atomic",
    });
    let container = json!({
        "type": "object", "required": ["name", "usage"],
        "properties": {"name": {"type": "string", "default": ""}, "usage": usage},
    });
    let duration = json!({"type": "string"});
    let mut all = vec![(format!("{META}.Duration"), duration), (format!("{PACKAGE}.ContainerMetrics"), container)];
    for (name, member, schema) in [("NodeMetrics", "usage", usage), ("PodMetrics", "containers", containers)] {
        all.push((format!("{PACKAGE}.{name}"), object(name, member, &schema)));
        all.push((format!("{PACKAGE}.{name}List"), list(name)));
    }
    all
}

fn object(name: &str, member: &str, schema: &Value) -> Value {
    json!({
        "type": "object", "required": ["timestamp", "window", member],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": reference(META, "ObjectMeta"),
            "timestamp": {"$ref": format!("#/components/schemas/{META}.Time")},
            "window": {"$ref": format!("#/components/schemas/{META}.Duration")},
            member: schema,
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "kind": name, "version": VERSION}],
    })
}

fn list(name: &str) -> Value {
    json!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": reference(META, "ListMeta"),
            "items": {"type": "array", "items": reference(PACKAGE, name)},
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "kind": format!("{name}List"), "version": VERSION}],
    })
}

fn reference(package: &str, name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{package}.{name}")}], "default": {}})
}
