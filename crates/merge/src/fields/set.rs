//! The set of fields and its algebra.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::path::{Path, PathElement, path_text};

/// A set of fields of an object.
///
/// A field can be in the set itself, things inside it can be, or both: owning `.metadata.labels` says that the map is
/// there, owning `.metadata.labels.app` says what one label is.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::FieldSet;
///
/// let mine = FieldSet::from_fields_v1(&json!({"f:spec": {"f:replicas": {}, "f:paused": {}}}))?;
/// let theirs = FieldSet::from_fields_v1(&json!({"f:spec": {"f:replicas": {}}}))?;
/// assert_eq!(mine.difference(&theirs).to_string(), ".spec.paused");
/// # Ok::<(), windlass_merge::FieldsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) members: BTreeSet<PathElement>,
    // No child is empty, so that equal sets are equal values.
    pub(super) children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { members: BTreeSet::new(), children: BTreeMap::new() }
    }

    /// The set of the members at these dotted paths, such as `metadata.labels`.
    pub fn of_names<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(&path.split('.').map(PathElement::field).collect::<Vec<_>>());
        }
        set
    }

    /// Adds the field at `path`; the object itself (an empty path) is never a member.
    pub fn insert(&mut self, path: &Path) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Whether the field at `path` itself is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether no field is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.is_empty()
    }

    /// How many fields are in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
    }

    /// The part of the set that is inside `element`.
    pub fn inside(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element)
    }

    /// Fields that are in one of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.members.extend(other.members.iter().cloned());
        for (element, child) in &other.children {
            let merged = self.children.get(element).map_or_else(|| child.clone(), |own| own.union(child));
            union.children.insert(element.clone(), merged);
        }
        union
    }

    /// Fields that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, child)| {
            let child = child.intersection(other.children.get(element)?);
            (!child.is_empty()).then(|| (element.clone(), child))
        });
        Self { members, children: children.collect() }
    }

    /// Fields that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(element, child)| {
            let child = match other.children.get(element) {
                Some(inside) => child.difference(inside),
                None => child.clone(),
            };
            (!child.is_empty()).then(|| (element.clone(), child))
        });
        Self { members, children: children.collect() }
    }

    /// Fields that are neither in the other set nor inside one of its fields.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter(|(element, _)| !other.members.contains(element));
        let children = children.filter_map(|(element, child)| {
            let child = match other.children.get(element) {
                Some(inside) => child.recursive_difference(inside),
                None => child.clone(),
            };
            (!child.is_empty()).then(|| (element.clone(), child))
        });
        Self { members, children: children.collect() }
    }

    /// The paths of all fields: those of a level first, then those inside each.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for member in &self.members {
            paths.push(prefix.iter().chain([member]).cloned().collect());
        }
        for (element, child) in &self.children {
            prefix.push(element.clone());
            child.collect(prefix, paths);
            prefix.pop();
        }
    }
}

impl fmt::Display for FieldSet {
    /// One printable path a line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths().iter().map(|path| path_text(path)).collect();
        formatter.write_str(&paths.join("\n"))
    }
}
