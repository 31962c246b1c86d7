//! Merging a configuration into a live value.

use serde_json::{Value, json};
use windlass_merge::typed::{check as problems, merge};

use crate::thing::{UNKNOWN, thing};

fn check(live: Value, applied: Value, expect: Value) {
    let wrap = |value: Value| json!({ "spec": value });
    let merged = merge(&wrap(live.clone()), &wrap(applied.clone()), Some(thing()));
    assert_eq!(merged, wrap(expect), "{applied} into {live}");
}

/// Lists of names, given as words: the order in which their items come is what is checked.
fn check_order(live: &str, applied: &str, expect: &str) {
    let list = |names: &str| json!({"tags": names.split_whitespace().collect::<Vec<_>>()});
    check(list(live), list(applied), list(expect));
}

fn check_problems(config: Value, expect: &[&str]) {
    let found: Vec<_> = problems(&json!({ "spec": config }), Some(thing())).iter().map(ToString::to_string).collect();
    assert_eq!(found, expect, "{config}");
}

#[test]
fn applied_members_win_and_others_stay() {
    check(json!({"replicas": 1, "paused": true}), json!({"replicas": 2}), json!({"replicas": 2, "paused": true}));
    check(json!({}), json!({"nested": {"a": 1}}), json!({"nested": {"a": 1}}));
    check(
        json!({"nested": {"a": 1}}),
        json!({"nested": {"b": {"c": "x"}}}),
        json!({"nested": {"a": 1, "b": {"c": "x"}}}),
    );
    check(json!({"nested": {"a": 1}}), json!({"nested": {}}), json!({"nested": {"a": 1}}));
    check(json!({"nested": {"a": 1}}), json!({"nested": null}), json!({"nested": {"a": 1}}));
    check(json!({"replicas": 1}), json!({"replicas": null}), json!({"replicas": null}));
}

#[test]
fn values_with_one_owner_are_replaced() {
    check(json!({"atoms": [1, 2]}), json!({"atoms": [3]}), json!({"atoms": [3]}));
    check(json!({"selector": {"a": "1"}}), json!({"selector": {"b": "2"}}), json!({"selector": {"b": "2"}}));
}

#[test]
fn items_are_merged_by_identity() {
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a", "args": ["x"]}]}),
        json!({"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}]}),
    );
    check(
        json!({"containers": [{"name": "a", "ports": [{"port": 80, "protocol": "TCP"}]}]}),
        json!({"containers": [{"name": "a", "ports": [{"port": 80, "hostPort": 8080}, {"port": 80, "protocol": "UDP"}]}]}),
        json!({"containers": [{"name": "a", "ports": [
            {"port": 80, "protocol": "TCP", "hostPort": 8080}, {"port": 80, "protocol": "UDP"},
        ]}]}),
    );
}

#[test]
fn the_applied_order_is_kept_and_live_items_stay_between() {
    check_order("a b c", "", "a b c");
    check_order("", "a b c", "a b c");
    check_order("a b c", "a b c", "a b c");
    check_order("a b c", "c b a", "c b a");
    check_order("a b c", "c a", "b c a");
    check_order("a b c", "d", "a b c d");
    check_order("a b c", "d a", "d a b c");
    check_order("a b c", "b d", "a b c d");
    check_order("a b c d", "d x a", "b c d x a");
    check_order("x a y b z", "b a", "x y b z a");
    check_order("x a y b z", "a n b", "x a y n b z");
    check_order("1 2 3 4 5", "4 2", "1 3 4 5 2");
}

#[test]
fn live_duplicates_give_way_when_they_are_applied() {
    check_order("a a b", "b", "a a b");
    check_order("a a b", "a", "a b");
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]}),
        json!({"containers": [{"name": "a", "args": ["x"]}]}),
        json!({"containers": [{"name": "a", "args": ["x"]}]}),
    );
}

#[test]
fn without_a_type_maps_are_merged_and_lists_replaced() {
    let merged = merge(&json!({"a": {"b": 1}, "l": [1]}), &json!({"a": {"c": 2}, "l": [2]}), UNKNOWN);
    assert_eq!(merged, json!({"a": {"b": 1, "c": 2}, "l": [2]}));
    assert_eq!(merge(&json!({"a": {"b": 1}}), &json!({"a": 5}), UNKNOWN), json!({"a": 5}));
    assert_eq!(merge(&json!({"a": 5}), &json!({"a": {"b": 1}}), UNKNOWN), json!({"a": {"b": 1}}));
}

#[test]
fn what_cannot_be_applied_is_named() {
    check_problems(json!({"replicas": 1, "any": {"x": 1}, "selector": {"x": "y"}}), &[]);
    check_problems(json!({"replica": 1}), &[".spec.replica: field not declared in schema"]);
    check_problems(json!({"tags": ["a", "b", "a"]}), &[".spec.tags: duplicate entries for key [=\"a\"]"]);
    check_problems(
        json!({"containers": [{"name": "a", "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}], "x": 1}]}),
        &[
            r#".spec.containers[name="a"].ports: duplicate entries for key [port=1,protocol="TCP"]"#,
            r#".spec.containers[name="a"].x: field not declared in schema"#,
        ],
    );
    check_problems(
        json!({"containers": [{"image": "1"}]}),
        &[
            ".spec.containers: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ],
    );
    check_problems(
        json!({"containers": ["a"]}),
        &[".spec.containers: element 0: associative list with keys may not have non-map elements"],
    );
    check_problems(
        json!({"tags": [null]}),
        &[".spec.tags: element 0: an item of a set must be a string, number or boolean"],
    );
}
