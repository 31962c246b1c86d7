//! The fields that a value sets.

use serde_json::{Map, Value};

use super::FieldSet;
use crate::path::PathElement;
use crate::shape::{Member, Shape};
use crate::typed::{self, Node};

impl FieldSet {
    /// The fields that `value` sets: what a manager that applies it owns.
    ///
    /// Values with one owner (scalars, atomic maps and lists) are one field; members that exist only by being set, list
    /// items, and empty or null members are fields themselves; the members that a type declares are not. An item that
    /// is there twice is one field. Without a shape maps are taken apart and lists are not.
    ///
    /// ```
    /// use serde_json::json;
    /// use windlass_merge::{FieldSet, OpenApiShape};
    ///
    /// let pod = OpenApiShape::new(json!({"properties": {"spec": {"properties": {
    ///     "containers": {
    ///         "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    ///         "items": {"properties": {"name": {"type": "string"}, "image": {"type": "string"}}},
    ///     },
    /// }}}}));
    /// let value = json!({"spec": {"containers": [{"name": "web", "image": "nginx"}]}});
    /// let fields = FieldSet::of(&value, Some(&pod)).to_string();
    /// assert!(fields.contains(r#".spec.containers[name="web"].image"#));
    /// ```
    pub fn of<S: Shape>(value: &Value, shape: Option<&S>) -> Self {
        let mut set = Self::new();
        fields_of(value, shape, &mut set);
        set
    }
}

/// Adds the fields inside `value`; whether the value is a field itself.
fn fields_of<S: Shape>(value: &Value, shape: Option<&S>, set: &mut FieldSet) -> bool {
    match typed::node(value, shape) {
        Node::Nothing => false,
        Node::Leaf => true,
        Node::Map(members) => {
            members_of(members, shape, set);
            false
        }
        Node::List(items) => {
            let item = shape.and_then(Shape::item);
            for (element, values) in items.grouped() {
                let mut inside = FieldSet::new();
                if let [value] = values.as_slice() {
                    fields_of(value, item.as_ref(), &mut inside);
                }
                set.put(|| element, true, inside);
            }
            false
        }
    }
}

fn members_of<S: Shape>(members: &Map<String, Value>, shape: Option<&S>, set: &mut FieldSet) {
    for (name, value) in members {
        let declared = shape.is_some_and(|shape| shape.membership(name) == Member::Declared);
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let mut inside = FieldSet::new();
        let is_leaf = fields_of(value, shape.and_then(|shape| shape.field(name)).as_ref(), &mut inside);
        set.put(|| PathElement::field(name), is_leaf || empty || !declared, inside);
    }
}
