//! What changed between two values, field by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::node::{Items, Node, node};
use crate::fields::FieldSet;
use crate::order;
use crate::path::PathElement;
use crate::shape::Shape;

/// The fields in which a value differs from an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the later value has.
    pub added: FieldSet,
    /// Fields that both have, with another content.
    pub modified: FieldSet,
    /// Fields that only the earlier value has.
    pub removed: FieldSet,
}

/// Compares an earlier with a later value of the same shape.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::{OpenApiShape, typed};
///
/// let (old, new) = (json!({"spec": {"replicas": 1, "paused": true}}), json!({"spec": {"replicas": 2}}));
/// let difference = typed::compare::<OpenApiShape>(&old, &new, None);
/// assert_eq!(difference.modified.to_string(), ".spec.replicas");
/// assert_eq!(difference.removed.to_string(), ".spec.paused");
/// ```
pub fn compare<S: Shape>(old: &Value, new: &Value, shape: Option<&S>) -> Comparison {
    let mut comparison = Comparison::default();
    // What becomes of the object itself is not a field.
    comparison.compare(Some(old), Some(new), shape);
    comparison
}

impl Comparison {
    /// Whether nothing changed.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The comparison without these fields and what is inside them.
    #[must_use]
    pub fn without(mut self, fields: &FieldSet) -> Self {
        self.added.subtract_with_inside(fields);
        self.modified.subtract_with_inside(fields);
        self.removed.subtract_with_inside(fields);
        self
    }

    /// Adds what changed inside a value; what became of the value itself.
    ///
    /// A value that changes its kind is compared as each of both: what was inside it goes, what is inside it comes.
    fn compare<S: Shape>(&mut self, old: Option<&Value>, new: Option<&Value>, shape: Option<&S>) -> Option<Fate> {
        let nodes = [old, new].map(|value| value.map_or(Node::Nothing, |value| node(value, shape)));
        let leaf = nodes.iter().any(|node| matches!(node, Node::Leaf));
        let [old_map, new_map] = nodes.each_ref().map(|node| match node {
            Node::Map(members) => Some(*members),
            _ => None,
        });
        let [old_items, new_items] = nodes.each_ref().map(|node| match node {
            Node::List(items) => Some(items),
            _ => None,
        });
        let maps = [old_map, new_map].into_iter().flatten().any(|map| !map.is_empty());
        let lists = [old_items, new_items].into_iter().flatten().any(|items| !items.0.is_empty());
        if maps {
            self.members(old_map, new_map, shape);
        }
        if lists {
            self.items(old_items, new_items, shape);
        }
        let is_whole = leaf || !(maps || lists) || old.is_none() || new.is_none();
        if is_whole { Fate::of(old, new) } else { None }
    }

    fn members<S: Shape>(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        shape: Option<&S>,
    ) {
        let field = |name: &str| shape.and_then(|shape| shape.field(name));
        for (name, value) in old.into_iter().flatten() {
            let new = new.and_then(|new| new.get(name));
            self.inside(|| PathElement::field(name), Some(value), new, field(name).as_ref());
        }
        for (name, value) in new.into_iter().flatten() {
            if !old.is_some_and(|old| old.contains_key(name)) {
                self.inside(|| PathElement::field(name), None, Some(value), field(name).as_ref());
            }
        }
    }

    fn items<S: Shape>(&mut self, old: Option<&Items<'_>>, new: Option<&Items<'_>>, shape: Option<&S>) {
        let shape = shape.and_then(Shape::item);
        let mut pairs: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for (element, values) in items.map(Items::grouped).unwrap_or_default() {
                pairs.entry(element).or_default()[side] = values;
            }
        }
        for (element, [old, new]) in pairs {
            self.item(&element, &old, &new, shape.as_ref());
        }
    }

    /// An item that is there twice has no inside: only the identity as such can be told to come, change or go.
    fn item<S: Shape>(&mut self, element: &PathElement, old: &[&Value], new: &[&Value], shape: Option<&S>) {
        let itself = || element.clone();
        match (old, new) {
            ([] | [_], [] | [_]) => self.inside(itself, old.first().copied(), new.first().copied(), shape),
            ([] | [_], _) => {
                if let [old] = old {
                    self.inside(itself, Some(old), None, shape);
                }
                self.put(itself, Some(Fate::Added), Self::default());
            }
            (_, [] | [_]) => {
                if let [new] = new {
                    self.inside(itself, None, Some(new), shape);
                }
                self.put(itself, Some(Fate::Removed), Self::default());
            }
            _ => {
                let same = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| order::same(old, new));
                self.put(itself, (!same).then_some(Fate::Modified), Self::default());
            }
        }
    }

    fn inside<S: Shape>(
        &mut self,
        element: impl Fn() -> PathElement,
        old: Option<&Value>,
        new: Option<&Value>,
        shape: Option<&S>,
    ) {
        let mut inside = Self::default();
        let fate = inside.compare(old, new, shape);
        self.put(element, fate, inside);
    }

    fn put(&mut self, element: impl Fn() -> PathElement, fate: Option<Fate>, inside: Self) {
        self.added.put(&element, fate == Some(Fate::Added), inside.added);
        self.modified.put(&element, fate == Some(Fate::Modified), inside.modified);
        self.removed.put(&element, fate == Some(Fate::Removed), inside.removed);
    }
}

/// What became of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Added,
    Modified,
    Removed,
}

impl Fate {
    fn of(old: Option<&Value>, new: Option<&Value>) -> Option<Self> {
        match (old, new) {
            (None, _) => Some(Self::Added),
            (_, None) => Some(Self::Removed),
            (Some(old), Some(new)) => (!order::same(old, new)).then_some(Self::Modified),
        }
    }
}
