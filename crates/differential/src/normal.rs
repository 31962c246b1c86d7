//! What two servers may differ in, made equal; and the first thing in which they still differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::call::Answer;
use super::words::plain;

/// Given by each server as it likes.
const FREE: [&str; 15] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "selfLink",
    "continue",
    "token",
    "expirationTimestamp",
];

/// The label of what a server itself creates at its start. It has managed fields in Kubernetes and none in Windlass:
/// nobody applies to it, and leaving them out makes the start quicker.
const OWN: &str = "kubernetes.io/bootstrapping";

/// How two answers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where: a path without positions, so that alike differences fall together.
    pub(super) place: String,
    pub(super) kubernetes: String,
    pub(super) windlass: String,
}

/// The first difference of two answers, the graver ones first; fields with an `ignored` name are no difference.
pub(super) fn compare(kubernetes: &Answer, windlass: &Answer, ignored: &[String]) -> Option<Difference> {
    let differ = |place: &str, left: String, right: String| {
        (left != right).then(|| Difference { place: place.to_owned(), kubernetes: left, windlass: right })
    };
    let say = |answer: &Answer| format!("{} {}", answer.code, message(answer));
    if kubernetes.is_none() && (400..500).contains(&windlass.code) {
        return None; // It panicked.
    }
    if kubernetes.code != windlass.code {
        return differ("(code)", say(kubernetes), say(windlass));
    }
    let (left, right) = (normal(&kubernetes.body, ignored), normal(&windlass.body, ignored));
    if kubernetes.code >= 400 {
        return failure(&left, &right);
    }
    first(&left, &right, "").or_else(|| {
        let join = |answer: &Answer| {
            let mut warnings = answer.warnings.clone();
            warnings.sort();
            warnings.join(" | ")
        };
        differ("(warnings)", join(kubernetes), join(windlass))
    })
}

/// Whether Kubernetes answered a delete from an object that it never read: it does where the options of the delete take
/// away the last finalizer.
pub(super) fn is_blank_delete(answer: &Answer) -> bool {
    let refused = answer.code == 409 && message(answer).contains("ResourceVersion in precondition: ,");
    let nameless = answer.code == 200 && answer.body["kind"] != "Status" && answer.body["metadata"]["name"].is_null();
    refused || nameless
}

/// The events without those that tell the same as the one before.
pub(super) fn without_repeats(mut answer: Answer) -> Answer {
    if let Value::Array(events) = &mut answer.body {
        events.dedup_by(|one, before| {
            one["type"] == "MODIFIED" && normal(&one["object"], &[]) == normal(&before["object"], &[])
        });
    }
    answer
}

/// Errors: reason, then causes in any order, then the rest.
fn failure(left: &Value, right: &Value) -> Option<Difference> {
    first(&left["reason"], &right["reason"], "reason").or_else(|| {
        let (kubernetes, windlass) = (causes(left), causes(right));
        let only = |of: &BTreeSet<String>, other| of.difference(other).cloned().collect::<Vec<_>>().join("\n");
        if kubernetes != windlass {
            let place = kubernetes.symmetric_difference(&windlass).next().map_or("", |cause| field_of(cause));
            return Some(Difference {
                place: format!("causes of {}", without_positions(place)),
                kubernetes: only(&kubernetes, &windlass),
                windlass: only(&windlass, &kubernetes),
            });
        }
        let several = |status: &Value| status["details"]["causes"].as_array().is_some_and(|causes| causes.len() > 1);
        let several = several(left) || several(right);
        let rest = |status: &Value| {
            let mut status = status.clone();
            if several {
                status["message"] = Value::Null; // The same causes in another order, or one of them twice.
            }
            status["details"]["causes"] = Value::Null;
            status
        };
        first(&rest(left), &rest(right), "")
    })
}

/// The causes of an error, each once: some are found twice, by the check of an object and by that of its change.
fn causes(status: &Value) -> BTreeSet<String> {
    let of_patch = |cause: &Value| match cause["field"].as_str() {
        Some("patch") => "patch: ".to_owned(), // With all of the object, as Go prints it.
        Some(field) => format!("{field}: {} ({})", text(&cause["message"]), text(&cause["reason"])),
        None => format!(": {cause}"),
    };
    status["details"]["causes"].as_array().into_iter().flatten().map(of_patch).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn field_of(cause: &str) -> &str {
    cause.split_once(": ").map_or(cause, |(field, _)| field)
}

fn without_positions(place: &str) -> String {
    place.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

fn message(answer: &Answer) -> String {
    answer.body["message"].as_str().unwrap_or_default().to_owned()
}

/// The document without what servers are free in.
fn normal(value: &Value, ignored: &[String]) -> Value {
    match value {
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| {
                let value = bare(name, value);
                // The prose of columns comes with the documentation, which Windlass leaves out.
                let prose = name == "description" && map.contains_key("priority");
                let free = prose
                    || ignored.contains(name)
                    || (FREE.contains(&name.as_str()) && !value.is_null() && value != "");
                if name == "cells" {
                    return (name.clone(), cells(value));
                }
                if name == "managedFields" {
                    return (name.clone(), managers(&normal(value, ignored)));
                }
                (name.clone(), if free { Value::from("(free)") } else { normal(value, ignored) })
            };
            let is_own = map.get("labels").is_some_and(|labels| labels.get(OWN).is_some());
            // A controller of Kubernetes adds them up, which does not run here; in Windlass the server does.
            let is_sum = map.get("aggregationRule").is_some_and(|rule| !rule.is_null());
            let kept = |(name, _): &(&String, &Value)| match name.as_str() {
                "managedFields" => !is_own,
                "rules" => !is_sum,
                _ => true,
            };
            map.iter().filter(kept).map(field).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(|item| normal(item, ignored)).collect(),
        Value::String(text) => plain(text).into(),
        other => other.clone(),
    }
}

/// The managers of fields, in an order that does not depend on when they wrote.
fn managers(entries: &Value) -> Value {
    let mut entries = entries.as_array().cloned().unwrap_or_default();
    entries.sort_by_key(Value::to_string);
    entries.into()
}

/// Lists of metadata have `null` for no items in Kubernetes, which not every client can read.
fn bare<'v>(name: &str, value: &'v Value) -> &'v Value {
    static NONE: Value = Value::Array(Vec::new());
    if name == "items" && value.is_null() { &NONE } else { value }
}

