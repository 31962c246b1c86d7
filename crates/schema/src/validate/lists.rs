//! Lists of type `set` and `map`: no item twice, and the same item found again.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::node::Node;
use crate::place::Place;
use crate::{FieldError, Schema};

/// The duplicates in all lists under `value`.
pub(super) fn check(schema: &Schema, value: &Value, path: Place<'_>) -> Vec<FieldError> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let properties = &schema.node().words.properties;
                let (schema, place) = match properties.get(name) {
                    Some(property) => (Some(property), Place::Member(&path, name)),
                    None => (schema.additional_properties(), Place::Key(&path, name)),
                };
                schema.map(|schema| check(schema, value, place)).unwrap_or_default()
            })
            .collect(),
        Value::Array(items) => {
            let mut errors = duplicates(schema.node(), items, path);
            if let Some(schema) = schema.items() {
                errors.extend(
                    items.iter().enumerate().flat_map(|(index, value)| check(schema, value, Place::Item(&path, index))),
                );
            }
            errors
        }
        _ => Vec::new(),
    }
}

fn duplicates(node: &Node, items: &[Value], path: Place<'_>) -> Vec<FieldError> {
    let is_map = match node.words.list_type.as_deref() {
        Some("set") => false,
        Some("map") => true,
        _ => return Vec::new(),
    };
    if let Some(index) = items.iter().position(|item| is_map && !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(Place::Item(&path, index), items[index].clone(), detail)];
    }
    let mut seen: HashMap<Identity<'_>, usize> = HashMap::with_capacity(items.len());
    let mut errors = Vec::new();
    for (index, value) in items.iter().enumerate() {
        let identity = if is_map { identity(node, value) } else { vec![Some(value)] };
        let times = seen.entry(identity).or_default();
        *times += 1;
        // Only the second of several is reported.
        if *times == 2 {
            let value = if is_map { keys_of(node, value) } else { value.clone() };
            errors.push(FieldError::duplicate(Place::Item(&path, index), value));
        }
    }
    errors
}

/// The items of an old list, by what they are found again by; those of other lists than maps cannot be matched.
pub(super) struct Counterparts<'a> {
    node: &'a Node,
    items: HashMap<Identity<'a>, &'a Value>,
}

impl<'a> Counterparts<'a> {
    pub(super) fn of(node: &'a Node, old: Option<&'a Value>) -> Self {
        let is_map = node.words.list_type.as_deref() == Some("map");
        let items = old.filter(|_| is_map).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // The first of several counts.
        let items = items.iter().rev().map(|item| (identity(node, item), item)).collect();
        Self { node, items }
    }

    pub(super) fn find(&self, value: &Value) -> Option<&'a Value> {
        if self.items.is_empty() { None } else { self.items.get(&identity(self.node, value)).copied() }
    }
}

/// The values of the keys of an item.
type Identity<'a> = Vec<Option<&'a Value>>;

fn identity<'a>(node: &Node, item: &'a Value) -> Identity<'a> {
    node.map_keys.iter().map(|name| item.get(name)).collect()
}

fn keys_of(node: &Node, item: &Value) -> Value {
    let keys = node.map_keys.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    Value::Object(keys.collect::<Map<_, _>>())
}
