//! Server-side apply: one manager.

use serde_json::json;

use crate::story::Story;

#[test]
fn an_object_is_created_by_applying_it() {
    Story::new()
        .apply("alice", json!({"metadata": {"labels": {"app": "x"}}, "spec": {"replicas": 1, "tags": ["a"]}}))
        .has("/spec/replicas", json!(1))
        .has("/metadata/name", json!("t"))
        .owned(&["alice Apply 01: .metadata.labels.app .spec.replicas .spec.tags[=\"a\"]"]);
}

#[test]
fn fields_that_are_no_longer_applied_are_removed() {
    Story::new()
        .apply("alice", json!({"data": {"a": "1", "b": "2"}, "spec": {"replicas": 1, "nested": {"a": 1}}}))
        .apply("alice", json!({"data": {"b": "2"}, "spec": {"replicas": 1}}))
        .has("/data", json!({"b": "2"}))
        .has("/spec", json!({"replicas": 1}))
        .apply("alice", json!({}))
        .has("/data", json!(null))
        .has("/spec", json!(null))
        .owned(&[]);
}

#[test]
fn items_that_are_no_longer_applied_are_removed() {
    Story::new()
        .apply(
            "alice",
            json!({"spec": {
                "tags": ["a", "b"],
                "containers": [{"name": "a", "image": "1", "ports": [{"port": 80}]}, {"name": "b", "image": "1"}],
            }}),
        )
        .apply("alice", json!({"spec": {"tags": ["b"], "containers": [{"name": "a", "image": "2"}]}}))
        .has("/spec", json!({"tags": ["b"], "containers": [{"name": "a", "image": "2"}]}));
}

#[test]
fn values_with_one_owner_are_replaced_and_removed_as_one() {
    Story::new()
        .apply("alice", json!({"spec": {"selector": {"a": "1"}, "atoms": [1, 2]}}))
        .apply("alice", json!({"spec": {"selector": {"b": "2"}}}))
        .has("/spec", json!({"selector": {"b": "2"}}))
        .owned(&["alice Apply 02: .spec.selector"]);
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let config = || json!({"spec": {"replicas": 1, "containers": [{"name": "a"}]}, "data": {"a": "1"}});
    let mut story = Story::new();
    story.apply("alice", config());
    let before = story.live.clone();
    story.apply("alice", config());
    assert_eq!(story.live, before);
}

#[test]
fn the_time_changes_with_the_content() {
    Story::new()
        .apply("alice", json!({"spec": {"replicas": 1}}))
        .apply("alice", json!({"spec": {"replicas": 1}}))
        .owned(&["alice Apply 01: .spec.replicas"])
        .apply("alice", json!({"spec": {"replicas": 2}}))
        .owned(&["alice Apply 03: .spec.replicas"]);
}

#[test]
fn an_empty_map_that_is_applied_is_there() {
    Story::new()
        .apply("alice", json!({"spec": {"nested": {"a": 1}}}))
        .apply("alice", json!({"spec": {"nested": {}}}))
        .has("/spec", json!({"nested": {}}))
        .owned(&["alice Apply 02: .spec.nested"]);
}

#[test]
fn keys_that_are_left_out_count_with_their_default() {
    Story::new()
        .apply("alice", json!({"spec": {"containers": [{"name": "a", "ports": [{"port": 80}]}]}}))
        .apply("alice", json!({"spec": {"containers": [{"name": "a", "ports": [{"port": 80, "protocol": "TCP"}]}]}}))
        .has("/spec/containers/0/ports", json!([{"port": 80, "protocol": "TCP"}]))
        .apply("alice", json!({"spec": {"containers": [{"name": "a", "ports": [{"port": 80, "protocol": "UDP"}]}]}}))
        .has("/spec/containers/0/ports", json!([{"port": 80, "protocol": "UDP"}]));
}

#[test]
fn without_a_type_members_are_applied_and_removed() {
    Story::without_shape()
        .apply("alice", json!({"spec": {"a": {"b": 1, "c": 2}, "l": [{"name": "x"}]}}))
        .apply("alice", json!({"spec": {"a": {"b": 1}}}))
        .has("/spec", json!({"a": {"b": 1}}))
        .owned(&["alice Apply 02: .spec .spec.a .spec.a.b"])
        .apply("alice", json!({}))
        .has("/spec", json!(null));
}

#[test]
fn fields_that_the_endpoint_resets_are_not_owned() {
    Story::new()
        .apply("alice", json!({"spec": {"replicas": 1}, "status": {"phase": "x"}}))
        .owned(&["alice Apply 01: .spec.replicas"]);
}

#[test]
fn a_configuration_that_does_not_fit_is_refused() {
    let mut story = Story::new();
    story.apply("alice", json!({"spec": {"replicas": 1}}));
    let rows = [
        (json!({"spec": {"replica": 1}}), ".spec.replica: field not declared in schema"),
        (json!({"metadata": {"label": {}}}), ".metadata.label: field not declared in schema"),
        (json!({"spec": {"tags": ["a", "a"]}}), "duplicate entries for key [=\"a\"]"),
        (json!({"metadata": {"finalizers": ["a", "a"]}}), ".metadata.finalizers: duplicate entries"),
        (json!({"spec": {"containers": [{"image": "1"}]}}), "omits all key fields"),
        (json!({"metadata": {"managedFields": []}}), "metadata.managedFields must be nil"),
        (json!({"apiVersion": "v2"}), "the configuration is of version \"v2\", the request of \"v1\""),
    ];
    for (config, expect) in rows {
        let refusal = story.refusal("bob", config.clone());
        assert!(refusal.contains(expect), "{config}: {refusal}");
    }
    story.owned(&["alice Apply 01: .spec.replicas"]);
}

#[test]
fn a_live_object_with_broken_entries_is_not_applied_to() {
    let mut story = Story::new();
    story.live = Some(json!({"metadata": {"uid": "u", "managedFields": [{"manager": "x"}]}}));
    let refusal = story.refusal("alice", json!({"data": {"a": "1"}}));
    assert!(refusal.contains("operation must be `Apply` or `Update`"), "{refusal}");
}
