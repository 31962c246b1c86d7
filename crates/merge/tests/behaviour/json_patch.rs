//! JSON patch: the standard, and the leniency on which clients rely.

use serde_json::{Value, json};
use windlass_merge::{PatchError, json_patch};

fn check(target: Value, patch: Value, expect: Value) {
    let mut patched = target.clone();
    json_patch(&mut patched, &patch).unwrap_or_else(|error| panic!("{patch} on {target}: {error}"));
    assert_eq!(patched, expect, "{patch} on {target}");
}

fn check_failure(target: Value, patch: Value, expect: &str) {
    let mut patched = target.clone();
    let error = json_patch(&mut patched, &patch).expect_err("the patch does not apply");
    let kind = match &error {
        PatchError::Malformed(_) => "malformed",
        PatchError::TooManyOperations { .. } => "too many",
        PatchError::TestFailed { .. } => "test failed",
        PatchError::Inapplicable(_) => "inapplicable",
        PatchError::Senseless(_) => "senseless",
    };
    assert_eq!(kind, expect, "{patch} on {target}: {error}");
    assert_eq!(patched, target, "a patch that fails changes nothing");
}

#[test]
fn operations_change_members_and_items() {
    let target = || json!({"a": {"b": 1}, "l": [1, 2, 3]});
    let rows = [
        (json!([]), target()),
        (json!([{"op": "add", "path": "/a/c", "value": 2}]), json!({"a": {"b": 1, "c": 2}, "l": [1, 2, 3]})),
        (json!([{"op": "add", "path": "/a/b", "value": 2}]), json!({"a": {"b": 2}, "l": [1, 2, 3]})),
        (json!([{"op": "add", "path": "/l/1", "value": 9}]), json!({"a": {"b": 1}, "l": [1, 9, 2, 3]})),
        (json!([{"op": "add", "path": "/l/3", "value": 9}]), json!({"a": {"b": 1}, "l": [1, 2, 3, 9]})),
        (json!([{"op": "add", "path": "/l/-", "value": 9}]), json!({"a": {"b": 1}, "l": [1, 2, 3, 9]})),
        (json!([{"op": "remove", "path": "/a"}]), json!({"l": [1, 2, 3]})),
        (json!([{"op": "remove", "path": "/l/0"}]), json!({"a": {"b": 1}, "l": [2, 3]})),
        (json!([{"op": "replace", "path": "/l/2", "value": null}]), json!({"a": {"b": 1}, "l": [1, 2, null]})),
        (json!([{"op": "replace", "path": "", "value": {"x": 1}}]), json!({"x": 1})),
        (json!([{"op": "move", "from": "/a/b", "path": "/c"}]), json!({"a": {}, "c": 1, "l": [1, 2, 3]})),
        (json!([{"op": "copy", "from": "/a", "path": "/l/0"}]), json!({"a": {"b": 1}, "l": [{"b": 1}, 1, 2, 3]})),
        (json!([{"op": "test", "path": "/a", "value": {"b": 1.0}}]), target()),
        (json!([{"op": "test", "path": "", "value": {"a": {"b": 1}, "l": [1, 2, 3]}}]), target()),
    ];
    for (patch, expect) in rows {
        check(target(), patch, expect);
    }
}

#[test]
fn names_are_unescaped() {
    check(
        json!({"metadata": {"annotations": {"a/b": "1", "m~n": "2"}}}),
        json!([{"op": "remove", "path": "/metadata/annotations/a~1b"}, {"op": "test", "path": "/metadata/annotations/m~0n", "value": "2"}]),
        json!({"metadata": {"annotations": {"m~n": "2"}}}),
    );
}

#[test]
fn leniency_that_clients_rely_on() {
    check(json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]), json!({"a": 1}));
    check(json!({}), json!([{"op": "test", "path": "/a", "value": null}]), json!({}));
    check(json!({}), json!([{"op": "test", "path": "/a"}]), json!({}));
    check(json!({"l": [1, 2]}), json!([{"op": "remove", "path": "/l/-1"}]), json!({"l": [1]}));
    check(json!({"l": [1, 2]}), json!([{"op": "add", "path": "/l/-1", "value": 3}]), json!({"l": [1, 2, 3]}));
}

#[test]
fn failures_say_whose_fault_it_is() {
    let target = || json!({"a": {"b": 1}, "l": [1]});
    let rows = [
        (json!({}), "malformed"),
        (json!([1]), "malformed"),
        (json!([{"path": "/a"}]), "malformed"),
        (json!([{"op": "merge", "path": "/a"}]), "malformed"),
        (json!([{"op": "add", "path": "/a"}]), "malformed"),
        (json!([{"op": "add", "path": "a", "value": 1}]), "malformed"),
        (json!([{"op": "move", "path": "/a"}]), "malformed"),
        (json!([{"op": "test", "path": "/a/b", "value": 2}]), "test failed"),
        (json!([{"op": "test", "path": "/x", "value": 1}]), "test failed"),
        (json!([{"op": "test", "path": "/x/y", "value": 1}]), "inapplicable"),
        (json!([{"op": "remove", "path": "/x"}]), "inapplicable"),
        (json!([{"op": "remove", "path": "/l/1"}]), "inapplicable"),
        (json!([{"op": "remove", "path": "/l/-2"}]), "inapplicable"),
        (json!([{"op": "add", "path": "/x/y", "value": 1}]), "inapplicable"),
        (json!([{"op": "add", "path": "/l/3", "value": 1}]), "inapplicable"),
        (json!([{"op": "add", "path": "/l/x", "value": 1}]), "inapplicable"),
        (json!([{"op": "add", "path": "/a/b/c", "value": 1}]), "inapplicable"),
        (json!([{"op": "add", "path": "", "value": {}}]), "inapplicable"),
        (json!([{"op": "move", "from": "/a", "path": "/a/b"}]), "inapplicable"),
        (json!([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}]), "inapplicable"),
    ];
    for (patch, expect) in rows {
        check_failure(target(), patch, expect);
    }
}

#[test]
fn patches_are_bounded() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    check(json!({"a": 1}), Value::Array(vec![operation.clone(); 10_000]), json!({"a": 1}));
    check_failure(json!({"a": 1}), Value::Array(vec![operation; 10_001]), "too many");
    let doubling: Vec<_> = (0..40).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/-"})).collect();
    check_failure(json!({"a": ["x"]}), Value::Array(doubling), "inapplicable");
    let deepening: Vec<_> = (0..200).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/a"})).collect();
    check_failure(json!({"a": {}}), Value::Array(deepening), "inapplicable");
}
