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
