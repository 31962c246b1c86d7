//! Taking fields out of a value.

use serde_json::{Map, Value};

use super::node::{Node, node};
use crate::fields::FieldSet;
use crate::path::PathElement;
use crate::shape::Shape;

/// The value without these fields. What loses all that was inside stays, empty, unless it is to be removed itself.
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
    match node(value, shape) {
        Node::Map(members) => Value::Object(remaining_members(members, fields, shape)),
        Node::List(items) => {
            let shape = shape.and_then(Shape::item);
            let left =
                items.0.iter().filter_map(|(element, value)| remaining(value, fields, element, || shape.clone()));
            Value::Array(left.collect())
        }
        Node::Leaf | Node::Nothing => value.clone(),
    }
}

fn remaining_members<S: Shape>(
    members: &Map<String, Value>,
    fields: &FieldSet,
    shape: Option<&S>,
) -> Map<String, Value> {
    let left = members.iter().filter_map(|(name, value)| {
        let field = || shape.and_then(|shape| shape.field(name));
        Some((name.clone(), remaining(value, fields, &PathElement::field(name), field)?))
    });
    left.collect()
}

/// What is left of the value at `element`; `None` where it is removed itself.
fn remaining<S: Shape>(
    value: &Value,
    fields: &FieldSet,
    element: &PathElement,
    shape: impl Fn() -> Option<S>,
) -> Option<Value> {
    if fields.contains(std::slice::from_ref(element)) {
        return None;
    }
    Some(match fields.inside(element) {
        Some(inside) => remove_items(value, inside, shape().as_ref()),
        None => value.clone(),
    })
}
