//! Merging an applied configuration into a live value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::node::{Items, Node, node};
use crate::path::PathElement;
use crate::shape::Shape;

/// Merges `applied` into `live`: what is applied wins, what only the live value has stays.
///
/// Items of associative lists are merged by identity. They come in the order in which they are applied; items that only
/// the live list has keep their place among their neighbours.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::{OpenApiShape, typed};
///
/// let (live, applied) = (json!({"data": {"a": "1", "b": "2"}}), json!({"data": {"b": "3"}}));
/// assert_eq!(typed::merge::<OpenApiShape>(&live, &applied, None), json!({"data": {"a": "1", "b": "3"}}));
/// ```
pub fn merge<S: Shape>(live: &Value, applied: &Value, shape: Option<&S>) -> Value {
    match (node(live, shape), node(applied, shape)) {
        // Null is an empty map or list where the type has maps or lists, and then there is nothing to merge.
        (Node::Map(members), Node::Nothing) if !members.is_empty() => live.clone(),
        (Node::List(items), Node::Nothing) if !items.0.is_empty() => live.clone(),
        (Node::Map(live), Node::Map(applied)) => Value::Object(merge_members(live, applied, shape)),
        (Node::List(live), Node::List(applied)) => Value::Array(merge_items(&live, &applied, shape)),
        _ => applied.clone(),
    }
}

fn merge_members<S: Shape>(
    live: &Map<String, Value>,
    applied: &Map<String, Value>,
    shape: Option<&S>,
) -> Map<String, Value> {
    let mut merged = live.clone();
    for (name, value) in applied {
        let field = shape.and_then(|shape| shape.field(name));
        let value = match live.get(name) {
            Some(live) => merge(live, value, field.as_ref()),
            None => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    merged
}

/// Goes along both lists at once. The applied order is kept; a live item that is not applied is written when its turn
/// in the live list comes, and one that is applied later waits for that turn.
fn merge_items<S: Shape>(live: &Items<'_>, applied: &Items<'_>, shape: Option<&S>) -> Vec<Value> {
    let item = shape.and_then(Shape::item);
    let live_values: BTreeMap<_, _> = live.grouped().into_iter().collect();
    let applied_elements: BTreeSet<_> = applied.0.iter().map(|(element, _)| element).collect();
    // Applied items that are live, too, in applied order: the points at which both lists are in step.
    let shared = applied.0.iter().map(|(element, _)| element).filter(|element| live_values.contains_key(*element));
    let mut shared: VecDeque<&PathElement> = shared.collect();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.0.len().max(applied.0.len()));
    let (mut live_left, mut applied_left) = (live.0.as_slice(), applied.0.as_slice());
    loop {
        if let [(element, value), rest @ ..] = live_left {
            let in_step = applied_left.first().is_some_and(|(applied, _)| applied == element);
            if !applied_elements.contains(element) {
                merged.push((*value).clone());
                live_left = rest;
                continue;
            }
            let waits = !applied_left.is_empty() && shared.front().is_some_and(|next| *next != element);
            if !in_step && (waits || done.contains(element)) {
                live_left = rest;
                if waits {
                    continue;
                }
            } else if in_step {
                live_left = rest;
            }
        }
        let [(element, value), rest @ ..] = applied_left else {
            if live_left.is_empty() {
                return merged;
            }
            continue;
        };
        // A live item that is there twice has no content to merge with.
        merged.push(match live_values.get(element).map(Vec::as_slice) {
            Some([live]) => merge(live, value, item.as_ref()),
            _ => (*value).clone(),
        });
        done.insert(element);
        shared.pop_front_if(|next| *next == element);
        applied_left = rest;
    }
}
