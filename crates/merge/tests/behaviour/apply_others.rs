//! Server-side apply: several managers, conflicts, and what kubectl applied from the client.

use serde_json::{Value, json};

use crate::story::Story;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[test]
fn changing_what_others_own_is_a_conflict() {
    let mut story = Story::new();
    story.apply("alice", json!({"spec": {"replicas": 1, "paused": true}, "data": {"a": "1"}}));
    story.update_at("bob", "status", json!({"metadata": {"labels": {"l": "1"}}}));
    assert_eq!(
        story.refusal("carol", json!({"spec": {"replicas": 2}})),
        "Apply failed with 1 conflict: conflict with \"alice\": .spec.replicas",
    );
    assert_eq!(
        story
            .refusal("carol", json!({"metadata": {"labels": {"l": "2"}}, "spec": {"replicas": 2}, "data": {"a": "2"}})),
        "Apply failed with 3 conflicts: conflicts with \"alice\":\n- .data.a\n- .spec.replicas\n\
         conflicts with \"bob\" with subresource \"status\" using v1:\n- .metadata.labels.l",
    );
    story.has("/spec/replicas", json!(1));
}

#[test]
fn force_takes_the_fields() {
    Story::new()
        .apply("alice", json!({"spec": {"replicas": 1, "paused": true}}))
        .force("bob", json!({"spec": {"replicas": 2}}))
        .has("/spec", json!({"replicas": 2, "paused": true}))
        .owned(&["alice Apply 01: .spec.paused", "bob Apply 02: .spec.replicas"])
        .force("bob", json!({"spec": {"replicas": 2, "paused": false}}))
        .owned(&["bob Apply 03: .spec.paused .spec.replicas"]);
}

#[test]
fn equal_values_are_owned_together_and_stay_for_the_last_owner() {
    Story::new()
        .apply("alice", json!({"spec": {"replicas": 1, "tags": ["a"]}}))
        .apply("bob", json!({"spec": {"replicas": 1, "tags": ["a", "b"]}}))
        .owned(&[
            "alice Apply 01: .spec.replicas .spec.tags[=\"a\"]",
            "bob Apply 02: .spec.replicas .spec.tags[=\"a\"] .spec.tags[=\"b\"]",
        ])
        .apply("bob", json!({}))
        .has("/spec", json!({"replicas": 1, "tags": ["a"]}))
        .owned(&["alice Apply 01: .spec.replicas .spec.tags[=\"a\"]"])
        .apply("alice", json!({}))
        .has("/spec", json!(null));
}

#[test]
fn an_updater_keeps_what_it_set() {
    Story::new()
        .apply("alice", json!({"data": {"a": "1"}}))
        .update("bob", json!({"data": {"b": "2"}}))
        .apply("alice", json!({}))
        .has("/data", json!({"b": "2"}));
}

#[test]
fn an_item_stays_while_somebody_owns_something_in_it() {
    Story::new()
        .apply("alice", json!({"spec": {"containers": [{"name": "a", "image": "1"}]}}))
        .apply("bob", json!({"spec": {"containers": [{"name": "a", "args": ["x"]}]}}))
        .apply("alice", json!({}))
        .has("/spec/containers", json!([{"name": "a", "args": ["x"]}]))
        .apply("bob", json!({}))
        .has("/spec", json!(null));
}

#[test]
fn fields_that_nobody_owns_go_with_their_item() {
    let mut story = Story::new();
    story.apply("alice", json!({"spec": {"containers": [{"name": "a"}]}}));
    story.live.as_mut().unwrap()["spec"]["containers"][0]["image"] = json!("defaulted");
    story.apply("alice", json!({"spec": {"containers": [{"name": "b"}]}}));
    story.has("/spec/containers", json!([{"name": "b"}]));
}

#[test]
fn fields_that_nobody_owns_stay_in_a_map_that_stays() {
    let mut story = Story::new();
    story.apply("alice", json!({"spec": {"replicas": 1, "nested": {"a": 1}}}));
    story.live.as_mut().unwrap()["spec"]["paused"] = json!(false);
    story.apply("alice", json!({"spec": {"replicas": 1}}));
    story.has("/spec", json!({"replicas": 1, "paused": false}));
}

