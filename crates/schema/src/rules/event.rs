//! Events, in their old form and in their new one, which is stricter.

use serde_json::Value;

use super::cursor::{At, required};
use crate::{FieldError, names};

const TEXT_MAX: usize = 128;
const NOTE_MAX: usize = 1024;

/// The fields that stay: their names in `events.k8s.io`, and those by which errors call them.
const KEPT: [(&str, &str); 12] = [
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingInstance", "reportingInstance"),
];

/// `is_new` says by which of the two groups the event came.
pub(super) fn event(event: &At<'_>, old: Option<&At<'_>>, is_new: bool, errors: &mut Vec<FieldError>) {
    belongs(event, is_new, errors);
    if !event.member("eventTime").is_absent() {
        reported(event, is_new, errors);
    }
    match old {
        _ if !is_new => {}
        Some(old) => kept(event, old, errors),
        None => strict(event, errors),
    }
}

/// Events are where their object is; those of objects without a namespace live in the default one.
fn belongs(event: &At<'_>, is_new: bool, errors: &mut Vec<FieldError>) {
    let namespace = event.at("metadata.namespace").text();
    let regarding = event.member(if is_new { "regarding" } else { "involvedObject" }).member("namespace");
    let is_old_form = event.member("eventTime").is_absent();
    let fits = match (regarding.text(), is_old_form) {
        ("", true) => matches!(namespace, "" | "default"),
        ("", false) => matches!(namespace, "default" | "kube-system"),
        (other, true) => other == namespace,
        (_, false) => true,
    };
    if !fits {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", regarding.text(), detail));
    }
}

/// Who reports, and what was done.
fn reported(event: &At<'_>, is_new: bool, errors: &mut Vec<FieldError>) {
    let controller = event.member(if is_new { "reportingController" } else { "reportingComponent" });
    required(&controller, errors);
    let wrong = names::qualified(controller.text());
    errors.extend(
        wrong.into_iter().map(|detail| FieldError::invalid(controller.path.clone(), controller.text(), detail)),
    );
    for name in ["reportingInstance", "action", "reason"] {
        let text = event.member(name);
        required(&text, errors);
        short(&text, name, TEXT_MAX, errors);
    }
    short(&event.member(if is_new { "note" } else { "message" }), "message", NOTE_MAX, errors);
}

fn short(text: &At<'_>, name: &str, max: usize, errors: &mut Vec<FieldError>) {
    if text.text().len() > max {
        errors.push(FieldError::invalid(name, "", format!("can have at most {max} characters")));
    }
}

/// What a new event of the new form must and may not say.
fn strict(event: &At<'_>, errors: &mut Vec<FieldError>) {
    series(event, errors);
    required(&event.member("eventTime"), errors);
    let r#type = event.member("type").text();
    if !matches!(r#type, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {type}", type = r#type)));
    }
    for (name, told) in &KEPT[3..7] {
        let old_form = event.member(name);
        let is_set = match name {
            &"deprecatedCount" => old_form.int().is_some_and(|count| count != 0),
            _ => !old_form.is_absent(),
        };
        if is_set {
            errors.push(FieldError::invalid(*told, "", "needs to be unset"));
        }
    }
}

fn series(event: &At<'_>, errors: &mut Vec<FieldError>) {
    let series = event.member("series");
    if series.value.is_null() {
        return;
    }
    if series.member("count").int().unwrap_or_default() < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    required(&series.member("lastObservedTime"), errors);
}

fn kept(event: &At<'_>, old: &At<'_>, errors: &mut Vec<FieldError>) {
    if event.member("series").value != old.member("series").value {
        series(event, errors);
    }
    for (name, told) in KEPT.into_iter().chain([("reportingController", "reportingController")]) {
        let (new, old) = (event.member(name), old.member(name));
        let is_same = new.value == old.value || (new.is_absent() && old.is_absent());
        if !is_same {
            // A time that is not there is shown as such, a text that is not there as an empty one.
            let is_time = name.ends_with("Time") || name.ends_with("Timestamp");
            let shown = if new.value.is_null() && !is_time { Value::from("") } else { new.value.clone() };
            errors.push(FieldError::invalid(told, shown, "field is immutable"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::check_update;

    fn with(change: Value) -> Value {
        let mut event = json!({
            "metadata": {"name": "a", "namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c", "reportingInstance": "c-1", "action": "Binding",
            "reason": "Started", "type": "Normal", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        });
        for (name, value) in change.as_object().unwrap() {
            event[name] = value.clone();
        }
        event
    }

    #[test]
    fn new_events_say_who_did_what() {
        let check = |change: Value, expect: &[&str]| {
            check_update(("events.k8s.io", "v1", "Event"), None, with(change), expect);
        };
        check(json!({}), &[]);
        check(json!({"action": ""}), &["action: Required value"]);
        check(json!({"type": "Odd"}), &["type: Invalid value: \"\": has invalid value: Odd"]);
        check(json!({"deprecatedCount": 2}), &["count: Invalid value: \"\": needs to be unset"]);
        check(
            json!({"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}),
            &["series.count: Invalid value: \"\": should be at least 2"],
        );
    }

    #[test]
    fn what_happened_stays() {
        let check = |change: Value, expect: &[&str]| {
            check_update(("events.k8s.io", "v1", "Event"), Some(with(json!({}))), with(change), expect);
        };
        check(json!({"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}), &[]);
        check(json!({"eventTime": null}), &["eventTime: Invalid value: null: field is immutable"]);
        check(json!({"note": "more"}), &["message: Invalid value: \"more\": field is immutable"]);
    }
}
