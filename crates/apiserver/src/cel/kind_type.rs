//! The types of kinds, as expressions of policies see objects of them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_schema::{Kind, Schema};

use super::{declaration::Declaration, types::Type};

/// The definition of what all objects have.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The type of the objects of a kind.
#[derive(Clone, Debug)]
pub(crate) struct KindType(pub(super) Type);

impl KindType {
    /// The type of a kind's objects, if something is known of them.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        let mut schema = expanded(&kind.schema.raw()?, &mut Vec::new());
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for name in ["apiVersion", "kind"] {
                properties.insert(name.to_owned(), json!({"type": "string"}));
            }
            if properties.get("metadata").is_none_or(|metadata| metadata.get("properties").is_none()) {
                let metadata = Schema::of_definition(METADATA).raw().unwrap_or_default();
                properties.insert("metadata".to_owned(), expanded(&metadata, &mut Vec::new()));
            }
        }
        let declaration = Arc::new(Declaration::of(&schema)?);
        Some(Self(Type::of(&declaration, &kind.kind)))
    }
}

/// What types are told by, with the definitions in the place of references to them. `around` has the definitions that are
/// being written out: one that contains itself says nothing there.
fn expanded(schema: &Value, around: &mut Vec<String>) -> Value {
    if let Some(name) = reference(schema) {
        if around.iter().any(|known| known == name) {
            return json!({});
        }
        around.push(name.to_owned());
        let found = Schema::of_definition(name).raw().map_or_else(|| json!({}), |raw| expanded(&raw, around));
        around.pop();
        return found;
    }
    let mut plain = Map::new();
    for word in ["type", "format", "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource"] {
        plain.extend(schema.get(word).map(|value| (word.to_owned(), value.clone())));
    }
    if schema.get("format").and_then(Value::as_str) == Some("int-or-string") {
        plain.insert("x-kubernetes-int-or-string".to_owned(), true.into());
    }
    for word in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(word).filter(|child| child.is_object()) {
            plain.insert(word.to_owned(), expanded(child, around));
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let properties = properties.iter().map(|(name, child)| (name.clone(), expanded(child, around)));
        plain.insert("properties".to_owned(), Value::Object(properties.collect()));
    }
    Value::Object(plain)
}

/// The definition that a schema refers to, by itself or by an `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next();
    }
    schema.get("allOf").and_then(Value::as_array).into_iter().flatten().find_map(reference)
}
