//! Taking fields out of a value.

use serde_json::{Map, Value};

use super::node::{Items, Node, node};
use crate::fields::FieldSet;
use crate::path::PathElement;
use crate::shape::Shape;

/// The value without these fields. A map or list that loses its last member goes, too.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::{FieldSet, OpenApiShape, typed};
///
/// let fields = FieldSet::of_names(["spec.paused"]);
/// let value = json!({"spec": {"paused": true, "replicas": 1}});
/// assert_eq!(typed::remove_items::<OpenApiShape>(&value, &fields, None), json!({"spec": {"replicas": 1}}));
/// ```
pub fn remove_items<S: Shape>(value: &Value, fields: &FieldSet, shape: Option<&S>) -> Value {
    remaining(value, fields, shape).unwrap_or(Value::Null)
}

fn remaining<S: Shape>(value: &Value, fields: &FieldSet, shape: Option<&S>) -> Option<Value> {
    match node(value, shape) {
        Node::Map(members) => {
            let members = remaining_members(members, fields, shape);
            (!members.is_empty()).then_some(Value::Object(members))
        }
        Node::List(items) => {
            let items = remaining_items(&items, fields, shape);
            (!items.is_empty()).then_some(Value::Array(items))
        }
        Node::Leaf | Node::Nothing => Some(value.clone()),
    }
}

fn remaining_members<S: Shape>(
    members: &Map<String, Value>,
    fields: &FieldSet,
    shape: Option<&S>,
) -> Map<String, Value> {
    let mut left = Map::new();
    for (name, value) in members {
        let element = PathElement::field(name);
        if fields.contains(std::slice::from_ref(&element)) {
            continue;
        }
        let value = match fields.inside(&element) {
            Some(inside) => remaining(value, inside, shape.and_then(|shape| shape.field(name)).as_ref()),
            None => Some(value.clone()),
        };
        left.extend(value.map(|value| (name.clone(), value)));
    }
    left
}

fn remaining_items<S: Shape>(items: &Items<'_>, fields: &FieldSet, shape: Option<&S>) -> Vec<Value> {
    let shape = shape.and_then(Shape::item);
    let kept = items.0.iter().filter(|(element, _)| !fields.contains(std::slice::from_ref(element)));
    let left = kept.filter_map(|(element, value)| match fields.inside(element) {
        Some(inside) => remaining(value, inside, shape.as_ref()),
        None => Some((*value).clone()),
    });
    left.collect()
}
