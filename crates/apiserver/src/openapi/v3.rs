//! OpenAPI v3: one document per group and version.

use serde_json::{Map, Value, json};
use windlass_schema::KUBERNETES_VERSION;

use super::{
    definitions,
    language::Language,
    operation::{Operation, paths},
};
use crate::registry::Served;

const REFERENCE: &str = "#/components/schemas/";

const LANGUAGE: Language = Language { parameter, operation };

/// The document of a group and version.
pub(super) fn document(kinds: &[&Served]) -> String {
    let mut all = Map::new();
    for kind in kinds {
        for item in paths(kind) {
            all.insert(item.path.clone(), item.write(&LANGUAGE));
        }
    }
    let schemas: Vec<String> = definitions::collect(kinds.iter().copied())
        .into_iter()
        .map(|(name, text)| format!("{}:{text}", Value::from(name)))
        .collect();
    format!(
        "{{\"openapi\":\"3.0.0\",\"info\":{},\"paths\":{},\"components\":{{\"schemas\":{{{}}}}}}}",
        json!({"title": "Kubernetes", "version": format!("v{KUBERNETES_VERSION}")}),
        Value::Object(all),
        schemas.join(","),
    )
}

/// A document without resources, such as that of `/apis`.
pub(super) fn empty_document(path: &str) -> String {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("v{KUBERNETES_VERSION}")},
        "paths": {path: {"get": {"responses": {"200": {"description": "OK"}}}}},
        "components": {"schemas": {}},
    })
    .to_string()
}

fn parameter(place: &str, name: &str, kind: &str) -> Value {
    json!({"in": place, "name": name, "schema": {"type": kind, "uniqueItems": true}})
}

fn operation(operation: &Operation) -> Value {
    let (group, version, kind) = &operation.about;
    let schema = operation.answer.definition.as_ref().map_or_else(|| json!({"type": "string"}), |name| reference(name));
    let content: Map<String, Value> = operation
        .answer
        .media_types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": schema})))
        .collect();
    let mut responses: Map<String, Value> = operation
        .answer
        .codes
        .iter()
        .map(|(code, text)| ((*code).to_owned(), json!({"description": text, "content": content})))
        .collect();
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "operationId": operation.id,
        "responses": responses,
        "tags": [tag(group_of(operation), version)],
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": {"group": group, "kind": kind, "version": version},
    });
    if !operation.parameters.is_empty() {
        value["parameters"] = operation.parameters.iter().map(|(name, kind)| parameter("query", name, kind)).collect();
    }
    if let Some(body) = &operation.body {
        let content: Map<String, Value> = body
            .media_types
            .iter()
            .map(|media_type| ((*media_type).to_owned(), json!({"schema": reference(&body.definition)})))
            .collect();
        value["requestBody"] = json!({"content": content});
        if body.required {
            value["requestBody"]["required"] = true.into();
        }
    }
    value
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

fn group_of(operation: &Operation) -> &str {
    &operation.about.0
}

/// The tag of a group and version: `apps_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    format!("{}_{version}", group.replace(['.', '-'], "_"))
}
