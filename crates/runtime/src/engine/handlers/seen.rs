//! What a decision takes from a resource: not its contents, but whether they are what they were.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::decide::{Cause, Entry};
use super::progress::{Mark, VALUE_BYTES_MAX};

/// How much of a hash is kept: enough that two specs of one object never share it.
const HASH_BYTES: usize = 12;

/// A resource as handlers are decided for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// The hash of the spec.
    pub(crate) spec: String,
    /// The chosen parts, by the id of the handler.
    pub(crate) parts: BTreeMap<String, Part>,
    pub(crate) created_at: Timestamp,
    pub(crate) is_deleting: bool,
    pub(crate) has_finalizer: bool,
    /// A hash of the value of the switch that asks for another try.
    pub(crate) force: Option<String>,
}

/// A chosen part of a spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) hash: String,
    /// The part itself, if it is to be remembered.
    pub(crate) value: Option<Value>,
}

impl Part {
    /// The part of the object with this uid. One that is sealed, or long, is remembered by its hash alone.
    pub(crate) fn new(uid: &str, value: Value, sealed: bool) -> Self {
        let hash = hash(uid, &value);
        let keep = !sealed && value.to_string().len() <= VALUE_BYTES_MAX;
        Self { hash, value: keep.then_some(value) }
    }
}

impl Seen {
    /// The present state of what a handler looks at.
    pub(crate) fn mark(&self, entry: &Entry) -> Mark {
        let part = self.parts.get(&entry.id).filter(|_| entry.cause == Cause::Field);
        let (hash, value) = match part {
            Some(part) => (part.hash.clone(), part.value.clone()),
            None => (self.spec.clone(), None),
        };
        Mark { generation: self.generation, hash, value }
    }
}

/// A hash of a value in one object: it says nothing of the same value elsewhere.
pub(crate) fn hash(uid: &str, value: &Value) -> String {
    let mut digest = Sha256::new();
    digest.update(uid.as_bytes());
    feed(&mut digest, value);
    digest.finalize()[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Feeds a value in a form that does not depend on the order of its fields.
fn feed(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            digest.update(b"{");
            for (name, value) in fields {
                digest.update(Value::from(name.as_str()).to_string());
                feed(digest, value);
            }
            digest.update(b"}");
        }
        Value::Array(items) => {
            digest.update(b"[");
            for item in items {
                feed(digest, item);
                digest.update(b",");
            }
            digest.update(b"]");
        }
        plain => digest.update(plain.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hash_is_of_the_content_in_one_object() {
        let text: Value = serde_json::from_str(r#"{"b": [1, {"c": null}], "a": "x"}"#).unwrap();
        assert_eq!(hash("u", &text), hash("u", &json!({"a": "x", "b": [1, {"c": null}]})));
        assert_eq!(hash("u", &text).len(), 2 * HASH_BYTES);
        assert_ne!(hash("u", &text), hash("v", &text));
        for (one, other) in [
            (json!(["a", "b"]), json!(["ab"])),
            (json!([[], 1]), json!([[1]])),
            (json!({"a": 1}), json!({"a": "1"})),
            (json!({"a": {}, "b": 1}), json!({"a": {"b": 1}})),
        ] {
            assert_ne!(hash("u", &one), hash("u", &other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_sealed_or_long_is_not_remembered() {
        assert_eq!(Part::new("u", json!(5), false).value, Some(json!(5)));
        assert_eq!(Part::new("u", json!("hunter2"), true).value, None);
        assert_eq!(Part::new("u", "x".repeat(VALUE_BYTES_MAX).into(), false).value, None);
    }
}
