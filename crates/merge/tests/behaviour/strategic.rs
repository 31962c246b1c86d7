//! Strategic merge patches of maps, and their directives.

use serde_json::{Value, json};
use windlass_merge::{PatchError, strategic};

use crate::thing::{UNKNOWN, thing};

fn check(original: Value, patch: Value, expect: Value) {
    let wrap = |value: Value| json!({ "spec": value });
    let patched = strategic::apply(&wrap(original.clone()), &wrap(patch.clone()), Some(thing()));
    let patched = patched.unwrap_or_else(|error| panic!("{patch} on {original}: {error}"));
    assert_eq!(patched, wrap(expect), "{patch} on {original}");
}

fn check_malformed(original: Value, patch: Value) {
    let wrap = |value: Value| json!({ "spec": value });
    let patched = strategic::apply(&wrap(original), &wrap(patch.clone()), Some(thing()));
    assert!(matches!(patched, Err(PatchError::Malformed(_))), "{patch}: {patched:?}");
}

#[test]
fn members_are_merged_and_null_removes() {
    check(json!({"replicas": 1}), json!({"paused": true}), json!({"replicas": 1, "paused": true}));
    check(json!({"replicas": 1}), json!({"replicas": 2}), json!({"replicas": 2}));
    check(json!({"replicas": 1, "paused": true}), json!({"paused": null, "atoms": null}), json!({"replicas": 1}));
    check(
        json!({"nested": {"a": 1}}),
        json!({"nested": {"b": {"c": "x"}}}),
        json!({"nested": {"a": 1, "b": {"c": "x"}}}),
    );
    check(json!({}), json!({"nested": {"a": null, "b": {"c": null}}}), json!({"nested": {"b": {}}}));
    check(json!({"nested": {"a": 1}}), json!({"nested": 5}), json!({"nested": 5}));
    check(json!({"nested": 5}), json!({"nested": {"a": 1}}), json!({"nested": {"a": 1}}));
}

#[test]
fn a_map_that_the_type_replaces_is_replaced() {
    check(json!({"fixed": {"a": 1}}), json!({"fixed": {"b": 2}}), json!({"fixed": {"b": 2}}));
}

#[test]
fn maps_are_replaced_or_emptied_by_directive() {
    check(json!({"nested": {"a": 1}}), json!({"nested": {"$patch": "replace", "b": {}}}), json!({"nested": {"b": {}}}));
    check(json!({"nested": {"a": 1}}), json!({"nested": {"$patch": "delete"}}), json!({"nested": {}}));
    // Where there is nothing to replace, Kubernetes takes the directive for a reason to leave the map out.
    check(json!({}), json!({"nested": {"$patch": "replace", "a": 1}}), json!({}));
    check(json!({}), json!({"nested": {"$patch": "delete"}}), json!({}));
    for (directive, told) in [(json!("drop"), "drop"), (json!("merge"), "merge"), (json!(1), "1")] {
        let patch = json!({"nested": {"$patch": directive, "b": [null, {"c": "d"}]}});
        let error = strategic::apply(&json!({"nested": {"a": 1}}), &patch, UNKNOWN).unwrap_err();
        let expect = format!("unknown patch type: {told} in map: map[$patch:{told} b:[<nil> map[c:d]]]");
        assert_eq!(error, PatchError::Senseless(expect));
    }
}

#[test]
fn retained_keys_are_all_that_is_left() {
    let live = || json!({"strategy": {"type": "RollingUpdate", "rolling": {"max": 1}}});
    check(
        live(),
        json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate"}}),
    );
    check(
        live(),
        json!({"strategy": {"$retainKeys": ["type", "rolling"], "rolling": {"max": 2}}}),
        json!({"strategy": {"type": "RollingUpdate", "rolling": {"max": 2}}}),
    );
    check(live(), json!({"strategy": {"$retainKeys": []}}), json!({"strategy": {}}));
    check(
        live(),
        json!({"strategy": {"$retainKeys": ["type"], "rolling": null}}),
        json!({"strategy": {"type": "RollingUpdate"}}),
    );
    // Nothing is there to be reduced: the directive stays, as a field that the type does not have.
    let new = json!({"strategy": {"$retainKeys": ["type"], "type": "x"}});
    check(json!({}), new.clone(), new);
    check_malformed(live(), json!({"strategy": {"$retainKeys": ["type"], "rolling": {"max": 2}}}));
    check_malformed(live(), json!({"strategy": {"$retainKeys": "type"}}));
}

#[test]
fn only_members_that_the_type_names_can_be_merged() {
    let refused = |original: Value, patch: Value| {
        let wrap = |value: Value| json!({ "spec": {"any": value} });
        let patched = strategic::apply(&wrap(original), &wrap(patch.clone()), Some(thing()));
        assert!(matches!(patched, Err(PatchError::Senseless(_))), "{patch}: {patched:?}");
    };
    refused(json!({"a": {"b": 1}}), json!({"a": {"b": 2}}));
    refused(json!({"a": [1]}), json!({"a": [2]}));
    check(json!({"any": {"a": 1}}), json!({"any": {"a": 2, "b": {"c": 1}}}), json!({"any": {"a": 2, "b": {"c": 1}}}));
    check(json!({"any": {"a": {"b": 1}}}), json!({"any": {"a": null}}), json!({"any": {}}));
}

#[test]
fn a_patch_need_not_say_the_same_twice() {
    let again = |patch: Value, once: Value, twice: Value| {
        let live = json!({"containers": [{"name": "a", "image": "1"}]});
        check(live, patch.clone(), once.clone());
        check(once, patch, twice);
    };
    // A new item keeps its nulls, and its key may be one; each time it is merged into, they go.
    again(
        json!({"containers": [{"name": "b", "image": null}]}),
        json!({"containers": [{"name": "b", "image": null}, {"name": "a", "image": "1"}]}),
        json!({"containers": [{"name": "b"}, {"name": "a", "image": "1"}]}),
    );
    // A map that is not there is not made by a patch that replaces it, one that is there is.
    check(json!({}), json!({"nested": {"$patch": "replace", "a": 1}}), json!({}));
    check(json!({"nested": {}}), json!({"nested": {"$patch": "replace", "a": 1}}), json!({"nested": {"a": 1}}));
}

#[test]
fn where_nothing_is_known_lists_are_replaced_and_maps_merged() {
    let patched = strategic::apply(
        &json!({"a": {"b": 1}, "l": [{"name": "x"}]}),
        &json!({"a": {"c": 2}, "l": [{"name": "y"}]}),
        UNKNOWN,
    );
    assert_eq!(patched, Ok(json!({"a": {"b": 1, "c": 2}, "l": [{"name": "y"}]})));
}

#[test]
fn a_patch_is_an_object() {
    assert!(matches!(strategic::apply(&json!({}), &json!([]), UNKNOWN), Err(PatchError::Malformed(_))));
    assert_eq!(strategic::apply(&json!(null), &json!({"a": 1}), UNKNOWN), Ok(json!({"a": 1})));
}
