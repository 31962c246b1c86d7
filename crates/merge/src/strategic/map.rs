//! Merging maps.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::directive::{
    Name, PATCH, Patch, RETAIN_KEYS, malformed, name_of, patch_of, stored, stored_items, stored_members, unknown,
};
use super::{list, sequence};
use crate::order::Ordered;
use crate::patch::PatchError;
use crate::shape::{PatchStrategy, Shape};

/// Applies a strategic merge patch.
///
/// Lists that the type merges are merged by their merge key, or as sets of scalars; other lists, and all where no shape
/// is known, are replaced. Directives: `$patch: replace|delete` in maps and list items, `$retainKeys` in maps,
/// `$deleteFromPrimitiveList/NAME` and `$setElementOrder/NAME` beside the list NAME.
///
/// # Errors
/// [`PatchError::Malformed`] or [`PatchError::Senseless`] for a directive that cannot be followed, [`PatchError::Inapplicable`] where a list cannot be
/// merged.
pub fn apply<S: Shape>(original: &Value, patch: &Value, shape: Option<&S>) -> Result<Value, PatchError> {
    let patch = patch.as_object().ok_or_else(|| malformed("a strategic merge patch must be an object"))?;
    let empty = Map::new();
    merge_map(original.as_object().unwrap_or(&empty), patch, shape).map(Value::Object)
}

pub(super) fn merge_map<S: Shape>(
    original: &Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Option<&S>,
) -> Result<Map<String, Value>, PatchError> {
    match patch_of(patch)? {
        Some(Patch::Replace) => return Ok(stored_members(patch)),
        Some(Patch::Delete) => return Ok(Map::new()),
        Some(Patch::Merge) => return Err(unknown(patch)),
        None => {}
    }
    let mut merged = original.clone();
    retain_keys(&mut merged, patch)?;
    let ordered = order_lists(&mut merged, patch, shape)?;
    for (name, value) in patch.iter().filter(|(name, _)| !matches!(name.as_str(), PATCH | RETAIN_KEYS)) {
        match name_of(name)? {
            Name::OrderOf(_) => {}
            Name::DeleteFrom(list) => delete_from(&mut merged, list, value)?,
            Name::Plain(name) if ordered.contains(&name) => {}
            Name::Plain(name) => merge_member(&mut merged, name, value, shape)?,
        }
    }
    Ok(merged)
}

fn merge_member<S: Shape>(
    merged: &mut Map<String, Value>,
    name: &str,
    patch: &Value,
    shape: Option<&S>,
) -> Result<(), PatchError> {
    let field = shape.and_then(|shape| shape.field(name));
    let strategy = field.as_ref().map(Shape::patch_strategy).unwrap_or_default();
    let value = match (merged.get(name), patch) {
        (_, Value::Null) => None,
        (Some(Value::Object(original)), Value::Object(patch)) if !strategy.replace => {
            Some(Value::Object(merge_map(original, patch, field.as_ref())?))
        }
        (Some(Value::Array(original)), Value::Array(patch)) if strategy.merge => {
            Some(Value::Array(list::merge_list(original, patch, field.as_ref())?))
        }
        _ => stored(patch),
    };
    match value {
        Some(value) => merged.insert(name.to_owned(), value),
        None => merged.remove(name),
    };
    Ok(())
}

/// Follows `$retainKeys`: members that are not named go, and the patch may set no others.
fn retain_keys(merged: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| malformed("$retainKeys must be a list of names"))?;
    let keys: BTreeSet<_> = keys.iter().filter_map(Value::as_str).collect();
    let retained = |name: &str| keys.contains(name);
    for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        if !value.is_null() && !retained(name) {
            return Err(malformed(format!("the patch sets {name:?}, which is not in its $retainKeys")));
        }
    }
    merged.retain(|name, _| retained(name));
    Ok(())
}

/// Follows `$setElementOrder`: merges the lists it names and brings them in order. Returns their names.
fn order_lists<'p, S: Shape>(
    merged: &mut Map<String, Value>,
    patch: &'p Map<String, Value>,
    shape: Option<&S>,
) -> Result<Vec<&'p str>, PatchError> {
    let mut ordered = Vec::new();
    for (name, order) in patch {
        let Name::OrderOf(name) = name_of(name)? else { continue };
        let order = order.as_array().ok_or_else(|| malformed(format!("the order of {name:?} must be a list")))?;
        let field = shape.and_then(|shape| shape.field(name));
        let strategy = field.as_ref().map(Shape::patch_strategy).unwrap_or_default();
        let original = as_list(merged.get(name), name)?;
        let patched = as_list(patch.get(name), name)?;
        sequence::check(patched.unwrap_or_default(), order, strategy.merge_key)?;
        ordered.push(name);
        let Some(items) = merged_list(original, patched, field.as_ref(), strategy)? else { continue };
        let items = sequence::arrange(items, order, original.unwrap_or_default(), strategy.merge_key);
        merged.insert(name.to_owned(), Value::Array(items));
    }
    Ok(ordered)
}

fn merged_list<S: Shape>(
    original: Option<&[Value]>,
    patch: Option<&[Value]>,
    field: Option<&S>,
    strategy: PatchStrategy<'_>,
) -> Result<Option<Vec<Value>>, PatchError> {
    match (original, patch) {
        (None, None) => Ok(None),
        (Some(original), None) => Ok(Some(original.to_vec())),
        (Some(original), Some(patch)) if strategy.merge => list::merge_list(original, patch, field).map(Some),
        (_, Some(patch)) => Ok(Some(stored_items(patch))),
    }
}

fn delete_from(merged: &mut Map<String, Value>, list: &str, gone: &Value) -> Result<(), PatchError> {
    let gone = gone.as_array().ok_or_else(|| malformed(format!("what is deleted from {list:?} must be a list")))?;
    if let Some(items) = merged.get_mut(list).and_then(Value::as_array_mut) {
        let gone: BTreeSet<_> = gone.iter().map(Ordered).collect();
        items.retain(|item| !gone.contains(&Ordered(item)));
    }
    Ok(())
}

fn as_list<'v>(value: Option<&'v Value>, name: &str) -> Result<Option<&'v [Value]>, PatchError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(malformed(format!("$setElementOrder names {name:?}, which is not a list"))),
    }
}
