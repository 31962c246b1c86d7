//! Secrets: plain values are stored encoded.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::remove;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_values_are_stored_encoded() {
        let mut secret = json!({"data": {"a": "eA=="}, "stringData": {"b": "y", "a": "z"}});
        encode_string_data(&mut secret);
        assert_eq!(secret, json!({"data": {"a": "eg==", "b": "eQ=="}}));
    }
}
