//! Who owns what after creates, updates and patches.

use serde_json::json;

use crate::story::Story;

#[test]
fn the_creator_owns_what_it_sets_and_nothing_that_the_server_sets() {
    Story::new()
        .update("alice", json!({
            "metadata": {"labels": {"app": "x"}, "resourceVersion": "1", "generation": 1, "creationTimestamp": null},
            "spec": {"replicas": 1, "tags": ["a"]},
        }))
        .owned(&[concat!(
            "alice Update 01: .spec .metadata.labels .metadata.labels.app",
            " .spec.replicas .spec.tags .spec.tags[=\"a\"]",
        )]);
}

#[test]
fn a_name_that_is_not_given_is_unknown() {
    Story::new().update("", json!({"data": {"a": "1"}})).owned(&["unknown Update 01: .data .data.a"]);
}

#[test]
fn fields_follow_who_changes_them() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1, "paused": true}}))
        .update("bob", json!({"spec": {"replicas": 2}}))
        .owned(&["alice Update 01: .spec .spec.paused", "bob Update 02: .spec.replicas"])
        .update("bob", json!({"spec": {"paused": null}}))
        .owned(&["alice Update 01: .spec", "bob Update 02: .spec.replicas"])
        .update("alice", json!({"spec": {"replicas": 3}}))
        .owned(&["alice Update 04: .spec .spec.replicas"]);
}

#[test]
fn what_does_not_change_stays_with_its_owner_and_time() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}}))
        .update("bob", json!({"spec": {"replicas": 1}}))
        .update("alice", json!({"metadata": {"resourceVersion": "7", "generation": 2}}))
        .owned(&["alice Update 01: .spec .spec.replicas"]);
}

#[test]
fn a_manager_without_fields_goes() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}}))
        .update("bob", json!({"data": {"a": "1"}}))
        .update("alice", json!({"data": null}))
        .owned(&["alice Update 01: .spec .spec.replicas"]);
}

#[test]
fn appliers_lose_what_others_change() {
    Story::new()
        .apply("alice", json!({"spec": {"replicas": 1, "paused": true}}))
        .update("bob", json!({"spec": {"replicas": 2}}))
        .owned(&["alice Apply 01: .spec.paused", "bob Update 02: .spec.replicas"]);
}

#[test]
fn the_endpoint_decides_which_fields_can_be_owned() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}, "status": {"phase": "x"}}))
        .owned(&["alice Update 01: .spec .spec.replicas"])
        .update_at("alice", "status", json!({"spec": {"replicas": 9}, "status": {"phase": "y"}}))
        .owned(&["alice Update 01: .spec .spec.replicas", "alice Update/status 02: .status.phase"]);
}

#[test]
fn sent_entries_are_honoured_except_through_a_subresource() {
    let edited = json!({"metadata": {"managedFields": [{
        "manager": "carol", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }]}});
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}}))
        .update_at("alice", "status", edited.clone())
        .owned(&["alice Update 01: .spec .spec.replicas"])
        .update("alice", edited)
        .owned(&["carol Apply --: .spec.replicas"]);
}

#[test]
fn broken_entries_count_as_not_sent() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}}))
        .update("bob", json!({"metadata": {"managedFields": [{"manager": "x"}]}}))
        .update("bob", json!({"metadata": {"managedFields": null}}))
        .owned(&["alice Update 01: .spec .spec.replicas"]);
}

#[test]
fn entries_can_be_discarded() {
    for nothing in [json!([]), json!([{}])] {
        Story::new()
            .update("alice", json!({"spec": {"replicas": 1}}))
            .update("alice", json!({"metadata": {"managedFields": nothing}, "spec": {"replicas": 2}}))
            .has("/metadata/managedFields", json!(null))
            .has("/spec/replicas", json!(2));
    }
}

#[test]
fn an_object_without_entries_is_tracked_from_the_first_apply() {
    Story::new()
        .update("alice", json!({"spec": {"replicas": 1}}))
        .update("alice", json!({"metadata": {"managedFields": []}}))
        .update("bob", json!({"spec": {"replicas": 2}}))
        .owned(&[])
        .apply("carol", json!({"data": {"a": "1"}}))
        .owned(&["carol Apply 04: .data.a", "before-first-apply Update 04: .spec .spec.replicas"]);
}

#[test]
fn the_oldest_updates_are_kept_together_beyond_ten() {
    let mut story = Story::new();
    story.apply("applier", json!({"data": {"applied": "1"}}));
    for index in 0..10 {
        story.update(&format!("m{index}"), json!({"data": {format!("k{index}"): "1"}}));
    }
    story.has("/metadata/managedFields/1/manager", json!("m0"));
    story.update("m10", json!({"data": {"k10": "1"}}));
    story.has("/metadata/managedFields/1/manager", json!("ancient-changes"));
    story.has("/metadata/managedFields/1/time", json!("2026-01-01T00:03:00Z"));
    story.has("/metadata/managedFields/1/fieldsV1", json!({"f:data": {"f:k0": {}, "f:k1": {}}}));
    story.update("m11", json!({"data": {"k11": "1"}}));
    story.has("/metadata/managedFields/1/fieldsV1", json!({"f:data": {"f:k0": {}, "f:k1": {}, "f:k2": {}}}));
    story.has("/metadata/managedFields/0/manager", json!("applier"));
    let entries = story.live.as_ref().unwrap()["metadata"]["managedFields"].as_array().unwrap().len();
    assert_eq!(entries, 11, "one applier and ten updaters");
}

#[test]
fn without_a_type_ownership_is_by_member() {
    Story::without_shape()
        .update("alice", json!({"metadata": {"finalizers": ["f"]}, "spec": {"a": {"b": 1}, "l": [1]}}))
        .update("bob", json!({"spec": {"a": {"b": 2}, "l": [1, 2]}}))
        .owned(&[
            "alice Update 01: .spec .metadata.finalizers .metadata.finalizers[=\"f\"] .spec.a",
            "bob Update 02: .spec.l .spec.a.b",
        ]);
}

#[test]
fn an_object_with_items_without_identity_is_not_tracked() {
    Story::new()
        .update("alice", json!({"spec": {"containers": [{"image": "1"}]}}))
        .update("bob", json!({"spec": {"containers": [{"image": "2"}]}}))
        .owned(&[]);
}
