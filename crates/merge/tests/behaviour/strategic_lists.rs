//! Strategic merge patches of lists.

use serde_json::{Value, json};
use windlass_merge::{PatchError, strategic};

use crate::thing::thing;

fn apply(original: &Value, patch: &Value) -> Result<Value, PatchError> {
    let wrap = |value: &Value| json!({ "spec": value });
    strategic::apply(&wrap(original), &wrap(patch), Some(thing())).map(|patched| patched["spec"].clone())
}

fn check(original: Value, patch: Value, expect: Value) {
    let patched = apply(&original, &patch).unwrap_or_else(|error| panic!("{patch} on {original}: {error}"));
    assert_eq!(patched, expect, "{patch} on {original}");
}

/// Sets of scalars, given as words.
fn check_tags(original: &str, patch: Value, expect: &str) {
    let list = |names: &str| names.split_whitespace().map(Value::from).collect::<Value>();
    check(json!({"tags": list(original)}), patch, json!({"tags": list(expect)}));
}

#[test]
fn lists_with_one_owner_are_replaced() {
    check(json!({"atoms": [1, 2]}), json!({"atoms": [3]}), json!({"atoms": [3]}));
    check(json!({"atoms": [1]}), json!({"atoms": [{"$patch": "replace"}]}), json!({"atoms": [{"$patch": "replace"}]}));
    check(json!({}), json!({"atoms": [{"$patch": "replace"}, 1]}), json!({"atoms": [1]}));
}

#[test]
fn scalars_are_merged_as_a_set() {
    check_tags("a b", json!({"tags": ["c"]}), "c a b");
    check_tags("a b", json!({"tags": ["b", "c"]}), "a b c");
    check_tags("a b", json!({"tags": ["b", "a"]}), "b a");
    check_tags("a b", json!({"tags": []}), "a b");
    check_tags("", json!({"tags": ["a", "a"]}), "a");
    check_tags("a b c", json!({"$deleteFromPrimitiveList/tags": ["a", "c", "x"]}), "b");
    check_tags("a b", json!({"$deleteFromPrimitiveList/tags": ["a"], "tags": ["c"]}), "c b");
    check(json!({}), json!({"$deleteFromPrimitiveList/tags": ["a"]}), json!({}));
    check_tags("a b", json!({"$deleteFromPrimitiveList/tags": "a"}), "a b");
    check(json!({"tags": ["a"]}), json!({"$deleteFromPrimitiveList/tags": null}), json!({}));
    check(json!({"replicas": 1}), json!({"$deleteFromPrimitiveList/replicas": 2}), json!({"replicas": 2}));
}

#[test]
fn scalars_are_ordered_on_request() {
    check_tags("a b c", json!({"$setElementOrder/tags": ["c", "b", "a"]}), "c b a");
    check_tags("a b c", json!({"$setElementOrder/tags": ["c", "a"]}), "b c a");
    check_tags("a b", json!({"$setElementOrder/tags": ["b", "c", "a"], "tags": ["c"]}), "b c a");
    check(json!({}), json!({"$setElementOrder/tags": ["a", "b"], "tags": ["a", "b"]}), json!({"tags": ["a", "b"]}));
    check(json!({}), json!({"$setElementOrder/tags": ["a", "b"]}), json!({}));
    check_tags(
        "a b c",
        json!({"$setElementOrder/tags": ["c", "d", "b"], "$deleteFromPrimitiveList/tags": ["a"], "tags": ["d"]}),
        "c d b",
    );
}

#[test]
fn maps_are_merged_by_their_key() {
    let live = || json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]});
    check(
        live(),
        json!({"containers": [{"name": "b", "image": "2"}]}),
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
    );
    check(
        live(),
        json!({"containers": [{"name": "c"}]}),
        json!({"containers": [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}),
    );
    check(
        live(),
        json!({"containers": [{"name": "b", "$patch": "delete"}]}),
        json!({"containers": [{"name": "a", "image": "1"}]}),
    );
    check(
        live(),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"containers": [{"name": "c"}]}),
    );
    check(live(), json!({"containers": [{"$patch": "replace"}]}), json!({"containers": []}));
    check(
        live(),
        json!({"containers": [{"name": "a", "image": null, "env": [{"name": "X", "value": "1"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}),
    );
}

#[test]
fn maps_are_ordered_on_request() {
    let live = || json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    check(
        live(),
        json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
    );
    check(
        live(),
        json!({
            "$setElementOrder/containers": [{"name": "n"}, {"name": "a"}, {"name": "c"}],
            "containers": [{"name": "n", "image": "1"}, {"name": "b", "$patch": "delete"}],
        }),
        json!({"containers": [{"name": "n", "image": "1"}, {"name": "a"}, {"name": "c"}]}),
    );
}

#[test]
fn a_list_that_a_patch_creates_has_no_nulls_and_nothing_that_is_to_be_deleted() {
    let items = json!([{"name": "a", "env": [{"name": "X", "value": null}]}, {"name": "b", "$patch": "delete"}]);
    let expect = json!({"containers": [{"name": "a", "env": [{"name": "X"}]}]});
    check(json!({}), json!({"containers": items}), expect.clone());
    check(json!({}), json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [items[0]]}), expect);
}

#[test]
fn lists_that_cannot_be_merged_are_refused() {
    let live = json!({"containers": [{"name": "a"}], "tags": ["a"]});
    let senseless = [
        json!({"containers": [{"image": "1"}]}),
        json!({"containers": [{"$patch": "delete"}]}),
        json!({"containers": [{"name": "a", "$patch": "merge"}]}),
        json!({"containers": [{"$patch": "replace"}, {"image": "1"}]}),
        json!({"containers": ["a"]}),
        json!({"tags": [{"a": 1}]}),
        json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
        json!({"$setElementOrder/tags": ["b", "a"], "tags": ["a", "b"]}),
        json!({"$setElementOrder/tags": "a"}),
        json!({"$setElementOrder/tags": ["a"], "tags": null}),
        json!({"$setElementOrder/atoms": [], "atoms": []}),
        json!({"$setElementOrder/nobody": ["a"], "nobody": ["a"]}),
        json!({"$deleteFromPrimitiveList/tags": [1]}),
    ];
    for patch in senseless {
        let patched = apply(&live, &patch);
        assert!(matches!(patched, Err(PatchError::Senseless(_))), "{patch}: {patched:?}");
    }
    let nameless = apply(&json!({"containers": [{}]}), &json!({"containers": [{"name": "a"}]}));
    assert!(matches!(nameless, Err(PatchError::Senseless(_))), "{nameless:?}");
    let malformed = [json!({"$setElementOrder": ["a"]}), json!({"$deleteFromPrimitiveList": ["a"]})];
    for patch in malformed {
        let patched = apply(&live, &patch);
        assert!(matches!(patched, Err(PatchError::Malformed(_))), "{patch}: {patched:?}");
    }
    let nested = apply(&json!({"tags": [["a"]]}), &json!({"tags": [["a"]]}));
    assert!(matches!(nested, Err(PatchError::Inapplicable(_))), "{nested:?}");
}
