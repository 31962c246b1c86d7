//! The rules of the metadata that every object has.

use serde_json::{Map, Value};
use windlass_schema::FieldError;

use crate::object::Object;

/// How many bytes the annotations of an object may have together.
const ANNOTATION_BYTES_MAX: usize = 256 << 10;
const LABEL_VALUE_MAX: usize = 63;
const QUALIFIED_NAME_MAX: usize = 63;

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// What is wrong with the metadata of `object`, which replaces `old`.
pub(crate) fn problems(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(metadata) = object.metadata() else { return Vec::new() };
    let mut errors = Vec::new();
    labels(metadata, &mut errors);
    annotations(metadata, &mut errors);
    owners(metadata, &mut errors);
    finalizers(object, old, &mut errors);
    errors
}

fn members<'a>(metadata: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    metadata.get(field).and_then(Value::as_object).into_iter().flatten()
}

fn labels(metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    for (key, value) in members(metadata, "labels") {
        errors.extend(qualified_name(key).map(|why| FieldError::invalid("metadata.labels", key.as_str(), why)));
        let value = value.as_str().unwrap_or_default();
        if value.len() > LABEL_VALUE_MAX {
            let why = format!("must be no more than {LABEL_VALUE_MAX} bytes");
            errors.push(FieldError::invalid("metadata.labels", value, why));
        }
        if !value.is_empty() && !is_name_part(value) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
}

fn annotations(metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in members(metadata, "annotations") {
        let lower = key.to_lowercase();
        errors.extend(qualified_name(&lower).map(|why| FieldError::invalid("metadata.annotations", key.as_str(), why)));
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATION_BYTES_MAX as u64));
    }
}

fn owners(metadata: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let mut controllers = 0;
    for (index, owner) in owners.enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                let path = format!("metadata.ownerReferences[{index}].{field}");
                errors.push(FieldError::invalid(path, "", format!("{field} must not be empty")));
            }
        }
        controllers += usize::from(owner.get("controller").and_then(Value::as_bool).unwrap_or_default());
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        let all = metadata.get("ownerReferences").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("metadata.ownerReferences", all, why));
    }
}

/// Finalizers are names; an object on its way out gets no new ones.
fn finalizers(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let finalizers = object.finalizers();
    for finalizer in &finalizers {
        let why = qualified_name(finalizer);
        errors.extend(why.map(|why| FieldError::invalid("metadata.finalizers", *finalizer, why)));
    }
    let Some(old) = old.filter(|old| old.is_deleting()) else { return };
    let known = old.finalizers();
    let added: Vec<&str> = finalizers.into_iter().filter(|finalizer| !known.contains(finalizer)).collect();
    if !added.is_empty() {
        let listed: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            listed.join(", ")
        );
        errors.push(FieldError::forbidden("metadata.finalizers", why));
    }
}

/// What is wrong with a name such as `example.com/name`.
fn qualified_name(text: &str) -> Option<String> {
    let (prefix, name) = match text.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if prefix.is_some_and(|prefix| prefix.is_empty() || prefix.contains('/')) {
        return Some("prefix part must be non-empty".to_owned());
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > QUALIFIED_NAME_MAX {
        return Some(format!("name part must be no more than {QUALIFIED_NAME_MAX} bytes"));
    }
    (!is_name_part(name)).then(|| QUALIFIED_NAME.to_owned())
}

fn is_name_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(metadata: Value, fields: &[&str]) {
        let found = problems(&json!({"metadata": metadata}), None);
        assert_eq!(found.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), fields, "{found:?}");
    }

    #[test]
    fn labels_and_annotations_have_rules() {
        check(json!({"labels": {"a": "b", "example.com/x": ""}, "annotations": {"A/b": "any text"}}), &[]);
        check(json!({"labels": {"a": "b c"}}), &["metadata.labels"]);
        check(json!({"labels": {"a/": "b"}}), &["metadata.labels"]);
        check(json!({"labels": {"a": "x".repeat(64)}}), &["metadata.labels"]);
        check(json!({"annotations": {"a": "x".repeat(ANNOTATION_BYTES_MAX)}}), &["metadata.annotations"]);
    }

    #[test]
    fn an_object_has_one_controller() {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": true});
        check(json!({"ownerReferences": [owner]}), &[]);
        check(json!({"ownerReferences": [owner, owner]}), &["metadata.ownerReferences"]);
        check(
            json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]}),
            &["metadata.ownerReferences[0].uid"],
        );
    }

    #[test]
    fn an_object_on_its_way_out_gets_no_new_finalizers() {
        let old = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
        let new = json!({"metadata": {"finalizers": ["a/b", "c/d"]}});
        assert_eq!(problems(&new, Some(&old))[0].path, "metadata.finalizers");
        assert!(problems(&json!({"metadata": {}}), Some(&old)).is_empty());
    }
}
