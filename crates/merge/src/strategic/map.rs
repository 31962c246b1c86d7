//! Merging maps.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::directive::{
    Name, PATCH, Patch, RETAIN_KEYS, malformed, name_of, not_a_list, patch_of, same_type, stored, unknown,
};
use super::{list, sequence};
use crate::patch::PatchError;
use crate::shape::{Member, PatchStrategy, Shape};

/// Applies a strategic merge patch.
///
/// Lists that the type merges are merged by their merge key, or as sets of scalars; other lists, and all where no shape
/// is known, are replaced. Directives: `$patch: replace|delete` in maps and list items, `$retainKeys` in maps,
/// `$deleteFromPrimitiveList/NAME` and `$setElementOrder/NAME` beside the list NAME. What a directive does not reach, such
/// as nulls and directives in an item that is new, is left to whoever reads the result as its type.
///
/// # Errors
/// [`PatchError::Malformed`] or [`PatchError::Senseless`] for a directive that cannot be followed,
/// [`PatchError::Senseless`] or [`PatchError::Inapplicable`] for what cannot be merged: lists of different things or of
/// lists, maps without their merge key, and maps and lists in a map whose type does not name its members.
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
        Some(Patch::Replace) => {
            return Ok(patch.iter().filter(|(name, _)| *name != PATCH).map(|(n, v)| (n.clone(), v.clone())).collect());
        }
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
            Name::DeleteFrom(list) => delete_from(&mut merged, list, value, shape)?,
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
        (Some(Value::Object(original)), Value::Object(members)) => {
            declared(shape, name)?;
            match strategy.replace {
                true => Some(patch.clone()),
                false => Some(Value::Object(merge_map(original, members, field.as_ref())?)),
            }
        }
        (Some(Value::Array(original)), Value::Array(items)) => {
            declared(shape, name)?;
            match strategy.merge {
                true => Some(Value::Array(list::merge_list(original, items, field.as_ref())?)),
                false => Some(patch.clone()),
            }
        }
        _ => stored(patch),
    };
    match value {
        Some(value) => merged.insert(name.to_owned(), value),
        None => merged.remove(name),
    };
    Ok(())
}

/// Checks that the type names the member: Kubernetes knows how to merge only what is a field of a struct.
fn declared<S: Shape>(shape: Option<&S>, name: &str) -> Result<(), PatchError> {
    let why = match shape.map_or(Member::Declared, |shape| shape.membership(name)) {
        Member::Declared => return Ok(()),
        Member::Free => "merging an object in json but data type is not struct, instead is: map".to_owned(),
        Member::Undeclared => format!("unable to find api field in struct for the json field {name:?}"),
    };
    Err(PatchError::Senseless(why))
}

/// Follows `$retainKeys`: members that are not named go, and the patch may set no others.
fn retain_keys(merged: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| malformed("$retainKeys must be a list of names"))?;
    let keys: BTreeSet<_> = keys.iter().filter_map(Value::as_str).collect();
    let retained = |name: &str| keys.contains(name);
    for (name, value) in patch.iter().filter(|(name, _)| *name != RETAIN_KEYS) {
        if !value.is_null() && matches!(name_of(name), Ok(Name::Plain(_))) && !retained(name) {
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
        let order = order.as_array().ok_or_else(|| not_a_list(order))?;
        let field = shape.and_then(|shape| shape.field(name));
        let strategy = field.as_ref().map(Shape::patch_strategy).unwrap_or_default();
        let [original, patched] = [as_list(merged.get(name))?, as_list(patch.get(name))?];
        declared(shape, name)?;
        sequence::check(patched.unwrap_or_default(), order, strategy.merge_key)?;
        ordered.push(name);
        let Some(items) = merged_list(original, patched, field.as_ref(), strategy)? else { continue };
        match (list::of_maps(original.unwrap_or_default(), patched.unwrap_or_default())?, strategy.merge_key) {
            (None, _) => return Err(PatchError::Senseless("no elements in any of the given slices".to_owned())),
            (Some(true), None) if !items.is_empty() => return Err(list::without_key()),
            (_, Some(key)) => list::keyed(&items, key)?,
            (Some(_), None) => {}
        }
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
        (Some(_), Some(patch)) => Ok(Some(patch.to_vec())),
        (None, Some(patch)) => Ok(Some(patch.iter().filter_map(stored).collect())),
    }
}

/// Follows `$deleteFromPrimitiveList`. Of what is not a list it makes what a patch without the directive would.
fn delete_from<S: Shape>(
    merged: &mut Map<String, Value>,
    name: &str,
    gone: &Value,
    shape: Option<&S>,
) -> Result<(), PatchError> {
    match (merged.get(name), gone) {
        (Some(Value::Array(items)), Value::Array(gone)) => {
            declared(shape, name)?;
            let field = shape.and_then(|shape| shape.field(name));
            let left = list::delete_from_list(items, gone, field.as_ref())?;
            merged.insert(name.to_owned(), Value::Array(left));
            Ok(())
        }
        (Some(value), gone) if gone.is_null() || same_type(value, gone) => merge_member(merged, name, gone, shape),
        _ => Ok(()),
    }
}

fn as_list(value: Option<&Value>) -> Result<Option<&[Value]>, PatchError> {
    value.map(|value| value.as_array().map(Vec::as_slice).ok_or_else(|| not_a_list(value))).transpose()
}
