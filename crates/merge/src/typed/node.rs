//! One value as its shape has it: taken apart by members or by items, or one field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::item::identity;
use crate::path::PathElement;
use crate::shape::{ListType, MapType, Shape};

/// A value and how it is taken apart.
pub(crate) enum Node<'a> {
    /// Null says nothing: it is an empty map to a map and an empty list to a list.
    Nothing,
    /// A scalar, or a map or list with one owner.
    Leaf,
    /// A map of which every member counts.
    Map(&'a Map<String, Value>),
    /// A list of which every item counts.
    List(Items<'a>),
}

/// The items of an associative list with what identifies them.
#[derive(Default)]
pub(crate) struct Items<'a>(pub(crate) Vec<(PathElement, &'a Value)>);

/// Sees `value` through its shape.
///
/// A list with an item that has no identity has one owner: nothing that is stored makes a write fail.
pub(crate) fn node<'a, S: Shape>(value: &'a Value, shape: Option<&S>) -> Node<'a> {
    match value {
        Value::Null => Node::Nothing,
        Value::Object(_) if shape.is_some_and(|shape| shape.map_type() == MapType::Atomic) => Node::Leaf,
        Value::Object(members) => Node::Map(members),
        Value::Array(items) => shape.and_then(|shape| Items::of(items, shape)).map_or(Node::Leaf, Node::List),
        _ => Node::Leaf,
    }
}

/// Whether every item of every associative list has an identity.
///
/// Lists are looked into only as far as they are taken apart; where one is not, it is one field.
pub(crate) fn is_identified<S: Shape>(value: &Value, shape: Option<&S>) -> bool {
    let Some(shape) = shape else { return true };
    match value {
        Value::Object(members) if shape.map_type() != MapType::Atomic => members.iter().all(|(name, value)| {
            let is_nested = value.is_object() || value.is_array();
            !is_nested || is_identified(value, shape.field(name).as_ref())
        }),
        Value::Array(items) if shape.list_type() != ListType::Atomic => {
            let item_shape = shape.item();
            items.iter().all(|item| identity(item, shape).is_ok() && is_identified(item, item_shape.as_ref()))
        }
        _ => true,
    }
}

impl<'a> Items<'a> {
    fn of<S: Shape>(items: &'a [Value], list: &S) -> Option<Self> {
        if list.list_type() == ListType::Atomic {
            return None;
        }
        items.iter().map(|item| Some((identity(item, list).ok()?, item))).collect::<Option<_>>().map(Self)
    }

    /// The values of every identity, in the order of their first item; more than one where the list has duplicates.
    pub(crate) fn grouped(&self) -> Vec<(PathElement, Vec<&'a Value>)> {
        let mut groups: Vec<(PathElement, Vec<&'a Value>)> = Vec::new();
        let mut positions = BTreeMap::new();
        for (element, value) in &self.0 {
            let position = *positions.entry(element).or_insert(groups.len());
            match groups.get_mut(position) {
                Some((_, values)) => values.push(value),
                None => groups.push((element.clone(), vec![value])),
            }
        }
        groups
    }
}
