//! What identifies an item of an associative list.

use serde_json::{Map, Value};

use crate::path::PathElement;
use crate::shape::{ListType, Shape};

/// Why an item of an associative list has no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// Items of a list with keys are maps.
    #[error("associative list with keys may not have non-map elements")]
    NotMap,
    /// None of the keys is given or has a default.
    #[error(
        "associative list with keys has an element that omits all key fields {0:?} (and doesn't have default values for any key fields)"
    )]
    NoKey(Vec<String>),
    /// Items of a set are scalars.
    #[error("an item of a set must be a string, number or boolean")]
    NotScalar,
    /// The list has one owner, its items have no identity.
    #[error("the items of an atomic list have no identity")]
    Atomic,
}

/// The path element of `item` in a list of this shape. Keys that are left out count with their default.
pub(crate) fn identity<S: Shape>(item: &Value, list: &S) -> Result<PathElement, ItemError> {
    match list.list_type() {
        ListType::Atomic => Err(ItemError::Atomic),
        ListType::Set if item.is_array() || item.is_object() || item.is_null() => Err(ItemError::NotScalar),
        ListType::Set => Ok(PathElement::value(item.clone())),
        ListType::Map(keys) => key_of(item.as_object().ok_or(ItemError::NotMap)?, keys, list.item().as_ref()),
    }
}

fn key_of<S: Shape>(item: &Map<String, Value>, keys: &[String], shape: Option<&S>) -> Result<PathElement, ItemError> {
    let default = |key: &String| shape.and_then(|shape| shape.field_default(key));
    let members = keys.iter().filter_map(|key| Some((key.clone(), item.get(key).cloned().or_else(|| default(key))?)));
    match members.collect::<Vec<_>>() {
        members if members.is_empty() => Err(ItemError::NoKey(keys.to_vec())),
        members => Ok(PathElement::key(members)),
    }
}
