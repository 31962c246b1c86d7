//! Which fields a write changed.

use serde_json::{Map, Value};
use windlass_core::names;

/// More changed fields than this are not looked at.
const CHANGES_MAX: usize = 16;
/// Fields that every write changes.
const ALWAYS: [&str; 3] = ["metadata.resourceVersion", "metadata.generation", "metadata.managedFields"];

/// A field and its values before and after.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldChange {
    pub(crate) path: String,
    pub(super) from: Value,
    pub(super) to: Value,
}

/// The fields in which two states of an object differ.
pub(crate) fn changed(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    compare("", before, after, &mut changes);
    changes
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    let is_expected =
        ALWAYS.contains(&path) || path.strip_prefix("metadata.annotations.").is_some_and(names::is_progress);
    if before == after || changes.len() >= CHANGES_MAX || is_expected {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => compare_maps(path, before, after, changes),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(&format!("{path}[{index}]"), before, after, changes);
            }
        }
        _ => changes.push(FieldChange { path: path.to_owned(), from: before.clone(), to: after.clone() }),
    }
}

fn compare_maps(path: &str, before: &Map<String, Value>, after: &Map<String, Value>, changes: &mut Vec<FieldChange>) {
    let added = after.keys().filter(|key| !before.contains_key(*key));
    for key in before.keys().chain(added) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let (before, after) = (before.get(key).unwrap_or(&Value::Null), after.get(key).unwrap_or(&Value::Null));
        compare(&path, before, after, changes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_innermost_fields_that_differ_are_named() {
        let before =
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"n": 1, "list": [{"a": 1}, {"a": 2}], "x": 1}});
        let after =
            json!({"metadata": {"resourceVersion": "2"}, "spec": {"n": 2, "list": [{"a": 1}, {"a": 3}], "y": 1}});
        let paths: Vec<_> = changed(&before, &after).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["spec.list[1].a", "spec.n", "spec.x", "spec.y"]);
    }
}
