//! Keywords: which are supported, and which go together.

use serde_json::Value;

use super::{is_set, members};
use crate::FieldError;
use crate::field::{child, item, key};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

const UNSUPPORTED: [(&str, &str); 6] = [
    ("id", "id is not supported"),
    ("additionalItems", "additionalItems is not supported"),
    ("patternProperties", "patternProperties is not supported"),
    ("definitions", "definitions is not supported"),
    ("dependencies", "dependencies is not supported"),
    ("$ref", "$ref is not supported"),
];

/// Checks the keywords of a schema and of all schemas in it.
pub(super) fn check(schema: &Value, path: &str, is_root: bool, errors: &mut Vec<FieldError>) {
    supported(schema, path, errors);
    if is_root && is_set(schema, "nullable") {
        errors.push(FieldError::forbidden(child(path, "nullable"), "nullable cannot be true at the root"));
    }
    let has_properties = members(schema, "properties").next().is_some();
    if has_properties && schema.get("additionalProperties").is_some_and(|additional| *additional != true) {
        let detail = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(child(path, "additionalProperties"), detail));
    }
    map_type(schema, path, errors);
    list_type(schema, path, errors);
    for word in ["additionalProperties", "items", "not"] {
        if schema[word].is_object() {
            check(&schema[word], &child(path, word), false, errors);
        }
    }
    for (name, property) in members(schema, "properties") {
        check(property, &key(&child(path, "properties"), name), false, errors);
    }
    for word in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in schema[word].as_array().into_iter().flatten().enumerate() {
            check(nested, &item(&child(path, word), index), false, errors);
        }
    }
}

fn supported(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match schema["type"].as_str() {
        Some("null") => {
            let detail = "type cannot be set to null, use nullable as an alternative";
            errors.push(FieldError::forbidden(child(path, "type"), detail));
        }
        Some(other) if !other.is_empty() && !TYPES.contains(&other) => {
            errors.push(FieldError::not_supported(child(path, "type"), other, &TYPES));
        }
        _ => {}
    }
    for (word, detail) in UNSUPPORTED {
        if schema.get(word).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(child(path, word), detail));
        }
    }
    if schema["items"].is_array() {
        errors.push(FieldError::forbidden(child(path, "items"), "items must be a schema object and not an array"));
    }
    if is_set(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(child(path, "uniqueItems"), detail));
    }
    let preserve = "x-kubernetes-preserve-unknown-fields";
    if schema[preserve] == false {
        errors.push(FieldError::invalid(child(path, preserve), false, "must be true or undefined"));
    }
}

fn map_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema["x-kubernetes-map-type"].as_str() else { return };
    expect_type(schema, "object", "must be object if x-kubernetes-map-type is specified", path, errors);
    if !["atomic", "granular"].contains(&map_type) {
        errors.push(FieldError::not_supported(child(path, "x-kubernetes-map-type"), map_type, &["atomic", "granular"]));
    }
}

fn expect_type(schema: &Value, expected: &str, detail: &str, path: &str, errors: &mut Vec<FieldError>) {
    match schema["type"].as_str().unwrap_or_default() {
        "" => errors.push(FieldError::required(child(path, "type"), detail)),
        other if other != expected => errors.push(FieldError::invalid(child(path, "type"), other, detail)),
        _ => {}
    }
}

fn list_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list_type = schema["x-kubernetes-list-type"].as_str();
    let type_path = child(path, "x-kubernetes-list-type");
    let keys: Vec<&str> =
        schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if list_type.is_some() {
        expect_type(schema, "array", "must be array if x-kubernetes-list-type is specified", path, errors);
    }
    if !keys.is_empty() && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(type_path.clone(), detail),
            Some(other) => FieldError::invalid(type_path.clone(), other, detail),
        });
    }
    match list_type {
        None | Some("atomic") => {}
        Some("set") => set(schema, path, errors),
        Some("map") => map(schema, &keys, path, errors),
        Some(other) => errors.push(FieldError::not_supported(type_path, other, &["atomic", "set", "map"])),
    }
    let is_identified = matches!(list_type, Some("set" | "map"));
    if is_identified && is_set(&schema["items"], "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {}", list_type.unwrap_or_default());
        errors.push(FieldError::forbidden(child(path, "items.nullable"), detail));
    }
}

fn set(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let items = &schema["items"];
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    for (r#type, word) in [("array", "x-kubernetes-list-type"), ("object", "x-kubernetes-map-type")] {
        let is_atomic = items[word] == "atomic" || (r#type == "array" && items[word].is_null());
        if items["type"] == r#type && !is_atomic {
            errors.push(FieldError::invalid(child(path, &format!("items.{word}")), items[word].clone(), detail));
        }
    }
}

fn map(schema: &Value, keys: &[&str], path: &str, errors: &mut Vec<FieldError>) {
    let keys_path = child(path, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(keys_path.clone(), detail));
    }
    let items = &schema["items"];
    if items.is_null() {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        return errors.push(FieldError::required(child(path, "items"), detail));
    }
    if items["type"] != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let found = items["type"].as_str().unwrap_or_default();
        return errors.push(FieldError::invalid(child(path, "items.type"), found, detail));
    }
    for (index, name) in keys.iter().enumerate() {
        if keys[..index].contains(name) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(keys_path.clone(), schema["x-kubernetes-list-map-keys"].clone(), detail));
        }
        map_key(items, name, path, errors);
    }
}

fn map_key(items: &Value, name: &str, path: &str, errors: &mut Vec<FieldError>) {
    let Some(property) = items["properties"].get(name) else {
        let detail = "entries must all be names of item properties";
        return errors.push(FieldError::invalid(child(path, "x-kubernetes-list-map-keys"), name, detail));
    };
    let path = key(&child(path, "items.properties"), name);
    if matches!(property["type"].as_str(), Some("array" | "object")) {
        let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(child(&path, "type"), "object", detail));
    }
    let is_required = items["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name));
    if !is_required && property.get("default").is_none() {
        let detail =
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
        errors.push(FieldError::required(child(&path, "default"), detail));
    }
    if is_set(property, "nullable") {
        let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
        errors.push(FieldError::forbidden(child(&path, "nullable"), detail));
    }
}
