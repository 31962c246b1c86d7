//! Where two values differ, field by field, and how one gets what another has.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A step to a part of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Segment {
    /// The field of an object.
    Field(String),
    /// The item of a list that has these keys.
    Item(Map<String, Value>),
}

/// A part that differs; `None` is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Difference {
    pub(crate) path: Vec<Segment>,
    /// What is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    /// What the other has in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) other: Option<Value>,
}

/// A value without the members that are `null`: what a Rust type writes for what is not there.
pub(crate) fn without_nulls(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|_, value| !value.is_null());
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Where `value` differs from `other`. Lists are compared as wholes, unless `schema` says what tells their items apart.
pub(crate) fn between(value: &Value, other: &Value, schema: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut Vec::new(), Some(value), Some(other), schema, &mut found);
    found
}

fn compare(
    path: &mut Vec<Segment>,
    value: Option<&Value>,
    other: Option<&Value>,
    schema: &Value,
    found: &mut Vec<Difference>,
) {
    if value == other {
        return;
    }
    match (value, other) {
        (Some(Value::Object(value)), Some(Value::Object(other))) => {
            let more = other.keys().filter(|name| !value.contains_key(*name));
            for name in value.keys().chain(more) {
                path.push(Segment::Field(name.clone()));
                compare(path, value.get(name), other.get(name), field_schema(schema, name), found);
                path.pop();
            }
        }
        (Some(Value::Array(value)), Some(Value::Array(other))) if same_items(value, other, schema) => {
            for item in value {
                let keys = keys_of(item, schema).expect("items with keys were found in both");
                let other = other.iter().find(|other| keys_of(other, schema).as_ref() == Some(&keys));
                path.push(Segment::Item(keys));
                compare(path, Some(item), other, &schema["items"], found);
                path.pop();
            }
        }
        _ => found.push(Difference { path: path.clone(), value: value.cloned(), other: other.cloned() }),
    }
}

fn field_schema<'a>(schema: &'a Value, name: &str) -> &'a Value {
    match &schema["properties"][name] {
        Value::Null => &schema["additionalProperties"],
        schema => schema,
    }
}

/// Whether two lists have the same items, told apart by keys, in the same order.
fn same_items(value: &[Value], other: &[Value], schema: &Value) -> bool {
    let keys = |items: &[Value]| items.iter().map(|item| keys_of(item, schema)).collect::<Option<Vec<_>>>();
    keys(value).is_some_and(|of_value| Some(of_value) == keys(other))
}

/// What tells an item of a list apart, if anything does.
fn keys_of(item: &Value, schema: &Value) -> Option<Map<String, Value>> {
    let names = schema["x-kubernetes-list-map-keys"].as_array()?;
    names.iter().map(|name| Some((name.as_str()?.to_owned(), item.get(name.as_str()?)?.clone()))).collect()
}

/// Gives `target` what differs, wherever it still has what the other had: a later change of it is left.
pub(crate) fn restore(target: &mut Value, differences: &[Difference]) {
    for difference in differences {
        let Some((last, way)) = difference.path.split_last() else { continue };
        let Some(parent) = way.iter().try_fold(&mut *target, step) else { continue };
        match last {
            Segment::Field(name) => {
                let Some(fields) = parent.as_object_mut() else { continue };
                if fields.get(name) == difference.other.as_ref() {
                    set(fields, name, difference.value.as_ref());
                }
            }
            // Items are equal or differ in their fields: there is nothing to exchange as a whole.
            Segment::Item(_) => {}
        }
    }
}

/// Gives `target` what differs, whatever it has.
pub(crate) fn impose(target: &mut Value, differences: &[Difference]) {
    for difference in differences {
        let Some((Segment::Field(name), way)) = difference.path.split_last() else { continue };
        let mut parent = &mut *target;
        for segment in way {
            let Segment::Field(name) = segment else { continue };
            if !parent[name.as_str()].is_object() {
                parent[name.as_str()] = Value::Object(Map::new());
            }
            parent = &mut parent[name.as_str()];
        }
        if let Some(fields) = parent.as_object_mut() {
            set(fields, name, difference.value.as_ref());
        }
    }
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => drop(fields.insert(name.to_owned(), value.clone())),
        None => drop(fields.remove(name)),
    }
}

fn step<'a>(value: &'a mut Value, segment: &Segment) -> Option<&'a mut Value> {
    match segment {
        Segment::Field(name) => value.as_object_mut()?.get_mut(name),
        Segment::Item(keys) => {
            let is_it = |item: &&mut Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
            value.as_array_mut()?.iter_mut().find(is_it)
        }
    }
}

/// A path for people: `spec.backends[].weight`.
pub(crate) fn words(path: &[Segment]) -> String {
    let mut words = String::new();
    for segment in path {
        match segment {
            Segment::Field(name) if words.is_empty() => words.push_str(name),
            Segment::Field(name) => words.extend([".", name]),
            Segment::Item(_) => words.push_str("[]"),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        let item = json!({"properties": {"name": {}, "weight": {}}});
        json!({"properties": {
            "ports": {"items": item, "x-kubernetes-list-map-keys": ["name"]},
            "tags": {"items": {}},
        }})
    }

    /// What remains of `value` after the other had it, `change` was made there, and it came back.
    fn check(value: Value, other: Value, changed: Value, expected: Value) {
        let differences = between(&value, &other, &schema());
        let text = serde_json::to_string(&differences).unwrap();
        let mut target = changed.clone();
        restore(&mut target, &serde_json::from_str::<Vec<Difference>>(&text).unwrap());
        assert_eq!(target, expected, "{value} by {other} and {changed}: {text}");
    }

    #[test]
    fn what_was_lost_comes_back_unless_it_was_changed() {
        let same = json!({"a": 1});
        check(json!({"a": 1, "b": 2}), same.clone(), same.clone(), json!({"a": 1, "b": 2}));
        check(json!({"a": 1, "b": 2}), same.clone(), json!({"a": 3}), json!({"a": 3, "b": 2}));
        check(json!({"a": 90}), json!({"a": 60}), json!({"a": 60}), json!({"a": 90}));
        check(json!({"a": 90}), json!({"a": 60}), json!({"a": 120}), json!({"a": 120}));
        check(json!({}), json!({"a": 1}), json!({"a": 1}), json!({}));
        check(json!({"o": {"p": 1, "q": 2}}), json!({"o": {"p": 1}}), json!({}), json!({}));
    }

    #[test]
    fn items_with_keys_are_followed_and_other_lists_are_wholes() {
        let full = json!({"ports": [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}]});
        let bare = json!({"ports": [{"name": "a"}, {"name": "b"}]});
        let changed = json!({"ports": [{"name": "c"}, {"name": "b"}]});
        check(full.clone(), bare.clone(), bare.clone(), full.clone());
        check(full, bare, changed, json!({"ports": [{"name": "c"}, {"name": "b", "weight": 2}]}));
        check(json!({"tags": [1, 2]}), json!({"tags": [1]}), json!({"tags": [1]}), json!({"tags": [1, 2]}));
        check(json!({"tags": [1, 2]}), json!({"tags": [1]}), json!({"tags": [3]}), json!({"tags": [3]}));
    }

    #[test]
    fn what_is_imposed_makes_its_way() {
        let differences = between(&json!({"spec": {"a": {"b": 1}, "c": 2}}), &json!({"spec": {"d": 3}}), &Value::Null);
        let mut target = json!({"spec": {"d": 3, "e": 4}});
        impose(&mut target, &differences);
        assert_eq!(target, json!({"spec": {"a": {"b": 1}, "c": 2, "e": 4}}));
    }
}
