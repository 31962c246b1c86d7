//! Sets of fields brought in line with a type.

use super::FieldSet;
use crate::path::PathElement;
use crate::shape::{ListType, MapType, Member, Shape};

impl FieldSet {
    /// Brings the set in line with the type of today: what became atomic since the set was recorded is owned as a whole.
    pub fn reconcile<S: Shape>(&mut self, shape: Option<&S>) {
        let Some(shape) = shape else { return };
        for field in self.fields.iter_mut().filter(|field| !field.inside.is_empty()) {
            match inner(shape, &field.element) {
                Some(shape) if field.inside.is_atomic_in(&shape) => {
                    field.is_member = true;
                    field.inside = Self::new();
                }
                shape => field.inside.reconcile(shape.as_ref()),
            }
        }
    }

    /// Adds every declared member that has something inside as such.
    ///
    /// Who owns something inside `.spec` keeps `.spec` there, but nobody owns `.spec` itself.
    pub(crate) fn name_fields<S: Shape>(&mut self, shape: Option<&S>) {
        let Some(shape) = shape else { return };
        for field in self.fields.iter_mut().filter(|field| !field.inside.is_empty()) {
            if let PathElement::Field(name) = &field.element
                && shape.membership(name) == Member::Declared
            {
                field.is_member = true;
            }
            field.inside.name_fields(inner(shape, &field.element).as_ref());
        }
    }

    fn is_atomic_in<S: Shape>(&self, shape: &S) -> bool {
        self.fields.iter().any(|field| match field.element {
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
