//! The schemas that documents publish.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_schema::{Kind, builtin, definition, references};

use crate::registry::Served;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const REFERENCE: &str = "#/components/schemas/";
const API_VERSION: &str = "APIVersion defines the version of the schema that the object is written in.";
const KIND: &str = "Kind names the type of the object, in CamelCase.";
const METADATA: &str = "Standard object's metadata: its name, labels, owners, and what the server notes about it.";
const CREATION: &str =
    "CreationTimestamp is a timestamp in UTC of when the server made the object; clients cannot set it.";
/// Kinds of requests and answers that every document speaks of.
const COMMON: [&str; 6] = ["DeleteOptions", "Patch", "Status", "WatchEvent", "APIResourceList", "ObjectMeta"];

/// The name of a kind's definition.
pub(super) fn name(kind: &Served) -> String {
    if kind.is_builtin() { kind.definition.clone() } else { custom_name(kind, &kind.kind().kind) }
}

/// The name of the definition of its lists.
pub(super) fn list_name(kind: &Served) -> String {
    if !kind.is_builtin() {
        return custom_name(kind, &kind.list_kind);
    }
    let known = builtin().definition_name(&kind.group, &kind.version, &kind.list_kind);
    known.unwrap_or_else(|| kind.definition.clone())
}

/// `com.example.cache.v1alpha1.Memcached`
fn custom_name(kind: &Kind, name: &str) -> String {
    let domain: Vec<&str> = kind.group.split('.').rev().collect();
    format!("{}.{}.{name}", domain.join("."), kind.version)
}

/// All definitions that a document over `kinds` needs, as JSON text.
pub(super) fn collect<'a>(kinds: impl Iterator<Item = &'a Served>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut roots: Vec<String> = COMMON.iter().map(|name| format!("{META}.{name}")).collect();
    for kind in kinds {
        if kind.is_builtin() {
            roots.extend([name(kind), list_name(kind)]);
        } else {
            all.insert(name(kind), custom(kind).to_string());
            all.insert(list_name(kind), custom_list(kind).to_string());
            roots.push(format!("{META}.ListMeta"));
        }
        let parts = kind.subresources.iter();
        roots.extend(parts.filter_map(|part| builtin().definition_name(&part.group, &part.version, &part.kind)));
    }
    for name in references(roots.iter().map(String::as_str)) {
        let text = definition(name).expect("names of references are names of definitions");
        all.insert(name.to_owned(), with_kind(name, text));
    }
    all
}

/// Options and statuses belong to every group; clients look them up by the core one.
fn with_kind(name: &str, text: &str) -> String {
    let kind = match name.strip_prefix(META).and_then(|name| name.strip_prefix('.')) {
        Some(kind @ ("DeleteOptions" | "Status" | "WatchEvent" | "APIResourceList")) => kind,
        Some("ObjectMeta") => return with_creation(text),
        _ => return text.to_owned(),
    };
    if text.contains("x-kubernetes-group-version-kind") {
        return text.to_owned();
    }
    let mut value: Value = serde_json::from_str(text).expect("generated definitions are valid");
    value["x-kubernetes-group-version-kind"] = json!([{"group": "", "kind": kind, "version": "v1"}]);
    value.to_string()
}

fn with_creation(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).expect("generated definitions are valid");
    value["properties"]["creationTimestamp"]["description"] = CREATION.into();
    value.to_string()
}

fn about(kind: &Kind, name: &str) -> Value {
    json!([{"group": kind.group, "kind": name, "version": kind.version}])
}

/// The schema of a custom kind: what its definition says, and what every object has.
fn custom(kind: &Served) -> Value {
    let mut schema = kind.schema.raw().unwrap_or_else(|| json!({"type": "object"}));
    let Some(members) = schema.as_object_mut() else { return schema };
    members.insert("type".into(), "object".into());
    members.insert("x-kubernetes-group-version-kind".into(), about(kind, &kind.kind().kind));
    let properties = members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        properties.values_mut().for_each(complete_embedded);
        properties.extend(of_every_object());
    }
    schema
}

/// What every object has, said in the words that people look for in `kubectl explain`.
fn of_every_object() -> [(String, Value); 3] {
    let metadata = format!("{REFERENCE}{META}.ObjectMeta");
    [
        ("apiVersion".to_owned(), json!({"type": "string", "description": API_VERSION})),
        ("kind".to_owned(), json!({"type": "string", "description": KIND})),
        ("metadata".to_owned(), json!({"allOf": [{"$ref": metadata}], "default": {}, "description": METADATA})),
    ]
}

/// Gives objects within objects what every object has.
fn complete_embedded(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(complete_embedded);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(word) {
            complete_embedded(schema);
        }
    }
    if members.get("x-kubernetes-embedded-resource") != Some(&Value::Bool(true)) {
        return;
    }
    if let Value::Object(properties) = members.entry("properties").or_insert_with(|| json!({})) {
        properties.extend(of_every_object());
    }
    if let Value::Array(required) = members.entry("required").or_insert_with(|| json!([])) {
        for word in ["kind", "apiVersion"].map(Value::from) {
            if !required.contains(&word) {
                required.push(word);
            }
        }
    }
}

fn custom_list(kind: &Served) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": {"allOf": [{"$ref": format!("{REFERENCE}{META}.ListMeta")}]},
            "items": {"type": "array", "items": {"allOf": [{"$ref": format!("{REFERENCE}{}", name(kind))}]}},
        },
        "x-kubernetes-group-version-kind": about(kind, &kind.list_kind),
    })
}
