//! ConfigMaps and Secrets: keys, sizes, and what must not change any more.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use windlass_schema::FieldError;

use super::{immutable, remove};

/// How many bytes the values may have together.
const BYTES_MAX: usize = 1 << 20;
const KEY_LENGTH_MAX: usize = 253;

/// Moves the plain values of a Secret to those that are stored.
pub(super) fn encode_string_data(object: &mut Value) {
    let Some(plain) = object.get("stringData").and_then(Value::as_object).cloned() else { return };
    remove(object, "stringData");
    if !object["data"].is_object() {
        object["data"] = json!({});
    }
    for (key, value) in plain {
        object["data"][key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for field in ["data", "binaryData"] {
        for (key, value) in members(object, field) {
            errors
                .extend(key_problem(key).map(|why| FieldError::invalid(format!("{field}[{key}]"), key.as_str(), why)));
            bytes += value.as_str().map_or(0, str::len);
        }
    }
    if bytes > BYTES_MAX {
        errors.push(FieldError::too_long("data", BYTES_MAX as u64));
    }
    let Some(old) = old else { return errors };
    if old.get("immutable") == Some(&Value::Bool(true)) {
        if object.get("immutable") != Some(&Value::Bool(true)) {
            errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for field in ["data", "binaryData"] {
            if object.get(field) != old.get(field) {
                errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if object["kind"] == "Secret" {
        immutable(object, old, "/type", &mut errors);
    }
    errors
}

fn members<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(field).and_then(Value::as_object).into_iter().flatten()
}

fn key_problem(key: &str) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if key.len() > KEY_LENGTH_MAX {
        return Some(format!("must be no more than {KEY_LENGTH_MAX} characters"));
    }
    if matches!(key, "." | "..") || key.starts_with("../") {
        return Some(format!("must not be '{key}'"));
    }
    (key.is_empty() || !key.bytes().all(inner)).then(|| {
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', \
         regex used for validation is '[-._a-zA-Z0-9]+')"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_stored_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "y", "a": "z"}});
        encode_string_data(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "eg==", "b": "eQ=="}}));
    }

    #[test]
    fn keys_are_names_of_files() {
        assert!(validate(&json!({"data": {"a.b-c_D": ""}}), None).is_empty());
        assert_eq!(validate(&json!({"data": {"a/b": ""}}), None).len(), 1);
        assert_eq!(validate(&json!({"data": {"": ""}}), None).len(), 1);
        assert_eq!(validate(&json!({"data": {"a": "x".repeat(BYTES_MAX + 1)}}), None)[0].path, "data");
    }

    #[test]
    fn what_is_immutable_stays() {
        let old = json!({"immutable": true, "data": {"a": "1"}});
        assert_eq!(validate(&json!({"immutable": true, "data": {"a": "2"}}), Some(&old))[0].path, "data");
        assert_eq!(validate(&json!({"data": {"a": "1"}}), Some(&old))[0].path, "immutable");
        assert!(validate(&old, Some(&old)).is_empty());
    }
}
