//! Removing fields from values.

use serde_json::{Value, json};
use windlass_merge::typed::remove_items;
use windlass_merge::{FieldSet, OpenApiShape};

use crate::thing::{UNKNOWN, thing};

fn check_in(shape: Option<&OpenApiShape>, value: Value, fields: Value, expect: Value) {
    let set = FieldSet::from_fields_v1(&fields).expect("the fields can be read");
    assert_eq!(remove_items(&value, &set, shape), expect, "{fields} from {value}");
}

fn check(value: Value, fields: Value, expect: Value) {
    check_in(Some(thing()), json!({ "spec": value }), json!({ "f:spec": fields }), json!({ "spec": expect }));
}

#[test]
fn members_and_items_are_removed() {
    check(json!({"replicas": 1, "paused": true}), json!({"f:paused": {}}), json!({"replicas": 1}));
    check(json!({"replicas": 1}), json!({"f:absent": {}}), json!({"replicas": 1}));
    check(json!({"tags": ["a", "b", "a"]}), json!({"f:tags": {"v:\"a\"": {}}}), json!({"tags": ["b"]}));
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        json!({"f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"b\"}": {}}}),
        json!({"containers": [{"name": "a"}]}),
    );
    check(
        json!({"containers": [{"name": "a", "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]}]}),
        json!({"f:containers": {"k:{\"name\":\"a\"}": {"f:ports": {"k:{\"port\":1,\"protocol\":\"TCP\"}": {}}}}}),
        json!({"containers": [{"name": "a", "ports": [{"port": 1, "protocol": "UDP"}]}]}),
    );
}

#[test]
fn values_with_one_owner_are_removed_as_one() {
    check(json!({"selector": {"a": "1"}}), json!({"f:selector": {}}), json!({}));
    check(json!({"selector": {"a": "1"}}), json!({"f:selector": {"f:a": {}}}), json!({"selector": {"a": "1"}}));
    check(json!({"atoms": [1]}), json!({"f:atoms": {"v:1": {}}}), json!({"atoms": [1]}));
}

#[test]
fn what_loses_its_inside_stays_unless_it_goes_itself() {
    check(json!({"nested": {"a": 1}}), json!({"f:nested": {"f:a": {}}}), json!({"nested": {}}));
    check(json!({"nested": {"a": 1}}), json!({"f:nested": {".": {}, "f:a": {}}}), json!({}));
    check(json!({"tags": ["a"]}), json!({"f:tags": {"v:\"a\"": {}}}), json!({"tags": []}));
}

#[test]
fn without_a_type_members_are_removed() {
    check_in(
        UNKNOWN,
        json!({"a": {"b": 1, "c": 2}, "l": [1]}),
        json!({"f:a": {"f:b": {}}, "f:l": {}}),
        json!({"a": {"c": 2}}),
    );
    check_in(UNKNOWN, json!(5), json!({"f:a": {}}), json!(5));
}
