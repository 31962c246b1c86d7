//! The conditions of a definition.

use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_merge::managed::{self, Manager, Write};
use windlass_schema::builtin;

use super::definition::{Condition, GROUP, RESOURCE};
use crate::object::timestamp;

/// Notes that the server itself wrote the status.
pub(super) fn own(before: &Value, after: &mut Value, now: Timestamp) {
    let kind = builtin().find(GROUP, "v1", RESOURCE).expect("definitions are a built-in kind");
    let api_version = kind.api_version();
    let manager = Manager { name: "kube-apiserver", api_version: &api_version, subresource: "status", time: now };
    if let Err(error) = managed::update(&Write::new(manager, Some(&kind.schema)), Some(before), after) {
        tracing::warn!(%error, "the owner of the status of a definition was not noted");
    }
}

/// Writes a condition; its time changes with its status only.
pub(super) fn set(definition: &mut Value, mut condition: Condition, now: Timestamp) {
    let status =
        definition.as_object_mut().expect("a definition is a map").entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    let list = status.as_object_mut().expect("made a map above").entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let list = list.as_array_mut().expect("made a list above");
    let known = list.iter().position(|known| known.get("type").and_then(Value::as_str) == Some(&condition.r#type));
    let old = known.map(|index| &list[index]);
    let text = |member: &str| old.and_then(|old| old.get(member)).and_then(Value::as_str).unwrap_or_default();
    condition.last_transition_time =
        if text("status") == condition.status { text("lastTransitionTime").to_owned() } else { timestamp(now) };
    let value = serde_json::to_value(condition).expect("a condition is made of texts");
    match known {
        Some(index) => list[index] = value,
        None => list.push(value),
    }
}
