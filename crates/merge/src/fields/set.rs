//! The set of fields and its algebra.

use std::cmp::Ordering;
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
    // Sorted by element, and every one says something, so that equal sets are equal values.
    pub(super) fields: Vec<Field>,
}

/// A field that is in the set, or has something inside that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) element: PathElement,
    /// Whether the field itself is in the set.
    pub(super) is_member: bool,
    pub(super) inside: FieldSet,
}

impl Field {
    const fn is_empty(&self) -> bool {
        !self.is_member && self.inside.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { fields: Vec::new() }
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
            [last] => self.field(last.clone()).is_member = true,
            [first, rest @ ..] => self.field(first.clone()).inside.insert(rest),
        }
    }

    /// Adds what is inside `element`, and `element` itself where it `is_member`.
    pub(crate) fn put(&mut self, element: impl FnOnce() -> PathElement, is_member: bool, inside: Self) {
        if is_member || !inside.is_empty() {
            let field = self.field(element());
            field.is_member |= is_member;
            field.inside.absorb(inside);
        }
    }

    /// Whether the field at `path` itself is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        match path {
            [] => false,
            [last] => self.find(last).is_some_and(|field| field.is_member),
            [first, rest @ ..] => self.find(first).is_some_and(|field| field.inside.contains(rest)),
        }
    }

    /// Whether no field is in the set.
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many fields are in the set.
    pub fn len(&self) -> usize {
        self.fields.iter().map(|field| usize::from(field.is_member) + field.inside.len()).sum()
    }

    /// The part of the set that is inside `element`.
    pub fn inside(&self, element: &PathElement) -> Option<&Self> {
        self.find(element).map(|field| &field.inside).filter(|inside| !inside.is_empty())
    }

    /// Fields that are in one of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.absorb(other.clone());
        union
    }

    /// Fields that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let shared = pairs(&self.fields, &other.fields).filter_map(|(own, other)| {
            let is_member = own.is_member && other.is_member;
            let inside = own.inside.intersection(&other.inside);
            let is_empty = !is_member && inside.is_empty();
            (!is_empty).then(|| Field { element: own.element.clone(), is_member, inside })
        });
        Self { fields: shared.collect() }
    }

    /// Fields that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract(other);
        difference
    }

    /// Fields that are neither in the other set nor inside one of its fields.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut difference = self.clone();
        difference.subtract_with_inside(other);
        difference
    }

    /// Adds the fields of the other set.
    pub(crate) fn absorb(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        let mut own = std::mem::take(&mut self.fields).into_iter().peekable();
        for field in other.fields {
            while let Some(earlier) = own.next_if(|own| own.element < field.element) {
                self.fields.push(earlier);
            }
            self.fields.push(match own.next_if(|own| own.element == field.element) {
                Some(mut both) => {
                    both.is_member |= field.is_member;
                    both.inside.absorb(field.inside);
                    both
                }
                None => field,
            });
        }
        self.fields.extend(own);
    }

    /// Takes out the fields of the other set.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.retain(other, |own, other| {
            own.is_member &= !other.is_member;
            own.inside.subtract(&other.inside);
        });
    }

    /// Takes out the fields of the other set and what is inside them.
    pub(crate) fn subtract_with_inside(&mut self, other: &Self) {
        self.retain(other, |own, other| {
            if other.is_member {
                own.is_member = false;
                own.inside = Self::new();
            } else {
                own.inside.subtract_with_inside(&other.inside);
            }
        });
    }

    /// Changes every field that the other set has, too, and keeps what then still says something.
    fn retain(&mut self, other: &Self, change: impl Fn(&mut Field, &Field)) {
        let mut others = other.fields.iter().peekable();
        if others.peek().is_none() {
            return;
        }
        self.fields.retain_mut(|own| {
            while others.next_if(|other| other.element < own.element).is_some() {}
            if let Some(other) = others.next_if(|other| other.element == own.element) {
                change(own, other);
            }
            !own.is_empty()
        });
    }

    fn find(&self, element: &PathElement) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.element.cmp(element)).ok().map(|position| &self.fields[position])
    }

    /// The field at `element`, which is made if it is not there.
    fn field(&mut self, element: PathElement) -> &mut Field {
        // What is read in order is added at the end.
        let position = match self.fields.last().map(|last| last.element.cmp(&element)) {
            None | Some(Ordering::Less) => Err(self.fields.len()),
            Some(Ordering::Equal) => Ok(self.fields.len() - 1),
            Some(Ordering::Greater) => self.fields.binary_search_by(|field| field.element.cmp(&element)),
        };
        let position = position.unwrap_or_else(|position| {
            self.fields.insert(position, Field { element, is_member: false, inside: Self::new() });
            position
        });
        &mut self.fields[position]
    }

    /// The paths of all fields: those of a level first, then those inside each.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for member in self.fields.iter().filter(|field| field.is_member) {
            paths.push(prefix.iter().chain([&member.element]).cloned().collect());
        }
        for field in &self.fields {
            prefix.push(field.element.clone());
            field.inside.collect(prefix, paths);
            prefix.pop();
        }
    }
}

/// The fields that both have.
fn pairs<'a>(left: &'a [Field], right: &'a [Field]) -> impl Iterator<Item = (&'a Field, &'a Field)> {
    let mut right = right.iter().peekable();
    left.iter().filter_map(move |left| {
        while right.next_if(|right| right.element < left.element).is_some() {}
        right.next_if(|right| right.element == left.element).map(|right| (left, right))
    })
}

impl fmt::Display for FieldSet {
    /// One printable path a line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.paths().iter().map(|path| path_text(path)).collect();
        formatter.write_str(&paths.join("\n"))
    }
}
