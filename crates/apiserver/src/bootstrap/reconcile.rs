//! What a start does to objects that are there already.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::auth::rbac::{Rule, uncovered};
use crate::object::Object;

/// The annotation by which an administrator keeps an object from being repaired.
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Leaves the object alone.
pub(super) fn keep(_: &mut Value, _: &Value) {}

/// Replaces everything but the metadata and the status.
pub(super) fn replace_content(live: &mut Value, wanted: &Value) {
    let (Some(live), Some(wanted)) = (live.as_object_mut(), wanted.as_object()) else { return };
    for (field, value) in wanted {
        if !matches!(field.as_str(), "metadata" | "status") {
            live.insert(field.clone(), value.clone());
        }
    }
}

/// Adds the rules that a role misses.
pub(super) fn complete_role(live: &mut Value, wanted: &Value) {
    // The rules of a sum are those of its parts.
    if live.annotation(AUTO_UPDATE) == Some("false") || !wanted["aggregationRule"].is_null() {
        return;
    }
    let rules = |role: &Value| Option::<Vec<Rule>>::deserialize(&role["rules"]).ok().flatten().unwrap_or_default();
    let mut held = rules(live);
    let missing = uncovered(&held.iter().collect::<Vec<_>>(), &rules(wanted));
    if !missing.is_empty() {
        held.extend(missing);
        live["rules"] = json!(held);
    }
}

/// Adds the subjects that a binding misses.
pub(super) fn complete_binding(live: &mut Value, wanted: &Value) {
    if live.annotation(AUTO_UPDATE) == Some("false") {
        return;
    }
    if live["roleRef"] != wanted["roleRef"] {
        live["roleRef"] = wanted["roleRef"].clone();
    }
    let mut subjects = live["subjects"].as_array().cloned().unwrap_or_default();
    let present: BTreeSet<String> = subjects.iter().map(identity).collect();
    let wanted = wanted["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let missing: Vec<Value> = wanted.iter().filter(|subject| !present.contains(&identity(subject))).cloned().collect();
    if !missing.is_empty() {
        subjects.extend(missing);
        live["subjects"] = Value::Array(subjects);
    }
}

fn identity(subject: &Value) -> String {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    format!("{}/{}/{}", text("kind"), text("namespace"), text("name"))
}
