//! Comparing values by their type.

use serde_json::{Value, json};
use windlass_merge::typed::compare;
use windlass_merge::{FieldSet, OpenApiShape};

use crate::thing::{UNKNOWN, thing};

/// Expects `+ path` for what is added, `~ path` for what is modified, `- path` for what is removed.
fn check_in(shape: Option<&OpenApiShape>, old: &Value, new: &Value, expect: &[&str]) {
    let comparison = compare(old, new, shape);
    let lines = |sign: &str, fields: &FieldSet| -> Vec<String> {
        fields.to_string().lines().map(|path| format!("{sign} {path}")).collect()
    };
    let found = [lines("+", &comparison.added), lines("~", &comparison.modified), lines("-", &comparison.removed)];
    assert_eq!(found.concat(), expect, "{old} to {new}");
    assert_eq!(comparison.is_same(), expect.is_empty());
}

fn check(old: Value, new: Value, expect: &[&str]) {
    check_in(Some(thing()), &json!({ "spec": old }), &json!({ "spec": new }), expect);
}

#[test]
fn scalars_are_added_modified_and_removed() {
    check(json!({"replicas": 1}), json!({"replicas": 1}), &[]);
    check(json!({"replicas": 1}), json!({"replicas": 1.0}), &[]);
    check(json!({"replicas": 1}), json!({"replicas": 2}), &["~ .spec.replicas"]);
    check(json!({}), json!({"replicas": 2}), &["+ .spec.replicas"]);
    check(json!({"replicas": 2}), json!({}), &["- .spec.replicas"]);
    check(json!({"replicas": 2}), json!({"replicas": null}), &["~ .spec.replicas"]);
    check(json!({}), json!({"replicas": null}), &["+ .spec.replicas"]);
}

#[test]
fn what_comes_or_goes_does_so_with_what_is_inside() {
    check(json!({}), json!({"nested": {"a": 1}}), &["+ .spec.nested", "+ .spec.nested.a"]);
    check(json!({"nested": {"a": 1}}), json!({}), &["- .spec.nested", "- .spec.nested.a"]);
    check(json!({"nested": {"a": 1}}), json!({"nested": {}}), &["- .spec.nested.a"]);
    check(json!({"nested": {"a": 1}}), json!({"nested": null}), &["- .spec.nested.a"]);
    check(json!({"nested": {}}), json!({"nested": null}), &["~ .spec.nested"]);
    check(json!({}), json!({"nested": {}}), &["+ .spec.nested"]);
}

#[test]
fn values_with_one_owner_change_as_one() {
    check(json!({"atoms": [1, 2]}), json!({"atoms": [2, 1]}), &["~ .spec.atoms"]);
    check(json!({"selector": {"a": "1"}}), json!({"selector": {"a": "1", "b": "2"}}), &["~ .spec.selector"]);
    check(json!({}), json!({"selector": {"a": "1"}}), &["+ .spec.selector"]);
}

#[test]
fn items_are_compared_by_identity() {
    check(json!({"tags": ["a", "b"]}), json!({"tags": ["b", "a"]}), &[]);
    check(json!({"tags": ["a", "b"]}), json!({"tags": ["b", "c"]}), &["+ .spec.tags[=\"c\"]", "- .spec.tags[=\"a\"]"]);
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        json!({"containers": [{"name": "b"}, {"name": "a", "image": "2"}]}),
        &[r#"~ .spec.containers[name="a"].image"#],
    );
    check(
        json!({"containers": [{"name": "a", "ports": [{"port": 80}]}]}),
        json!({"containers": [{"name": "a", "ports": [{"port": 80, "protocol": "TCP"}]}]}),
        &[r#"+ .spec.containers[name="a"].ports[port=80,protocol="TCP"].protocol"#],
    );
    check(
        json!({"containers": []}),
        json!({"containers": [{"name": "a"}]}),
        &[r#"+ .spec.containers[name="a"]"#, r#"+ .spec.containers[name="a"].name"#],
    );
}

#[test]
fn duplicates_change_as_one_field() {
    let item = |image: &str| json!({"name": "a", "image": image});
    let one = json!({"containers": [item("1")]});
    let two = json!({"containers": [item("1"), item("2")]});
    let swapped = json!({"containers": [item("2"), item("1")]});
    check(two.clone(), two.clone(), &[]);
    check(two.clone(), swapped, &[r#"~ .spec.containers[name="a"]"#]);
    check(two.clone(), json!({"containers": []}), &[r#"- .spec.containers[name="a"]"#]);
    check(
        one.clone(),
        two.clone(),
        &[
            r#"+ .spec.containers[name="a"]"#,
            r#"- .spec.containers[name="a"]"#,
            r#"- .spec.containers[name="a"].image"#,
            r#"- .spec.containers[name="a"].name"#,
        ],
    );
    check(json!({"tags": ["a", "a"]}), json!({"tags": ["a"]}), &["+ .spec.tags[=\"a\"]", "- .spec.tags[=\"a\"]"]);
}

#[test]
fn without_a_type_lists_change_as_one() {
    check_in(UNKNOWN, &json!({"l": [{"name": "a"}]}), &json!({"l": [{"name": "b"}]}), &["~ .l"]);
    check_in(UNKNOWN, &json!({"a": {"b": 1}}), &json!({"a": {"b": 2, "c": 3}}), &["+ .a.c", "~ .a.b"]);
}

#[test]
fn a_value_that_changes_its_kind_changes_with_what_is_inside() {
    check_in(UNKNOWN, &json!({"a": {"b": 1}}), &json!({"a": 5}), &["~ .a", "- .a.b"]);
    check_in(UNKNOWN, &json!({"a": 5}), &json!({"a": {"b": 1}}), &["+ .a.b", "~ .a"]);
    check_in(UNKNOWN, &json!({"a": [1]}), &json!({"a": {"b": 1}}), &["+ .a.b", "~ .a"]);
}

#[test]
fn fields_can_be_left_out() {
    let comparison = compare(&json!({"a": 1, "b": {"c": 1}}), &json!({"a": 2, "b": {"c": 2}}), UNKNOWN);
    assert_eq!(comparison.without(&FieldSet::of_names(["b"])).modified.to_string(), ".a");
}
