//! OpenAPI v2: everything in one document, for older clients.

use serde_json::{Map, Value, json};
use windlass_schema::KUBERNETES_VERSION;

use super::{
    definitions,
    language::Language,
    operation::{Operation, paths},
    v3::tag,
};
use crate::registry::Catalog;

/// What the older language does not have, or means otherwise.
const UNKNOWN_WORDS: [&str; 6] = ["allOf", "anyOf", "oneOf", "not", "nullable", "x-kubernetes-validations"];

const LANGUAGE: Language = Language { parameter, operation };

/// The document of everything that is served.
pub(super) fn document(catalog: &Catalog) -> Value {
    let mut all = Map::new();
    for kind in catalog.kinds() {
        for item in paths(kind) {
            all.insert(item.path.clone(), item.write(&LANGUAGE));
        }
    }
    let definitions: Map<String, Value> = definitions::collect(catalog.kinds())
        .into_iter()
        .map(|(name, text)| {
            let mut schema: Value = serde_json::from_str(&text).expect("definitions are valid");
            downgrade_root(&mut schema);
            (name, schema)
        })
        .collect();
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": format!("v{KUBERNETES_VERSION}")},
        "paths": all,
        "definitions": definitions,
    })
}

/// A kind that keeps unknown fields is an object of which nothing more is said: older clients refuse what is not named.
fn downgrade_root(schema: &mut Value) {
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        && let Some(members) = schema.as_object_mut()
    {
        members.retain(|word, _| matches!(word.as_str(), "type" | "x-kubernetes-group-version-kind"));
    }
    downgrade(schema);
}

/// Says in the older language what can be said in it.
fn downgrade(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    // A single reference with a default beside it is how the newer language writes a plain reference.
    let reference = single_reference(members).or_else(|| members.get("$ref")?.as_str());
    if let Some(reference) = reference.map(|name| name.replace("#/components/schemas/", "#/definitions/")) {
        members.retain(|word, _| word == "description");
        members.insert("$ref".to_owned(), reference.into());
        return;
    }
    if members.get("nullable") == Some(&Value::Bool(true)) {
        // There is no way to say that null is allowed, and no type means that everything is.
        members.remove("type");
        members.remove("items");
        members.remove("properties");
    }
    for word in UNKNOWN_WORDS {
        members.remove(word);
    }
    if members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        // Older clients would call the fields that are kept unknown.
        for word in ["properties", "items", "additionalProperties", "required"] {
            members.remove(word);
        }
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(downgrade);
    }
    for word in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(word) {
            downgrade(schema);
        }
    }
}

fn single_reference(members: &Map<String, Value>) -> Option<&str> {
    match members.get("allOf")?.as_array()?.as_slice() {
        [one] => one.get("$ref")?.as_str(),
        _ => None,
    }
}

fn parameter(place: &str, name: &str, kind: &str) -> Value {
    json!({"in": place, "name": name, "type": kind, "uniqueItems": true})
}

fn operation(operation: &Operation) -> Value {
    let (group, version, kind) = &operation.about;
    let answer = operation.answer.definition.as_ref();
    let schema = answer.map_or_else(|| json!({"type": "string"}), |name| reference(name));
    let mut responses: Map<String, Value> = operation
        .answer
        .codes
        .iter()
        .map(|(code, text)| ((*code).to_owned(), json!({"description": text, "schema": schema})))
        .collect();
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut parameters: Vec<Value> =
        operation.parameters.iter().map(|(name, kind)| parameter("query", name, kind)).collect();
    let mut consumes: &[&str] = &["*/*"];
    if let Some(body) = &operation.body {
        let mut whole = json!({"in": "body", "name": "body", "schema": reference(&body.definition)});
        if body.required {
            whole["required"] = true.into();
        }
        parameters.insert(0, whole);
        consumes = body.media_types;
    }
    json!({
        "consumes": consumes,
        "operationId": operation.id,
        "parameters": parameters,
        "produces": operation.answer.media_types,
        "responses": responses,
        "schemes": ["https"],
        "tags": [tag(group, version)],
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}
