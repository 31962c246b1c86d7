//! The type that the tests write: something of every way in which maps and lists are merged.

use std::sync::LazyLock;

use serde_json::{Value, json};
use windlass_merge::OpenApiShape;

static THING: LazyLock<OpenApiShape> = LazyLock::new(|| OpenApiShape::new(schema()));

/// The shape of a Thing.
pub(crate) fn thing() -> &'static OpenApiShape {
    &THING
}

/// No shape at all.
pub(crate) const UNKNOWN: Option<&OpenApiShape> = None;

fn schema() -> Value {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    json!({"type": "object", "properties": {
        "data": {"type": "object", "additionalProperties": text},
        "status": {"type": "object", "properties": {
            "phase": text,
            "conditions": list_of(json!({"type": text, "status": text}), "type"),
        }},
        "spec": {"type": "object", "properties": {
            "replicas": number,
            "paused": {"type": "boolean"},
            "tags": {
                "type": "array", "items": text,
                "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            },
            "atoms": {"type": "array", "items": number},
            "selector": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
            "nested": {"type": "object", "properties": {"a": number, "b": {"type": "object", "properties": {"c": text}}}},
            "strategy": {
                "type": "object", "x-kubernetes-patch-strategy": "retainKeys",
                "properties": {"type": text, "rolling": {"type": "object", "properties": {"max": number}}},
            },
            "fixed": {
                "type": "object", "x-kubernetes-patch-strategy": "replace",
                "properties": {"a": number, "b": number},
            },
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "containers": list_of(json!({
                "name": text,
                "image": text,
                "args": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
                "env": list_of(json!({"name": text, "value": text}), "name"),
                "ports": {
                    "type": "array",
                    "items": {"type": "object", "properties": {
                        "port": number, "protocol": {"type": "string", "default": "TCP"}, "hostPort": number,
                    }},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "port",
                },
            }), "name"),
        }},
    }})
}

fn list_of(properties: Value, key: &str) -> Value {
    json!({
        "type": "array", "items": {"type": "object", "properties": properties},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key,
    })
}
