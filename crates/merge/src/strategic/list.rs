//! Merging lists.

use serde_json::{Map, Value};

use super::directive::{Patch, malformed, patch_of, stored};
use super::map::merge_map;
use super::sequence;
use crate::order;
use crate::patch::PatchError;
use crate::shape::Shape;

/// Merges a list by the merge key of its type, or as a set of scalars.
pub(super) fn merge_list<S: Shape>(
    original: &[Value],
    patch: &[Value],
    shape: Option<&S>,
) -> Result<Vec<Value>, PatchError> {
    let items = || original.iter().chain(patch);
    if items().any(Value::is_array) {
        return Err(PatchError::Inapplicable("lists of lists are not supported".to_owned()));
    }
    if !items().any(Value::is_object) {
        return Ok(merge_scalars(original, patch));
    }
    if !items().all(Value::is_object) {
        return Err(PatchError::Inapplicable("a list cannot have both objects and other items".to_owned()));
    }
    let key = shape.map(Shape::patch_strategy).unwrap_or_default().merge_key;
    let key = key.ok_or_else(|| PatchError::Inapplicable("cannot merge lists without a merge key".to_owned()))?;
    merge_maps(original, patch, key, shape.and_then(Shape::item).as_ref())
}

fn merge_scalars(original: &[Value], patch: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for item in original.iter().chain(patch) {
        if !merged.iter().any(|known| order::same(known, item)) {
            merged.push(item.clone());
        }
    }
    sequence::arrange(merged, patch, original, None)
}

fn merge_maps<S: Shape>(
    original: &[Value],
    patch: &[Value],
    key: &str,
    item_shape: Option<&S>,
) -> Result<Vec<Value>, PatchError> {
    let mut merged = original.to_vec();
    let mut patched = Vec::new();
    let mut replace = false;
    for item in patch.iter().filter_map(Value::as_object) {
        match patch_of(item)? {
            None => patched.push(item),
            Some(Patch::Replace) => replace = true,
            Some(Patch::Delete) => {
                let gone = key_value(item, key)?;
                merged.retain(|item| !item.get(key).is_some_and(|value| order::same(value, gone)));
            }
            Some(Patch::Merge) => return Err(malformed("$patch: merge is not supported for items of a list")),
        }
    }
    if replace {
        return Ok(patched.into_iter().filter_map(|item| stored(&Value::Object(item.clone()))).collect());
    }
    let remaining = merged.clone();
    for item in &patched {
        merge_item(&mut merged, item, key, item_shape)?;
    }
    let order: Vec<_> = patched.into_iter().map(|item| Value::Object(item.clone())).collect();
    Ok(sequence::arrange(merged, &order, &remaining, Some(key)))
}

fn merge_item<S: Shape>(
    merged: &mut Vec<Value>,
    patch: &Map<String, Value>,
    key: &str,
    shape: Option<&S>,
) -> Result<(), PatchError> {
    let identity = key_value(patch, key)?;
    let same = |item: &&mut Value| item.get(key).is_some_and(|value| order::same(value, identity));
    match merged.iter_mut().find(same) {
        Some(Value::Object(original)) => *original = merge_map(original, patch, shape)?,
        _ => merged.extend(stored(&Value::Object(patch.clone()))),
    }
    Ok(())
}

fn key_value<'i>(item: &'i Map<String, Value>, key: &str) -> Result<&'i Value, PatchError> {
    item.get(key).ok_or_else(|| {
        let item = Value::Object(item.clone());
        malformed(format!("map: {item} does not contain declared merge key: {key}"))
    })
}
