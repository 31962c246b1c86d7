//! The FieldsV1 format, in which sets of fields are kept in `metadata.managedFields`.

use serde_json::{Map, Value};

use super::FieldSet;
use crate::path::{PathElement, PathElementError};

/// Says that a field with things inside is itself in the set.
const SELF: &str = ".";

/// Why a JSON value is not a set of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// Every level of FieldsV1 is a JSON object.
    #[error("fieldsV1: expected an object, got {0}")]
    NotObject(String),
    /// A key is not a path element.
    #[error("fieldsV1: {0}")]
    Element(#[from] PathElementError),
}

impl FieldSet {
    /// Reads the set from its FieldsV1 form.
    ///
    /// # Errors
    /// A level is not an object or a key is not a path element. Elements of an unknown kind are skipped.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        read(fields).map(|(set, _)| set)
    }

    /// Writes the set in its FieldsV1 form.
    pub fn to_fields_v1(&self) -> Value {
        let fields = self.fields.iter().map(|field| {
            let mut inside = field.inside.to_fields_v1();
            if field.is_member && !field.inside.is_empty() {
                inside[SELF] = Value::Object(Map::new());
            }
            (field.element.to_wire(), inside)
        });
        Value::Object(fields.collect())
    }
}

/// Reads what is inside a field, and whether the field itself is meant.
fn read(fields: &Value) -> Result<(FieldSet, bool), FieldsError> {
    let empty = Map::new();
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        other => return Err(FieldsError::NotObject(other.to_string())),
    };
    let mut set = FieldSet::new();
    for (key, inside) in fields.iter().filter(|(key, _)| *key != SELF) {
        let Some(element) = PathElement::from_wire(key)? else { continue };
        let (child, is_member) = read(inside)?;
        set.put(|| element, is_member, child);
    }
    let is_member = set.is_empty() || fields.contains_key(SELF);
    Ok((set, is_member))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(fields: Value, paths: &[&str]) {
        let set = FieldSet::from_fields_v1(&fields).expect("the fields can be read");
        assert_eq!(set.to_string(), paths.join("\n"));
        assert_eq!(set.len(), paths.len());
        assert_eq!(FieldSet::from_fields_v1(&set.to_fields_v1()), Ok(set));
    }

    #[test]
    fn fields_are_read_as_paths() {
        check(json!({}), &[]);
        check(json!(null), &[]);
        check(json!({"f:spec": {}}), &[".spec"]);
        check(json!({"f:spec": {"f:replicas": {}}}), &[".spec.replicas"]);
        check(json!({"f:labels": {".": {}, "f:app": {}}}), &[".labels", ".labels.app"]);
        check(json!({"f:finalizers": {"v:\"a\"": {}, "v:\"b\"": {}}}), &[".finalizers[=\"a\"]", ".finalizers[=\"b\"]"]);
        check(
            json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}),
            &[".ports[port=80,protocol=\"TCP\"]", ".ports[port=80,protocol=\"TCP\"].port"],
        );
        check(json!({"f:list": {"i:0": {}, "i:10": {}}}), &[".list[0]", ".list[10]"]);
        check(json!({"x:future": {"f:a": {}}, "f:b": {}}), &[".b"]);
        check(json!({"f:a": {"x:future": {}}}), &[".a"]);
        check(json!({"f:a": null}), &[".a"]);
    }

    #[test]
    fn the_form_on_the_wire_is_the_usual_one() {
        let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}});
        assert_eq!(FieldSet::from_fields_v1(&fields).unwrap().to_fields_v1(), fields);
    }

    #[test]
    fn broken_fields_are_refused() {
        for fields in [json!([]), json!("f:a"), json!({"f:a": 1}), json!({"spec": {}}), json!({"k:[]": {}})] {
            assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields} was read");
        }
    }
}
