//! Lists of type `set` and `map`: no item twice, and the same item found again.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::field::{child, item, key};
use crate::node::Node;
use crate::{FieldError, Schema};

/// The duplicates in all lists under `value`.
pub(super) fn check(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let properties = &schema.node().words.properties;
                let (schema, path) = match properties.get(name) {
                    Some(property) => (Some(property), child(path, name)),
                    None => (schema.additional_properties(), key(path, name)),
                };
                schema.map(|schema| check(schema, value, &path)).unwrap_or_default()
            })
            .collect(),
        Value::Array(items) => {
            let mut errors = duplicates(schema.node(), items, path);
            if let Some(schema) = schema.items() {
                errors.extend(
                    items.iter().enumerate().flat_map(|(index, value)| check(schema, value, &item(path, index))),
                );
            }
            errors
        }
        _ => Vec::new(),
    }
}

fn duplicates(node: &Node, items: &[Value], path: &str) -> Vec<FieldError> {
    let identities: Vec<Value> = match node.words.list_type.as_deref() {
        Some("set") => items.to_vec(),
        Some("map") => {
            let odd = items.iter().position(|item| !item.is_object() && !item.is_null());
            if let Some(index) = odd {
                let detail = "must be an object for an array of list-type map";
                return vec![FieldError::invalid(item(path, index), items[index].clone(), detail)];
            }
            items.iter().map(|item| identity(node, item)).collect()
        }
        _ => return Vec::new(),
    };
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut errors = Vec::new();
    for (index, value) in identities.into_iter().enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        // Only the second of several is reported.
        if *times == 2 {
            errors.push(FieldError::duplicate(item(path, index), value));
        }
    }
    errors
}

/// The item of the old list that has the same keys; lists of other types cannot be matched.
pub(super) fn counterpart<'a>(node: &Node, value: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    if node.words.list_type.as_deref() != Some("map") {
        return None;
    }
    let wanted = identity(node, value);
    old?.as_array()?.iter().find(|candidate| identity(node, candidate) == wanted)
}

fn identity(node: &Node, item: &Value) -> Value {
    let keys = node.map_keys.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
    Value::Object(keys.collect::<Map<_, _>>())
}
