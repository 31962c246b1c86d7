//! What `allOf`, `anyOf`, `oneOf` and `not` may hold: checks of values, never structure.

use regex::Regex;
use serde_json::{Value, json};

use super::members;
use crate::FieldError;
use crate::field::{child, item, key};

/// Keywords that give structure, and what a nested schema must do with each.
const STRUCTURE: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
];

const STRUCTURE_LISTS: [&str; 2] = ["x-kubernetes-list-map-keys", "x-kubernetes-validations"];

/// Checks the value validations of a structural schema.
pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let int_or_string = json!([{"type": "integer"}, {"type": "string"}]);
    let skips_any_of = schema["anyOf"] == int_or_string;
    let skips_first = schema["allOf"][0]["anyOf"] == int_or_string;
    validations(schema, path, (skips_any_of, skips_first), errors);
    for word in ["allOf", "anyOf", "oneOf"] {
        for (index, nested) in list(schema, word).enumerate() {
            complete(nested, schema, path, &item(&child(path, word), index), errors);
        }
    }
    complete(&schema["not"], schema, path, &child(path, "not"), errors);
}

/// The two ways to write "an integer or a string" are let through.
fn validations(schema: &Value, path: &str, (skips_any_of, skips_first): (bool, bool), errors: &mut Vec<FieldError>) {
    for word in ["anyOf", "allOf", "oneOf"] {
        if word == "anyOf" && skips_any_of {
            continue;
        }
        for (index, nested) in list(schema, word).enumerate() {
            let skips_any_of = word == "allOf" && index == 0 && skips_first;
            nested_schema(nested, &item(&child(path, word), index), skips_any_of, errors);
        }
    }
    if schema["not"].is_object() {
        nested_schema(&schema["not"], &child(path, "not"), false, errors);
    }
    let Some(pattern) = schema["pattern"].as_str() else { return };
    if let Err(error) = Regex::new(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(child(path, "pattern"), pattern, detail));
    }
}

fn nested_schema(schema: &Value, path: &str, skips_any_of: bool, errors: &mut Vec<FieldError>) {
    validations(schema, path, (skips_any_of, false), errors);
    if schema["items"].is_object() {
        nested_schema(&schema["items"], &child(path, "items"), false, errors);
    }
    for (name, property) in members(schema, "properties") {
        nested_schema(property, &key(&child(path, "properties"), name), false, errors);
    }
    for (word, detail) in STRUCTURE {
        let is_absent = match &schema[word] {
            Value::Null | Value::Bool(false) => word != "additionalProperties" || schema.get(word).is_none(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_absent {
            errors.push(FieldError::forbidden(child(path, word), detail));
        }
    }
    for word in STRUCTURE_LISTS {
        if list(schema, word).next().is_some() {
            errors.push(FieldError::forbidden(child(path, word), "must be empty to be structural"));
        }
    }
    if schema["properties"].get("metadata").is_some() {
        let path = key(&child(path, "properties"), "metadata");
        errors.push(FieldError::forbidden(path, "must not be specified in a nested context"));
    }
}

/// What a nested schema talks about must exist in the structure.
fn complete(nested: &Value, structure: &Value, path: &str, nested_path: &str, errors: &mut Vec<FieldError>) {
    if !nested.is_object() {
        return;
    }
    let missing =
        |path: String, nested_path: &str| FieldError::required(path, format!("because it is defined in {nested_path}"));
    for word in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(nested, word).enumerate() {
            complete(inner, structure, path, &item(&child(nested_path, word), index), errors);
        }
    }
    complete(&nested["not"], structure, path, &child(nested_path, "not"), errors);
    if nested["items"].is_object() {
        let (path, nested_path) = (child(path, "items"), child(nested_path, "items"));
        match structure.get("items") {
            Some(items) => complete(&nested["items"], items, &path, &nested_path, errors),
            None => errors.push(missing(path, &nested_path)),
        }
    }
    for (name, property) in members(nested, "properties") {
        let (path, nested_path) = (key(&child(path, "properties"), name), key(&child(nested_path, "properties"), name));
        match structure["properties"].get(name) {
            Some(known) => complete(property, known, &path, &nested_path, errors),
            None => errors.push(missing(path, &nested_path)),
        }
    }
}

fn list<'a>(schema: &'a Value, word: &str) -> impl Iterator<Item = &'a Value> {
    schema[word].as_array().into_iter().flatten()
}
