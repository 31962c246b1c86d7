//! Defaults must be values that the schema allows, without unknown fields.

use crate::field::{child, key};
use crate::{FieldError, Schema};

/// Checks the defaults of a schema and of all schemas in it.
pub(super) fn check(schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.default_value() {
        let path = child(path, "default");
        if !schema.prune_value(&mut default.clone()).is_empty() {
            errors.push(FieldError::invalid(path.clone(), default.clone(), "must not have unknown fields"));
        }
        // The messages name the value by its own path, which starts here.
        errors.extend(schema.validate(default, None, "").into_iter().map(|error| {
            let path = if error.path.is_empty() { path.clone() } else { child(&path, &error.path) };
            FieldError { path, ..error }
        }));
    }
    for (name, property) in schema.properties() {
        check(property, &key(&child(path, "properties"), name), errors);
    }
    if let Some(additional) = schema.additional_properties() {
        check(additional, &child(path, "additionalProperties"), errors);
    }
    if let Some(items) = schema.items() {
        check(items, &child(path, "items"), errors);
    }
}
