//! Merging lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::directive::{Patch, go_text, patch_of, stored_items, stored_members};
use super::map::merge_map;
use super::sequence;
use crate::order::Ordered;
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
    let mut known = BTreeSet::new();
    let items = original.iter().chain(patch).filter(|item| known.insert(Ordered(item)));
    sequence::arrange(items.cloned().collect(), patch, original, None)
}

fn merge_maps<S: Shape>(
    original: &[Value],
    patch: &[Value],
    key: &str,
    item_shape: Option<&S>,
) -> Result<Vec<Value>, PatchError> {
    let mut gone = BTreeSet::new();
    let mut patched = Vec::new();
    let mut replace = false;
    for item in patch.iter().filter_map(Value::as_object) {
        match patch_of(item)? {
            None => patched.push(item),
            Some(Patch::Replace) => replace = true,
            Some(Patch::Delete) => {
                gone.insert(Ordered(key_value(item, key)?));
            }
            Some(Patch::Merge) => {
                let why = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Senseless(why.to_owned()));
            }
        }
    }
    if replace {
        return Ok(stored_items(patch));
    }
    let remaining = original.iter().filter(|item| !item.get(key).is_some_and(|value| gone.contains(&Ordered(value))));
    let remaining: Vec<_> = remaining.cloned().collect();
    let merged = merge_items(&remaining, &patched, key, item_shape)?;
    // What was there before must have the key as well, or nobody knows its place.
    merged.iter().filter_map(Value::as_object).try_for_each(|item| key_value(item, key).map(drop))?;
    let order: Vec<_> = patched.into_iter().map(|item| Value::Object(item.clone())).collect();
    Ok(sequence::arrange(merged, &order, &remaining, Some(key)))
}

/// Merges items into those of the same key, of which the first counts; others are appended.
fn merge_items<S: Shape>(
    original: &[Value],
    patch: &[&Map<String, Value>],
    key: &str,
    shape: Option<&S>,
) -> Result<Vec<Value>, PatchError> {
    let mut merged = original.to_vec();
    let mut positions: BTreeMap<Ordered<'_>, usize> = BTreeMap::new();
    for (position, item) in original.iter().enumerate() {
        if let Some(identity) = item.get(key) {
            positions.entry(Ordered(identity)).or_insert(position);
        }
    }
    for item in patch {
        let position = *positions.entry(Ordered(key_value(item, key)?)).or_insert(merged.len());
        match merged.get_mut(position) {
            Some(Value::Object(original)) => *original = merge_map(original, item, shape)?,
            _ => merged.push(Value::Object(stored_members(item))),
        }
    }
    Ok(merged)
}

fn key_value<'i>(item: &'i Map<String, Value>, key: &str) -> Result<&'i Value, PatchError> {
    item.get(key).ok_or_else(|| {
        let item = go_text(&Value::Object(item.clone()));
        PatchError::Senseless(format!("map: {item} does not contain declared merge key: {key}"))
    })
}
