//! Namespaces: they hold others, and go when those are gone.

use serde_json::{Value, json};

use crate::object::{Object, take_over};

/// What holds a namespace until its content is gone.
const CONTENT: &str = "kubernetes";
/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn prepare_create(object: &mut Value) {
    object["status"] = json!({ "phase": "Active" });
    let finalizers = object.pointer("/spec/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut finalizers: Vec<Value> = finalizers;
    if !finalizers.iter().any(|finalizer| finalizer == CONTENT) {
        finalizers.push(CONTENT.into());
    }
    object["spec"] = json!({ "finalizers": finalizers });
    label(object);
}

pub(super) fn prepare_update(object: &mut Value, old: &Value) {
    // Only `/finalize` changes what holds a namespace.
    take_over(object, old, "spec");
    label(object);
}

/// Whether the content is gone.
pub(super) fn is_finalized(object: &Value) -> bool {
    object.pointer("/spec/finalizers").and_then(Value::as_array).is_none_or(Vec::is_empty)
}

fn label(object: &mut Value) {
    let name = object.name().to_owned();
    let labels = object.metadata_mut().entry("labels").or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[NAME_LABEL] = name.into();
}
