//! The rules of a whole schema.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    budget::Costs,
    declaration::Declaration,
    rule::{CompileError, Rule, Site},
};

/// How deep a schema may nest; more is refused by the structural checks already.
const SCHEMA_DEPTH_MAX: usize = 64;

/// The compiled rules of a schema; empty where it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(super) root: Option<Box<Node>>,
    costs: Costs,
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
        let mut builder = Builder::default();
        let place = Place { path: String::new(), uncorrelatable: None, cardinality: Some(1), depth: 0 };
        let root = builder.build(&with_resource_fields(schema), place);
        match builder.errors.is_empty() {
            true => Ok(Self { root: root.map(Box::new), costs: builder.costs }),
            false => Err(builder.errors),
        }
    }

    /// The rules that may cost too much for new definitions; objects of a definition that is there are still checked.
    pub(crate) fn too_expensive(&self) -> Vec<CompileError> {
        self.costs.errors()
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

/// Where a schema stands.
#[derive(Clone)]
struct Place<'a> {
    path: String,
    /// The list above in which items cannot be told apart.
    uncorrelatable: Option<&'a str>,
    /// How many values of the schema an object has at most; none if nothing bounds that.
    cardinality: Option<u64>,
    depth: usize,
}

impl<'a> Place<'a> {
    fn below(&self, member: &str, factor: Option<u64>) -> Place<'a> {
        let cardinality = self.cardinality.zip(factor).map(|(all, factor)| all.saturating_mul(factor));
        Place { path: join(&self.path, member), cardinality, depth: self.depth + 1, ..self.clone() }
    }
}

#[derive(Default)]
struct Builder {
    errors: Vec<CompileError>,
    costs: Costs,
}

impl Builder {
    fn build(&mut self, schema: &Value, place: Place<'_>) -> Option<Node> {
        if place.depth > SCHEMA_DEPTH_MAX || !schema.is_object() {
            return None;
        }
        let mut node = Node { list_keys: list_keys(schema), ..Node::default() };
        node.rules = self.rules(schema, &place);
        let factor = elements_max(schema);
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, child) in properties {
                let built = self.build(child, place.below(&format!("properties[{name}]"), factor));
                node.properties.extend(built.map(|built| (name.clone(), built)));
            }
        }
        if let Some(child) = schema.get("additionalProperties") {
            node.additional = self.build(child, place.below("additionalProperties", factor)).map(Box::new);
        }
        if let Some(child) = schema.get("items") {
            let here = if place.path.is_empty() { "<root>" } else { place.path.as_str() };
            let uncorrelatable = place.uncorrelatable.or_else(|| node.list_keys.is_none().then_some(here));
            let below = Place { uncorrelatable, ..place.below("items", factor) };
            node.items = self.build(child, below).map(Box::new);
        }
        for (index, child) in entries(schema, "allOf").iter().enumerate() {
            // A branch says nothing of types; the types are those of the node that it is a branch of.
            let typed = overlay(schema, child);
            node.all_of.extend(self.build(&typed, place.below(&format!("allOf[{index}]"), Some(1))));
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

    fn rules(&mut self, schema: &Value, place: &Place<'_>) -> Vec<Rule> {
        let raw = entries(schema, "x-kubernetes-validations");
        if raw.is_empty() {
            return Vec::new();
        }
        let declaration = Declaration::of(schema).map(Arc::new);
        let site = Site {
            schema,
            declaration: declaration.as_ref(),
            uncorrelatable: place.uncorrelatable,
            cardinality: place.cardinality,
        };
        let mut rules = Vec::with_capacity(raw.len());
        for (index, raw) in raw.iter().enumerate() {
            let at = join(&place.path, &format!("x-kubernetes-validations[{index}]"));
            match Rule::compile(raw, site, &at, &mut self.costs) {
                Ok(rule) => rules.push(rule),
                Err(error) => self.errors.push(error),
            }
        }
        rules
    }
}

/// How many values there are at most below a value of the schema; none if nothing bounds that.
fn elements_max(schema: &Value) -> Option<u64> {
    let limit = |member: &str| {
        let limit = schema.get(member)?;
        limit.as_u64().or_else(|| limit.as_i64().map(|_| 0))
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("object") if schema.get("additionalProperties").is_some() => limit("maxProperties"),
        Some("array") => limit("maxItems"),
        _ => Some(1),
    }
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
