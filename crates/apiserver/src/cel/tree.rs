//! The rules of a whole schema.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rule::{CompileError, Rule};

/// How deep a schema may nest; more is refused by the structural checks already.
const SCHEMA_DEPTH_MAX: usize = 64;

/// The compiled rules of a schema; empty where it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(super) root: Option<Box<Node>>,
}

/// One node of the schema that has rules or has nodes with rules below it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) rules: Vec<Rule>,
    /// The schema by which values become CEL values.
    pub(super) schema: Value,
    pub(super) all_of: Vec<Node>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Box<Node>>,
    pub(super) items: Option<Box<Node>>,
    /// The keys by which items of the list are told apart.
    pub(super) list_keys: Option<Vec<(String, Option<Value>)>>,
}

impl Rules {
    /// Compiles the rules of an `openAPIV3Schema`.
    ///
    /// # Errors
    /// Every rule that cannot be used.
    pub(crate) fn compile(schema: &Value) -> Result<Self, Vec<CompileError>> {
        let mut errors = Vec::new();
        let root = build(&with_resource_fields(schema), String::new(), None, 0, &mut errors);
        if errors.is_empty() { Ok(Self { root: root.map(Box::new) }) } else { Err(errors) }
    }

    /// Whether there is nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

/// What rules may see of every resource beside what its schema declares.
fn with_resource_fields(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Some(object) = schema.as_object_mut() else { return schema };
    if object.get("type").and_then(Value::as_str) != Some("object") || object.contains_key("additionalProperties") {
        return schema;
    }
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    let Some(properties) = properties.as_object_mut() else { return schema };
    properties.insert("apiVersion".into(), json!({"type": "string"}));
    properties.insert("kind".into(), json!({"type": "string"}));
    let visible =
        json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}});
    properties.insert("metadata".into(), visible);
    schema
}

fn build(
    schema: &Value,
    path: String,
    uncorrelatable: Option<&str>,
    depth: usize,
    errors: &mut Vec<CompileError>,
) -> Option<Node> {
    if depth > SCHEMA_DEPTH_MAX || !schema.is_object() {
        return None;
    }
    let mut node = Node { list_keys: list_keys(schema), ..Node::default() };
    for (index, raw) in entries(schema, "x-kubernetes-validations").iter().enumerate() {
        let at = join(&path, &format!("x-kubernetes-validations[{index}]"));
        match Rule::compile(raw, schema, &at, uncorrelatable) {
            Ok(rule) => node.rules.push(rule),
            Err(error) => errors.push(error),
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, child) in properties {
            let at = join(&path, &format!("properties[{name}]"));
            let built = build(child, at, uncorrelatable, depth + 1, errors);
            node.properties.extend(built.map(|built| (name.clone(), built)));
        }
    }
    if let Some(child) = schema.get("additionalProperties") {
        node.additional =
            build(child, join(&path, "additionalProperties"), uncorrelatable, depth + 1, errors).map(Box::new);
    }
    if let Some(child) = schema.get("items") {
        let here = if path.is_empty() { "<root>" } else { path.as_str() };
        let uncorrelatable = uncorrelatable.or_else(|| node.list_keys.is_none().then_some(here));
        node.items = build(child, join(&path, "items"), uncorrelatable, depth + 1, errors).map(Box::new);
    }
    for (index, child) in entries(schema, "allOf").iter().enumerate() {
        // A branch says nothing of types; the types are those of the node that it is a branch of.
        let typed = overlay(schema, child);
        node.all_of.extend(build(&typed, join(&path, &format!("allOf[{index}]")), uncorrelatable, depth + 1, errors));
    }
    if !node.rules.is_empty() {
        node.schema = schema.clone();
    }
    let has_rules = !node.rules.is_empty()
        || !node.properties.is_empty()
        || !node.all_of.is_empty()
        || node.additional.is_some()
        || node.items.is_some();
    has_rules.then_some(node)
}

fn entries<'a>(schema: &'a Value, member: &str) -> &'a [Value] {
    schema.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn join(path: &str, member: &str) -> String {
    if path.is_empty() { member.to_owned() } else { format!("{path}.{member}") }
}

fn overlay(schema: &Value, branch: &Value) -> Value {
    let mut typed = branch.clone();
    if let (Some(typed), Some(schema)) = (typed.as_object_mut(), schema.as_object()) {
        for member in ["type", "format", "nullable", "additionalProperties", "x-kubernetes-int-or-string"] {
            if let (false, Some(value)) = (typed.contains_key(member), schema.get(member)) {
                typed.insert(member.to_owned(), value.clone());
            }
        }
        if let (false, Some(properties)) = (typed.contains_key("properties"), schema.get("properties")) {
            typed.insert("properties".into(), without_rules(properties));
        }
        if let (false, Some(items)) = (typed.contains_key("items"), schema.get("items")) {
            typed.insert("items".into(), without_rules(items));
        }
    }
    typed
}

fn without_rules(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| *name != "x-kubernetes-validations")
            .map(|(name, value)| (name.clone(), without_rules(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_rules).collect(),
        other => other.clone(),
    }
}

/// The keys of an associative list, with their defaults.
fn list_keys(schema: &Value) -> Option<Vec<(String, Option<Value>)>> {
    if schema.get("x-kubernetes-list-type").and_then(Value::as_str) != Some("map") {
        return None;
    }
    let keys = entries(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str);
    let properties = schema.get("items").and_then(|items| items.get("properties"));
    let default = |key: &str| properties.and_then(|known| known.get(key)).and_then(|key| key.get("default")).cloned();
    Some(keys.map(|key| (key.to_owned(), default(key))).collect())
}
