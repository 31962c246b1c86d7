//! Merging lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::directive::{Patch, go_text, patch_of, same_type};
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
    match of_maps(original, patch)? {
        None => Ok(original.to_vec()),
        Some(false) => Ok(merge_scalars(original, patch)),
        Some(true) => merge_keyed(original, patch, shape),
    }
}

/// Removes scalars from a list. A list of maps is merged with the other, which is what Kubernetes makes of such a patch.
pub(super) fn delete_from_list<S: Shape>(
    original: &[Value],
    gone: &[Value],
    shape: Option<&S>,
) -> Result<Vec<Value>, PatchError> {
    match of_maps(original, gone)? {
        Some(true) => merge_keyed(original, gone, shape),
        _ => {
            let gone: BTreeSet<_> = gone.iter().map(Ordered).collect();
            Ok(original.iter().filter(|item| !gone.contains(&Ordered(item))).cloned().collect())
        }
    }
}

/// Whether the items of two lists are maps, or none if there are no items.
///
/// # Errors
/// They are not of one type, or are lists themselves.
pub(super) fn of_maps(original: &[Value], patch: &[Value]) -> Result<Option<bool>, PatchError> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else { return Ok(None) };
    if first.is_array() {
        return Err(PatchError::Inapplicable("lists of lists are not supported".to_owned()));
    }
    if first.is_null() || !items.all(|item| same_type(first, item)) {
        let lists = [original, patch].map(|list| go_text(&Value::Array(list.to_vec()))).join(" ");
        return Err(PatchError::Senseless(format!("list element types are not identical: [{lists}]")));
    }
    Ok(Some(first.is_object()))
}

fn merge_keyed<S: Shape>(original: &[Value], patch: &[Value], shape: Option<&S>) -> Result<Vec<Value>, PatchError> {
    let key = shape.map(Shape::patch_strategy).unwrap_or_default().merge_key;
    merge_maps(original, patch, key.ok_or_else(without_key)?, shape.and_then(Shape::item).as_ref())
}

/// The error for maps that nothing tells apart.
pub(super) fn without_key() -> PatchError {
    PatchError::Senseless("cannot merge lists without merge key for struct".to_owned())
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
        let items: Vec<_> = patched.into_iter().map(|item| Value::Object(item.clone())).collect();
        keyed(&items, key)?;
        return Ok(items);
    }
    let remaining = original.iter().filter(|item| !item.get(key).is_some_and(|value| gone.contains(&Ordered(value))));
    let remaining: Vec<_> = remaining.cloned().collect();
    let merged = merge_items(&remaining, &patched, key, item_shape)?;
    // What was there before must have the key as well, or nobody knows its place.
    keyed(&merged, key)?;
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
            _ => merged.push(Value::Object((*item).clone())),
        }
    }
    Ok(merged)
}

/// Checks that all items have the key.
pub(super) fn keyed(items: &[Value], key: &str) -> Result<(), PatchError> {
    items.iter().filter_map(Value::as_object).try_for_each(|item| key_value(item, key).map(drop))
}

fn key_value<'i>(item: &'i Map<String, Value>, key: &str) -> Result<&'i Value, PatchError> {
    item.get(key).ok_or_else(|| {
        let item = go_text(&Value::Object(item.clone()));
        PatchError::Senseless(format!("map: {item} does not contain declared merge key: {key}"))
    })
}
