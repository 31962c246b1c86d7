//! What is known of a write besides the objects.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use super::object::ObjectShape;
use crate::fields::FieldSet;
use crate::shape::Shape;

/// Who writes, and through what.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager; an empty name becomes `unknown`.
    pub name: &'a str,
    /// The version of the request, such as `apps/v1`, in which the objects are.
    pub api_version: &'a str,
    /// The subresource of the request; empty for the object itself.
    pub subresource: &'a str,
    /// When.
    pub time: Timestamp,
}

/// A write: its manager, the type of the objects, and the fields that the endpoint does not let anybody set.
pub struct Write<'a, S: Shape> {
    /// Who writes.
    pub manager: Manager<'a>,
    /// The type of the objects; what it says of `metadata` is not asked, since that is known.
    pub shape: Option<&'a S>,
    /// Fields that the endpoint resets, such as `status` of an object with a status subresource: nobody gets them.
    pub reset: FieldSet,
    /// What every object has from the start, such as lists that are written even where there are none; null for nothing.
    pub blank: Value,
    /// Converts an object to the version of another entry. Without it all versions are taken to be alike.
    pub convert: Option<&'a Convert<'a, S>>,
}

/// Converts an object to an API version; `None` where that version is no longer there.
///
/// # Errors
/// The conversion failed; the write fails with it.
pub type Convert<'a, S> = dyn Fn(&Value, &str) -> Result<Option<Versioned<S>>, ConvertError> + 'a;

/// An object in one version, with its type there.
#[derive(Clone, Debug)]
pub struct Versioned<S> {
    /// The object.
    pub object: Value,
    /// Its type.
    pub shape: Option<S>,
}

/// An object could not be converted to the version in which a manager wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot convert the object to {api_version}: {reason}")]
pub struct ConvertError {
    /// The version that was asked for.
    pub api_version: String,
    /// Why not.
    pub reason: String,
}

impl<'a, S: Shape> Write<'a, S> {
    /// A write by `manager` to objects of this type.
    pub const fn new(manager: Manager<'a>, shape: Option<&'a S>) -> Self {
        Self { manager, shape, reset: FieldSet::new(), blank: Value::Null, convert: None }
    }

    /// Lets nobody own these fields and what is inside them.
    #[must_use]
    pub fn resetting(self, fields: FieldSet) -> Self {
        Self { reset: fields, ..self }
    }

    /// Lets nobody own what is the same in `blank`, because nobody wrote it.
    #[must_use]
    pub fn starting_from(self, blank: Value) -> Self {
        Self { blank, ..self }
    }

    /// Converts objects by `convert`.
    #[must_use]
    pub fn converting(self, convert: &'a Convert<'a, S>) -> Self {
        Self { convert: Some(convert), ..self }
    }

    /// The object as one in the version of the request.
    pub(super) fn view<'o>(&self, object: &'o Value) -> View<'o, S> {
        let api_version = self.manager.api_version.to_owned();
        View { object: Cow::Borrowed(object), shape: ObjectShape::root(self.shape.cloned()), api_version }
    }

    /// The object in another version; `None` where that version is gone.
    pub(super) fn converted<'o>(
        &self,
        view: &View<'o, S>,
        api_version: &str,
    ) -> Result<Option<View<'o, S>>, ConvertError> {
        let api_version = api_version.to_owned();
        match self.convert {
            Some(convert) if view.api_version != api_version => {
                let versioned = convert(&view.object, &api_version)?;
                Ok(versioned.map(|Versioned { object, shape }| View {
                    object: Cow::Owned(object),
                    shape: ObjectShape::root(shape),
                    api_version,
                }))
            }
            _ => Ok(Some(View { api_version, ..view.clone() })),
        }
    }
}

/// An object in one version, seen through its type.
#[derive(Clone)]
pub(super) struct View<'o, S: Shape> {
    pub(super) object: Cow<'o, Value>,
    pub(super) shape: ObjectShape<S>,
    pub(super) api_version: String,
}

impl<S: Shape> View<'_, S> {
    pub(super) fn fields(&self) -> FieldSet {
        FieldSet::of(&self.object, Some(&self.shape))
    }
}
