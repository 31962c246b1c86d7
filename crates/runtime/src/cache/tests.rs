//! What a cache promises about own writes, lists and owners.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta, OwnerReference};
use serde_json::json;

use super::*;

fn object(name: &str, uid: &str, revision: u64) -> ConfigMap {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("a".into()),
        uid: Some(uid.into()),
        resource_version: Some(revision.to_string()),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn listed(objects: &[ConfigMap]) -> Cache<ConfigMap> {
    let cache = Cache::default();
    list(&cache, objects);
    cache
}

fn list(cache: &Cache<ConfigMap>, objects: &[ConfigMap]) -> Vec<Change<ConfigMap>> {
    cache.observe(Event::Init);
    for object in objects {
        cache.observe(Event::InitApply(object.clone()));
    }
    cache.observe(Event::InitDone)
}

fn wrote(cache: &Cache<ConfigMap>, object: ConfigMap, known_only: bool) -> Option<Change<ConfigMap>> {
    cache.wrote(cache.keep(object), known_only).next()
}

fn revisions(cache: &Cache<ConfigMap>) -> Vec<(String, u64)> {
    let mut all: Vec<_> = (cache.all().iter())
        .map(|object| (object.metadata.name.clone().unwrap(), head::Version::of(&object.metadata).number().unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn an_own_write_is_seen_at_once_and_older_news_do_not_undo_it() {
    let cache = listed(&[object("x", "1", 5)]);
    assert!(wrote(&cache, object("x", "1", 9), false).is_some());
    assert!(cache.observe(Event::Apply(object("x", "1", 7))).is_empty(), "older than the own write");
    assert!(cache.observe(Event::Apply(object("x", "1", 9))).is_empty(), "the own write itself is no news");
    assert_eq!(revisions(&cache), [("x".into(), 9)]);
    assert_eq!(cache.observe(Event::Apply(object("x", "1", 10))).len(), 1);
}

#[test]
fn an_answer_that_comes_after_the_end_does_not_revive() {
    let cache = listed(&[object("x", "1", 5)]);
    assert_eq!(cache.observe(Event::Delete(object("x", "1", 9))).len(), 1);
    assert!(wrote(&cache, object("x", "1", 9), false).is_none(), "the answer to the deletion itself");
    assert!(wrote(&cache, object("x", "1", 7), false).is_none(), "the answer to a write before it");
    assert!(cache.is_empty());
    assert!(wrote(&cache, object("x", "1", 11), false).is_some(), "it left the selector and came back");
    assert!(wrote(&cache, object("x", "2", 12), false).is_some(), "another object of the same name");
}

#[test]
fn versions_are_compared_as_numbers() {
    let cache = listed(&[object("x", "1", 9)]);
    assert_eq!(cache.observe(Event::Apply(object("x", "1", 10))).len(), 1);
}

#[test]
fn an_own_write_during_a_list_survives_it() {
    let cache = listed(&[object("x", "1", 5)]);
    cache.observe(Event::Init);
    cache.observe(Event::InitApply(object("x", "1", 5)));
    wrote(&cache, object("x", "1", 8), false);
    wrote(&cache, object("y", "2", 9), false);
    cache.observe(Event::InitDone);
    assert_eq!(revisions(&cache), [("x".into(), 8), ("y".into(), 9)]);
}

#[test]
fn an_own_deletion_is_not_undone_by_older_news() {
    let cache = listed(&[object("x", "1", 5)]);
    assert!(cache.deleted("1", Some("a")).is_some());
    assert!(cache.observe(Event::Apply(object("x", "1", 6))).is_empty());
    assert!(cache.is_empty());
    assert!(cache.observe(Event::Delete(object("x", "1", 7))).is_empty());
    assert_eq!(cache.observe(Event::Apply(object("x", "2", 8))).len(), 1, "a successor is another object");
}

#[test]
fn the_deletion_of_a_predecessor_spares_the_successor() {
    let cache = listed(&[object("x", "1", 5)]);
    wrote(&cache, object("x", "2", 8), false);
    assert!(cache.observe(Event::Delete(object("x", "1", 7))).is_empty());
    assert_eq!(revisions(&cache), [("x".into(), 8)]);
}

#[test]
fn a_list_tells_what_is_new_changed_and_gone_but_not_what_stayed() {
    let cache = listed(&[object("gone", "1", 1), object("same", "2", 2), object("changed", "3", 3)]);
    let changes = list(&cache, &[object("same", "2", 2), object("changed", "3", 7), object("new", "4", 8)]);
    let mut told: Vec<_> =
        (changes.iter()).map(|change| (change.key().name, change.old.is_some(), change.new.is_some())).collect();
    told.sort();
    assert_eq!(told, [("changed".into(), true, true), ("gone".into(), true, false), ("new".into(), false, true)]);
}

#[test]
fn owners_are_followed_when_they_change() {
    let owned = |revision, owner: &str| {
        let mut object = object("x", "1", revision);
        object.metadata.owner_references =
            Some(vec![OwnerReference { uid: owner.into(), ..OwnerReference::default() }]);
        object
    };
    let cache = listed(&[owned(1, "a")]);
    assert_eq!(cache.owned_by("a").len(), 1);
    cache.observe(Event::Apply(owned(2, "b")));
    assert_eq!((cache.owned_by("a").len(), cache.owned_by("b").len()), (0, 1));
    assert!(cache.by_uid("1").is_some());
    cache.observe(Event::Delete(owned(3, "b")));
    assert!(cache.owned_by("b").is_empty() && cache.by_uid("1").is_none());
}

#[test]
fn what_nobody_has_can_be_claimed() {
    let owned = |name: &str, revision, owner: Option<(&str, bool)>| {
        let mut object = object(name, name, revision);
        object.metadata.owner_references = owner.map(|(uid, controller)| {
            vec![OwnerReference { uid: uid.into(), controller: Some(controller), ..OwnerReference::default() }]
        });
        object
    };
    let names = |cache: &Cache<ConfigMap>, uid, namespace| -> Vec<String> {
        cache.claimable(uid, namespace).iter().filter_map(|object| object.metadata.name.clone()).collect()
    };
    let (mine, other) = (Some(("me", true)), Some(("you", true)));
    let objects = [
        owned("free", 1, None),
        owned("hers", 2, other),
        owned("mine", 3, mine),
        owned("near", 4, Some(("me", false))),
    ];
    let cache = listed(&objects);
    assert_eq!(names(&cache, "me", "a"), ["mine", "near", "free"]);
    assert_eq!(names(&cache, "me", "b"), ["mine", "near"]);
    cache.observe(Event::Apply(owned("hers", 5, None)));
    cache.observe(Event::Apply(owned("free", 6, other)));
    cache.observe(Event::Delete(owned("near", 7, Some(("me", false)))));
    assert_eq!(names(&cache, "me", "a"), ["mine", "hers"]);
}

#[test]
fn a_write_to_an_object_outside_an_unknown_selector_is_not_taken_in() {
    let cache = listed(&[object("x", "1", 5)]);
    assert!(wrote(&cache, object("y", "2", 6), true).is_none());
    assert!(wrote(&cache, object("x", "1", 7), true).is_some());
}

#[test]
fn a_list_of_one_namespace_says_nothing_of_another() {
    let cache: Cache<ConfigMap> = Cache::default();
    let within = |namespace: &str, name: &str| {
        let mut object = object(name, &format!("{namespace}-{name}"), 5);
        object.metadata.namespace = Some(namespace.into());
        object
    };
    for namespace in ["a", "b"] {
        cache.observe_in(Some(namespace), Event::Init);
        cache.observe_in(Some(namespace), Event::InitApply(cache.keep(within(namespace, "x"))));
    }
    assert_eq!(cache.observe_in(Some("a"), Event::InitDone).count(), 1);
    assert_eq!(cache.observe_in(Some("b"), Event::InitDone).count(), 1);
    cache.observe_in(Some("a"), Event::Init);
    let changes = cache.observe_in(Some("a"), Event::InitDone);
    assert_eq!(changes.map(|change| change.key()).collect::<Vec<_>>(), [ObjectKey::namespaced("a", "x")]);
    assert_eq!(cache.leave("b").count(), 1);
    assert!(cache.is_empty());
}

#[test]
fn an_index_follows_the_objects_and_survives_a_function_that_panics() {
    let with = |name: &str, revision: u64, secret: &str| {
        let mut object = object(name, name, revision);
        object.data = Some([("secret".to_owned(), secret.to_owned())].into());
        object
    };
    let cache = listed(&[with("x", 1, "s"), with("y", 2, "s")]);
    let secrets = |object: &ConfigMap| {
        let secret = object.data.as_ref().and_then(|data| data.get("secret")).cloned();
        assert!(secret.as_deref() != Some("bad"), "an author's mistake");
        Vec::from_iter(secret)
    };
    let index = cache.add_index(Arc::new(secrets));
    let names = |value: &str| -> Vec<String> {
        cache.indexed(index, value).iter().map(|object| object.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(names("s"), ["x", "y"]);
    cache.observe(Event::Apply(with("x", 3, "t")));
    assert_eq!((names("s"), names("t")), (vec!["y".to_owned()], vec!["x".to_owned()]));
    cache.observe(Event::Apply(with("y", 4, "bad")));
    assert_eq!(names("s"), [""; 0]);
    cache.observe(Event::Delete(with("x", 5, "t")));
    assert_eq!(names("t"), [""; 0]);
    cache.drop_index(index);
    assert_eq!(names("t"), [""; 0]);
}

#[test]
fn of_managed_fields_only_what_the_operator_applied_is_kept_and_apart_from_the_object() {
    let entry = |manager: &str, operation: &str, subresource: Option<&str>| ManagedFieldsEntry {
        manager: Some(manager.into()),
        operation: Some(operation.into()),
        subresource: subresource.map(Into::into),
        fields_v1: Some(FieldsV1(json!({"f:data": {(format!("f:{manager}-{operation}")): {}}}))),
        ..ManagedFieldsEntry::default()
    };
    let mut map = object("x", "1", 5);
    map.metadata.managed_fields = Some(vec![
        entry("kubectl", "Apply", None),
        entry("me", "Update", None),
        entry("me", "Apply", Some("status")),
        entry("me", "Apply", None),
    ]);
    let cache = Cache::of("me".into(), false);
    cache.observe(Event::Apply(map));
    let (kept, applied) = cache.get_applied(&ObjectKey::namespaced("a", "x")).unwrap();
    assert_eq!(kept.metadata.managed_fields, None);
    let mut live = json!(*kept);
    applied.unwrap().put(&mut live, "me");
    let fields = json!([{"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:me-Apply": {}}}}]);
    assert_eq!(live["metadata"]["managedFields"], fields);
}

#[test]
fn a_list_of_what_is_known_takes_it_as_it_is() {
    let (x, y) = (object("x", "1", 5), object("y", "2", 6));
    let cache = listed(&[x.clone(), y]);
    let before = cache.by_uid("1").unwrap();
    cache.observe(Event::Init);
    assert!(cache.relist(None, &x.metadata));
    assert!(!cache.relist(None, &object("y", "2", 7).metadata), "another state");
    assert!(!cache.relist(None, &object("y", "3", 6).metadata), "another object");
    assert_eq!(cache.observe(Event::InitDone).len(), 1, "y is not in the list");
    assert!(Arc::ptr_eq(&before, &cache.by_uid("1").unwrap()));
    assert!(cache.is_known(&object("x", "1", 5).metadata) && !cache.is_known(&object("x", "1", 6).metadata));
}
