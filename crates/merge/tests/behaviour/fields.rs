//! Sets of fields: their algebra, and the fields of a value.

use serde_json::{Value, json};
use windlass_merge::{FieldSet, OpenApiShape, PathElement};

use crate::thing::{UNKNOWN, thing};

fn set(fields: Value) -> FieldSet {
    FieldSet::from_fields_v1(&fields).expect("the fields can be read")
}

fn check_of(value: Value, shape: Option<&OpenApiShape>, expect: &[&str]) {
    assert_eq!(FieldSet::of(&value, shape).to_string(), expect.join("\n"), "{value}");
}

#[test]
fn sets_are_combined() {
    let left = set(json!({"f:a": {}, "f:b": {".": {}, "f:x": {}, "f:y": {}}, "f:c": {"f:z": {}}}));
    let right = set(json!({"f:a": {"f:x": {}}, "f:b": {"f:x": {}}, "f:c": {}}));
    let rows = [
        (
            left.union(&right),
            json!({"f:a": {".": {}, "f:x": {}}, "f:b": {".": {}, "f:x": {}, "f:y": {}}, "f:c": {".": {}, "f:z": {}}}),
        ),
        (right.union(&left), left.union(&right).to_fields_v1()),
        (left.intersection(&right), json!({"f:b": {"f:x": {}}})),
        (left.difference(&right), json!({"f:a": {}, "f:b": {".": {}, "f:y": {}}, "f:c": {"f:z": {}}})),
        (right.difference(&left), json!({"f:a": {"f:x": {}}, "f:c": {}})),
        (left.recursive_difference(&right), json!({"f:a": {}, "f:b": {".": {}, "f:y": {}}})),
        (left.difference(&left), json!({})),
        (left.union(&FieldSet::new()), left.to_fields_v1()),
        (left.intersection(&FieldSet::new()), json!({})),
    ];
    for (index, (found, expect)) in rows.into_iter().enumerate() {
        assert_eq!(found, set(expect), "row {index}");
    }
}

#[test]
fn nothing_is_left_where_everything_was_taken() {
    let fields = set(json!({"f:a": {"f:b": {"f:c": {}}}}));
    assert!(!fields.is_empty());
    assert!(fields.difference(&fields).is_empty());
    assert_eq!(fields.intersection(&set(json!({"f:a": {}}))), FieldSet::new());
}

#[test]
fn membership_is_of_the_field_itself() {
    let fields = FieldSet::of_names(["metadata.labels.app", "spec"]);
    let path = |names: &[&str]| names.iter().map(|name| PathElement::field(*name)).collect::<Vec<_>>();
    assert!(fields.contains(&path(&["metadata", "labels", "app"])));
    assert!(fields.contains(&path(&["spec"])));
    assert!(!fields.contains(&path(&["metadata", "labels"])));
    assert!(!fields.contains(&path(&["spec", "replicas"])));
    assert!(!fields.contains(&[]));
    assert_eq!(fields.len(), 2);
    assert_eq!(fields.inside(&PathElement::field("metadata")).map(FieldSet::len), Some(1));
}

#[test]
fn declared_members_are_places_and_free_ones_are_fields() {
    check_of(json!({"spec": {"replicas": 1, "paused": true}}), Some(thing()), &[".spec.paused", ".spec.replicas"]);
    check_of(json!({"data": {"a": "1"}}), Some(thing()), &[".data.a"]);
    check_of(json!({"spec": {"nested": {"b": {"c": "x"}}}}), Some(thing()), &[".spec.nested.b.c"]);
    check_of(
        json!({"spec": {"any": {"x": {"y": 1}, "l": [{"z": 1}]}}}),
        Some(thing()),
        &[".spec.any.l", ".spec.any.x", ".spec.any.x.y"],
    );
}

#[test]
fn empty_and_null_members_are_fields() {
    check_of(json!({"data": {}, "spec": {"replicas": null}}), Some(thing()), &[".data", ".spec.replicas"]);
    check_of(json!({"spec": {"nested": null}}), Some(thing()), &[".spec.nested"]);
    // An empty list with items of their own says nothing.
    check_of(json!({"spec": {"tags": [], "atoms": []}}), Some(thing()), &[".spec.atoms"]);
}

#[test]
fn lists_are_taken_apart_by_their_type() {
    check_of(json!({"spec": {"tags": ["b", "a"]}}), Some(thing()), &[".spec.tags[=\"a\"]", ".spec.tags[=\"b\"]"]);
    check_of(json!({"spec": {"atoms": [1, 2]}}), Some(thing()), &[".spec.atoms"]);
    check_of(json!({"spec": {"selector": {"a": "b"}}}), Some(thing()), &[".spec.selector"]);
    check_of(
        json!({"spec": {"containers": [{"name": "w", "args": ["x"], "ports": [{"port": 80}]}]}}),
        Some(thing()),
        &[
            r#".spec.containers[name="w"]"#,
            r#".spec.containers[name="w"].args"#,
            r#".spec.containers[name="w"].name"#,
            r#".spec.containers[name="w"].ports[port=80,protocol="TCP"]"#,
            r#".spec.containers[name="w"].ports[port=80,protocol="TCP"].port"#,
        ],
    );
}

#[test]
fn duplicates_are_one_field_without_inside() {
    check_of(json!({"spec": {"tags": ["a", "a"]}}), Some(thing()), &[".spec.tags[=\"a\"]"]);
    check_of(
        json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "a"}, {"name": "b"}]}}),
        Some(thing()),
        &[r#".spec.containers[name="a"]"#, r#".spec.containers[name="b"]"#, r#".spec.containers[name="b"].name"#],
    );
}

#[test]
fn a_list_with_an_item_without_identity_is_one_field() {
    check_of(json!({"spec": {"containers": [{"image": "1"}]}}), Some(thing()), &[".spec.containers"]);
    check_of(json!({"spec": {"tags": [{"a": 1}]}}), Some(thing()), &[".spec.tags"]);
}

#[test]
fn without_a_type_maps_are_taken_apart_and_lists_are_not() {
    check_of(
        json!({"spec": {"a": {"b": 1}, "l": [{"name": "x"}], "e": {}}}),
        UNKNOWN,
        &[".spec", ".spec.a", ".spec.e", ".spec.l", ".spec.a.b"],
    );
}

#[test]
fn fields_follow_a_type_that_became_atomic() {
    let before = set(json!({"f:spec": {"f:selector": {".": {}, "f:a": {}}, "f:atoms": {"v:1": {}}, "f:replicas": {}}}));
    let after = set(json!({"f:spec": {"f:selector": {}, "f:atoms": {}, "f:replicas": {}}}));
    let mut fields = before.clone();
    fields.reconcile(UNKNOWN);
    assert_eq!(fields, before);
    fields.reconcile(Some(thing()));
    assert_eq!(fields, after);
    fields.reconcile(Some(thing()));
    assert_eq!(fields, after);
}
