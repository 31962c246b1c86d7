//! The rules for the schema of a custom resource: structural, with known keywords, with defaults that fit.
//!
//! The rules of `x-kubernetes-validations` are for the one who evaluates them.

mod defaults;
mod keywords;
mod nested;

use serde_json::Value;

use crate::field::{child, key};
use crate::node::Node;
use crate::{FieldError, Schema};

impl Schema {
    /// The schema of a custom resource from its `openAPIV3Schema`.
    ///
    /// # Errors
    /// The schema is not structural; the paths are relative to it.
    pub fn from_json_schema_props(schema: &Value) -> Result<Schema, Vec<FieldError>> {
        let mut errors = Vec::new();
        structure(schema, Level::Root, "", &mut errors);
        keywords::check(schema, "", true, &mut errors);
        if !errors.is_empty() {
            return Err(sorted(errors));
        }
        let parsed =
            Schema::from_trusted(schema).map_err(|error| vec![FieldError::invalid("", "", error.to_string())])?;
        defaults::check(&parsed, "", &mut errors);
        if errors.is_empty() { Ok(parsed) } else { Err(sorted(errors)) }
    }

    /// The schema without the structural checks: for one that passed them when it was stored.
    ///
    /// # Errors
    /// A keyword has a value of a wrong type.
    pub fn from_trusted(schema: &Value) -> Result<Schema, serde_json::Error> {
        let mut node: Node = serde::Deserialize::deserialize(schema)?;
        node.raw = Some(schema.clone());
        Ok(Schema::of_node(node))
    }
}

fn sorted(mut errors: Vec<FieldError>) -> Vec<FieldError> {
    errors.sort_by_key(FieldError::to_string);
    errors.dedup();
    errors
}

/// Where a schema stands in its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The invariants of structural schemas.
fn structure(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let r#type = schema["type"].as_str().unwrap_or_default();
    if r#type == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(child(path, "items"), "must be specified"));
    }
    if schema["items"].is_object() {
        structure(&schema["items"], Level::Item, &child(path, "items"), errors);
    }
    for (name, property) in members(schema, "properties") {
        structure(property, Level::Field, &key(&child(path, "properties"), name), errors);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let path = child(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(path.clone(), "must not be used at the root"));
        }
        if additional.is_object() {
            structure(additional, Level::Field, &path, errors);
        }
    }
    extensions(schema, path, errors);
    nested::check(schema, path, errors);
    object_type(schema, level, path, errors);
    metadata(schema, level, path, errors);
}

fn extensions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if is_set(schema, "x-kubernetes-int-or-string") && is_set(schema, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(child(path, name), true, detail));
        }
    }
}

fn object_type(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let type_path = child(path, "type");
    let r#type = schema["type"].as_str().unwrap_or_default();
    let is_embedded = is_set(schema, "x-kubernetes-embedded-resource");
    let is_open =
        is_set(schema, "x-kubernetes-int-or-string") || is_set(schema, "x-kubernetes-preserve-unknown-fields");
    if is_embedded && r#type != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match r#type {
            "" => FieldError::required(type_path.clone(), detail),
            other => FieldError::invalid(type_path.clone(), other, detail),
        });
    } else if r#type.is_empty() && !is_open {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(type_path.clone(), detail));
    }
    if is_embedded && schema.get("additionalProperties").is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(child(path, "additionalProperties"), detail));
    }
    if level == Level::Root && !r#type.is_empty() && r#type != "object" {
        errors.push(FieldError::invalid(type_path, r#type, "must be object at the root"));
    }
    let is_empty = members(schema, "properties").next().is_none();
    if is_embedded && is_empty && !is_set(schema, "x-kubernetes-preserve-unknown-fields") {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(child(path, "properties"), detail));
    }
}

/// `apiVersion`, `kind` and `metadata` of whole objects have their types already.
fn metadata(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if level != Level::Root && !is_set(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let Some(property) = schema["properties"].get(name) else { continue };
        let found = property["type"].as_str().unwrap_or_default();
        if found != expected {
            let path = child(&key(&child(path, "properties"), name), "type");
            errors.push(FieldError::invalid(path, found, format!("must be {expected}")));
        }
    }
    let allows_more = |metadata: &Value| {
        let only_names = members(metadata, "properties").all(|(name, _)| matches!(name, "name" | "generateName"));
        let allowed = ["type", "properties", "description", "title", "default"];
        let only_plain =
            metadata.as_object().is_some_and(|words| words.keys().all(|word| allowed.contains(&word.as_str())));
        !(only_names && only_plain)
    };
    if level == Level::Root && schema["properties"].get("metadata").is_some_and(allows_more) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(key(&child(path, "properties"), "metadata"), detail));
    }
}

fn is_set(schema: &Value, word: &str) -> bool {
    schema[word].as_bool().unwrap_or_default()
}

fn members<'a>(schema: &'a Value, word: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    schema[word].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests;
