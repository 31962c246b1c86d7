//! The order of a merged list.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::directive::{PATCH, go_text};
use crate::order::{self, Ordered};
use crate::patch::PatchError;

/// The positions of items by what identifies them: the member `key`, or the item itself.
pub(super) struct Positions<'a> {
    positions: BTreeMap<Ordered<'a>, usize>,
    key: Option<&'a str>,
}

impl<'a> Positions<'a> {
    pub(super) fn of(list: &'a [Value], key: Option<&'a str>) -> Self {
        let mut positions = BTreeMap::new();
        for (position, item) in list.iter().enumerate() {
            if let Some(identity) = identity(item, key) {
                positions.entry(Ordered(identity)).or_insert(position);
            }
        }
        Self { positions, key }
    }

    pub(super) fn find(&self, item: &Value) -> Option<usize> {
        self.positions.get(&Ordered(identity(item, self.key)?)).copied()
    }
}

/// Brings merged items in order: those that the patch names as it names them, the others as they were, and these before
/// a patched item where they were before it.
pub(super) fn arrange(items: Vec<Value>, named: &[Value], original: &[Value], key: Option<&str>) -> Vec<Value> {
    let (named, original) = (Positions::of(named, key), Positions::of(original, key));
    let (mut patched, mut others): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| named.find(item).is_some());
    patched.sort_by_cached_key(|item| named.find(item));
    others.sort_by_cached_key(|item| original.find(item).unwrap_or(usize::MAX));
    let (mut patched, mut others) = (VecDeque::from(patched), VecDeque::from(others));
    let mut arranged = Vec::with_capacity(patched.len() + others.len());
    while let (Some(next_patched), Some(next_other)) = (patched.front(), others.front()) {
        let positions = (original.find(next_other), original.find(next_patched));
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
            let [patch, order] = [patch, order].map(|list| go_text(&Value::Array(list.to_vec())));
            let why = format!("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n");
            return Err(PatchError::Senseless(why));
        }
    }
    Ok(())
}

fn same(left: &Value, right: &Value, key: Option<&str>) -> bool {
    matches!((identity(left, key), identity(right, key)), (Some(left), Some(right)) if order::same(left, right))
}

fn identity<'a>(item: &'a Value, key: Option<&str>) -> Option<&'a Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}