#[test]
fn the_same_name_through_a_subresource_is_another_manager() {
    let mut story = Story::new();
    story.apply("alice", json!({"spec": {"replicas": 1}, "metadata": {"labels": {"a": "1"}}}));
    let shared = json!({"status": {"phase": "x"}, "metadata": {"labels": {"a": "1"}}});
    story.try_apply("alice", "status", shared, false).expect("the label is the same");
    story
        .owned(&[
            "alice Apply 01: .metadata.labels.a .spec.replicas",
            "alice Apply/status 02: .metadata.labels.a .status.phase",
        ])
        .apply("alice", json!({"spec": {"replicas": 1}}))
        .has("/metadata/labels", json!({"a": "1"}))
        .has("/status/phase", json!("x"));
    let refusal = story.refusal("alice", json!({"metadata": {"labels": {"a": "2"}}}));
    assert_eq!(
        refusal,
        "Apply failed with 1 conflict: conflict with \"alice\" with subresource \"status\": .metadata.labels.a"
    );
}

#[test]
fn what_was_there_before_the_first_apply_is_not_taken_silently() {
    let mut story = Story::new();
    story.live =
        Some(json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t", "uid": "u"}, "data": {"a": "1"}}));
    let refusal = story.refusal("alice", json!({"data": {"a": "2"}}));
    assert_eq!(refusal, "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a");
    story
        .force("alice", json!({"data": {"a": "2"}}))
        .owned(&["alice Apply 02: .data.a", "before-first-apply Update 02: .data"]);
}

#[test]
fn empty_lists_stay_for_who_owns_them() {
    Story::new()
        .update("alice", json!({"spec": {"tags": []}}))
        .apply("bob", json!({"spec": {"tags": ["b"]}}))
        .apply("bob", json!({}))
        .has("/spec", json!({"tags": []}))
        .owned(&["alice Update 01: .spec .spec.tags"]);
}

#[test]
fn kubectl_takes_over_what_it_applied_from_the_client() {
    let mut story = client_side_applied();
    story.apply("kubectl", json!({"spec": {"replicas": 2}}));
    story.has("/spec/replicas", json!(2));
    let annotation = story.live.as_ref().unwrap()["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
    assert!(annotation.ends_with("}\n"), "{annotation:?}");
    let applied: Value = serde_json::from_str(&annotation).expect("the annotation is JSON");
    assert_eq!(applied["spec"], json!({"replicas": 2}));
}

#[test]
fn kubectl_takes_over_nothing_that_was_changed_since() {
    let mut story = client_side_applied();
    story.update("hpa", json!({"spec": {"replicas": 5}}));
    assert_eq!(
        story.refusal("kubectl", json!({"spec": {"replicas": 2, "paused": false}})),
        "Apply failed with 1 conflict: conflict with \"hpa\" using v1: .spec.replicas",
    );
}

#[test]
fn only_kubectl_takes_over() {
    let refusal = client_side_applied().refusal("argo", json!({"spec": {"replicas": 2}}));
    assert_eq!(
        refusal,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .spec.replicas"
    );
}

#[test]
fn the_annotation_is_left_alone_by_others_and_not_invented() {
    let mut story = client_side_applied();
    let before = story.live.as_ref().unwrap()["metadata"]["annotations"].clone();
    story.force("argo", json!({"spec": {"replicas": 2}})).has("/metadata/annotations", before);
    Story::new().apply("kubectl", json!({"spec": {"replicas": 1}})).has("/metadata/annotations", json!(null));
}

#[test]
fn an_annotation_that_would_be_too_large_goes() {
    let mut story = client_side_applied();
    story.apply("kubectl", json!({"data": {"large": "x".repeat(256 * 1024)}}));
    story.has("/metadata/annotations", json!({}));
}

/// A Thing that kubectl applied from the client: by an update, with the annotation.
fn client_side_applied() -> Story {
    let applied = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"replicas": 1, "paused": true}});
    let mut story = Story::new();
    story.update(
        "kubectl-client-side-apply",
        json!({"metadata": {"annotations": {ANNOTATION: applied.to_string()}}, "spec": {"replicas": 1, "paused": true}}),
    );
    story
}
