//! Sets of fields brought in line with a type.

use super::FieldSet;
use crate::path::PathElement;
use crate::shape::{ListType, MapType, Member, Shape};

impl FieldSet {
    /// The set as the type of today would have it: what became atomic since the set was recorded is owned as a whole.
    #[must_use]
    pub fn reconciled<S: Shape>(&self, shape: Option<&S>) -> Self {
        let Some(shape) = shape else { return self.clone() };
        let mut reconciled = Self { members: self.members.clone(), ..Self::default() };
        for (element, inside) in &self.children {
            match inner(shape, element) {
                Some(shape) if inside.is_atomic_in(&shape) => {
                    reconciled.members.insert(element.clone());
                }
                shape => {
                    reconciled.children.insert(element.clone(), inside.reconciled(shape.as_ref()));
                }
            }
        }
        reconciled
    }

    /// The set with every declared member that has something inside added as such.
    ///
    /// Who owns something inside `.spec` keeps `.spec` there, but nobody owns `.spec` itself.
    pub(crate) fn with_named_fields<S: Shape>(&self, shape: Option<&S>) -> Self {
        let mut named = Self { members: self.members.clone(), ..Self::default() };
        for (element, inside) in &self.children {
            if let (PathElement::Field(name), Some(shape)) = (element, shape)
                && shape.membership(name) == Member::Declared
            {
                named.members.insert(element.clone());
            }
            let shape = shape.and_then(|shape| inner(shape, element));
            named.children.insert(element.clone(), inside.with_named_fields(shape.as_ref()));
        }
        named
    }

    fn is_atomic_in<S: Shape>(&self, shape: &S) -> bool {
        self.members.iter().chain(self.children.keys()).any(|element| match element {
            PathElement::Field(_) => shape.map_type() == MapType::Atomic,
            _ => shape.list_type() == ListType::Atomic,
        })
    }
}

fn inner<S: Shape>(shape: &S, element: &PathElement) -> Option<S> {
    match element {
        PathElement::Field(name) => shape.field(name),
        _ => shape.item(),
    }
}
