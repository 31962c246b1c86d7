//! The directives of a strategic merge patch.

use serde_json::{Map, Value};

use crate::patch::PatchError;

/// On a map or an item: what is done with it instead of merging.
pub(super) const PATCH: &str = "$patch";
/// On a map: the members that it may have.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
/// Before the name of a list: items that are removed from it.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
/// Before the name of a list: the order of its items.
const SET_ORDER: &str = "$setElementOrder";

/// What `$patch` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patch {
    Replace,
    Delete,
    Merge,
}

/// A member of a patch by what its name asks for.
pub(super) enum Name<'a> {
    Plain(&'a str),
    DeleteFrom(&'a str),
    OrderOf(&'a str),
}

pub(super) fn patch_of(members: &Map<String, Value>) -> Result<Option<Patch>, PatchError> {
    match members.get(PATCH) {
        None => Ok(None),
        Some(Value::String(directive)) if directive == "replace" => Ok(Some(Patch::Replace)),
        Some(Value::String(directive)) if directive == "delete" => Ok(Some(Patch::Delete)),
        Some(Value::String(directive)) if directive == "merge" => Ok(Some(Patch::Merge)),
        Some(_) => Err(unknown(members)),
    }
}

/// The error for a `$patch` that means nothing in this map.
pub(super) fn unknown(members: &Map<String, Value>) -> PatchError {
    let directive = members.get(PATCH).map(go_text).unwrap_or_default();
    let members = go_text(&Value::Object(members.clone()));
    PatchError::Senseless(format!("unknown patch type: {directive} in map: {members}"))
}

/// A value as Go prints it, which is how clients know these errors.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}:{}", go_text(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

pub(super) fn name_of(name: &str) -> Result<Name<'_>, PatchError> {
    let list = |prefix: &str| match name.strip_prefix(prefix) {
        Some(rest) => match rest.strip_prefix('/') {
            Some(list) => Ok(Some(list)),
            None => Err(malformed(format!("{name:?} must be {prefix}/ and the name of a list"))),
        },
        None => Ok(None),
    };
    if let Some(list) = list(DELETE_FROM_LIST)? {
        return Ok(Name::DeleteFrom(list));
    }
    if let Some(list) = list(SET_ORDER)? {
        return Ok(Name::OrderOf(list));
    }
    Ok(Name::Plain(name))
}

/// A value as it is stored where nothing is to merge with: without nulls in maps, and without maps that have a `$patch`,
/// whatever that asks for. `None` if it is such a map itself.
pub(super) fn stored(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(kept.filter_map(|(name, value)| Some((name.clone(), stored(value)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.iter().filter_map(stored).collect())),
        _ => Some(value.clone()),
    }
}

/// The error for something that stands where a list must.
pub(super) fn not_a_list(value: &Value) -> PatchError {
    PatchError::Senseless(format!("expected a []interface {{}}, but received a {}", go_type(value)))
}

/// The type of a value, as Go names it.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Whether two values are of one type, as merging sees it.
pub(super) fn same_type(left: &Value, right: &Value) -> bool {
    go_type(left) == go_type(right)
}

pub(super) fn malformed(reason: impl Into<String>) -> PatchError {
    PatchError::Malformed(reason.into())
}