/// How old an object is, as tables say it; it differs by what passed between two requests.
fn is_age(text: &str) -> bool {
    let is_amount = |letter: char| letter.is_ascii_digit() || matches!(letter, 'm' | 'h' | 's');
    text.ends_with(['s', 'm', 'h'])
        && text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(is_amount)
}

/// The cells of a row without the times in them.
fn cells(cells: &Value) -> Value {
    let cell = |cell: &Value| match cell {
        Value::String(text) if is_age(text) || is_time(text) => "(time)".into(),
        Value::String(text) => plain(text).into(),
        other => other.clone(),
    };
    cells.as_array().into_iter().flatten().map(cell).collect()
}

/// Whether this is the time at which an object was made, as some tables show it.
fn is_time(text: &str) -> bool {
    text.len() == 20 && text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T')
}

fn first(left: &Value, right: &Value, place: &str) -> Option<Difference> {
    match (left, right) {
        _ if left == right => None,
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            let inside = |name: &String| {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                first(a.get(name).unwrap_or(&Value::Null), b.get(name).unwrap_or(&Value::Null), &place)
            };
            // Two documents may differ in nothing but a field that is null in one and absent in the other.
            names.into_iter().find_map(inside)
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let place = format!("{place}[]");
            a.iter().zip(b).find_map(|(one, other)| first(one, other, &place))
        }
        _ => Some(Difference { place: place.to_owned(), kubernetes: left.to_string(), windlass: right.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(code: u16, body: Value) -> Answer {
        Answer { code, body, warnings: Vec::new() }
    }

    #[test]
    fn what_servers_are_free_in_is_no_difference() {
        let one = json!({"metadata": {"uid": "a", "name": "n"}, "m": "uid 11111111-2222-3333-4444-555555555555, x"});
        let two = json!({"metadata": {"uid": "b", "name": "n"}, "m": "uid 21111111-2222-3333-4444-555555555555, x"});
        assert_eq!(compare(&answer(200, one), &answer(200, two), &[]), None);
    }

    #[test]
    fn the_order_of_managers_is_no_difference() {
        let fields = |names: [&str; 2]| {
            let entry = |name: &str| json!({"manager": name, "time": name});
            json!({ "metadata": {"managedFields": names.map(entry) } })
        };
        assert_eq!(compare(&answer(200, fields(["a", "b"])), &answer(200, fields(["b", "a"])), &[]), None);
        assert!(compare(&answer(200, fields(["a", "b"])), &answer(200, fields(["a", "c"])), &[]).is_some());
    }

    #[test]
    fn a_panic_is_nothing_to_compare_a_refusal_with() {
        let silence = Answer::default();
        assert_eq!(compare(&silence, &answer(422, json!({})), &[]), None);
        assert!(compare(&silence, &answer(200, json!({})), &[]).is_some());
        assert!(compare(&answer(200, json!({})), &silence, &[]).is_some());
    }

    #[test]
    fn a_delete_that_looks_at_nothing_is_known() {
        let refused = "Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: 7";
        assert!(is_blank_delete(&answer(409, json!({ "kind": "Status", "message": refused }))));
        assert!(is_blank_delete(&answer(200, json!({ "kind": "Widget", "metadata": {} }))));
        let honest = "Precondition failed: ResourceVersion in precondition: 6, ResourceVersion in object meta: 7";
        assert!(!is_blank_delete(&answer(409, json!({ "kind": "Status", "message": honest }))));
        assert!(!is_blank_delete(&answer(200, json!({ "kind": "Status" }))));
    }

    #[test]
    fn the_first_difference_is_named_by_its_place() {
        let one = json!({"spec": {"list": [{"a": 1}, {"a": 2}]}});
        let two = json!({"spec": {"list": [{"a": 1}, {"a": 3}]}});
        let difference = compare(&answer(200, one.clone()), &answer(200, two), &[]).expect("they differ");
        assert_eq!(difference.place, "spec.list[].a");
        let difference = compare(&answer(200, one.clone()), &answer(409, one), &[]).expect("they differ");
        assert_eq!(difference.place, "(code)");
    }
}
