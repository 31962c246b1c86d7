//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Applies a JSON merge patch: members are merged, null removes, everything else replaces.
///
/// Null says "not there" inside of lists, too: there the standard would store it, and the API servers in the field do
/// not.
///
/// ```
/// use serde_json::json;
/// use windlass_merge::merge_patch;
///
/// let mut target = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
/// merge_patch(&mut target, &json!({"metadata": {"labels": {"tier": null, "env": "dev"}}}));
/// assert_eq!(target, json!({"metadata": {"labels": {"app": "web", "env": "dev"}}}));
/// ```
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = without_nulls(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            merge_patch(members.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| (name.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        _ => value.clone(),
    }
}
