//! The order of a merged list.

use std::collections::VecDeque;

use serde_json::Value;

use super::directive::{PATCH, malformed};
use crate::order;
use crate::patch::PatchError;

/// Brings merged items in order: those that the patch names as it names them, the others as they were, and these before
/// a patched item where they were before it.
pub(super) fn arrange(items: Vec<Value>, named: &[Value], original: &[Value], key: Option<&str>) -> Vec<Value> {
    let (mut patched, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| position(named, item, key).is_some());
    patched.sort_by_key(|item| position(named, item, key));
    others.sort_by_key(|item| position(original, item, key).unwrap_or(usize::MAX));
    let (mut patched, mut others) = (VecDeque::from(patched), VecDeque::from(others));
    let mut arranged = Vec::with_capacity(patched.len() + others.len());
    while let (Some(next_patched), Some(next_other)) = (patched.front(), others.front()) {
        let positions = (position(original, next_other, key), position(original, next_patched, key));
        let other_first = matches!(positions, (Some(other), Some(patched)) if other < patched);
        arranged.extend(if other_first { others.pop_front() } else { patched.pop_front() });
    }
    arranged.extend(patched);
    arranged.extend(others);
    arranged
}

/// Checks that the items of a patch come in the order that the patch itself asks for.
pub(super) fn check(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if order.is_empty() {
        return Ok(());
    }
    let mut left = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        if !left.any(|named| same(named, item, key)) {
            return Err(malformed(format!("the item {item} of the patch is not where $setElementOrder has it")));
        }
    }
    Ok(())
}

fn position(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    list.iter().position(|other| same(other, item, key))
}

fn same(left: &Value, right: &Value, key: Option<&str>) -> bool {
    match key {
        None => order::same(left, right),
        Some(key) => match (left.get(key), right.get(key)) {
            (Some(left), Some(right)) => order::same(left, right),
            _ => false,
        },
    }
}
