//! JSON merge patch: the examples of RFC 7386, and nulls inside of lists.

use serde_json::{Value, json};
use windlass_merge::merge_patch;

fn check(target: Value, patch: Value, expect: Value) {
    let mut patched = target.clone();
    merge_patch(&mut patched, &patch);
    assert_eq!(patched, expect, "{patch} on {target}");
}

#[test]
fn examples_of_the_standard() {
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"}));
    check(json!({"a": "b"}), json!({"a": null}), json!({}));
    check(json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"}));
    check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
    check(json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}}));
    check(json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]}));
    check(json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"]));
    check(json!({"a": "b"}), json!(["c"]), json!(["c"]));
    check(json!({"a": "foo"}), json!(null), json!(null));
    check(json!({"a": "foo"}), json!("bar"), json!("bar"));
    check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
    check(json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"}));
    check(json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}}));
}

#[test]
fn null_is_absence_inside_of_lists_too() {
    check(json!({}), json!({"a": [{"b": null, "c": 1}, null]}), json!({"a": [{"c": 1}, null]}));
}
