//! Entries of other versions.

use serde_json::{Value, json};
use windlass_merge::managed::{self, ApplyError, ConvertError, Manager, Versioned, Write};
use windlass_merge::{FieldSet, OpenApiShape};

/// In `v1` the member is `size`, in `v2` it is `replicas`; `v0` is gone, `v9` cannot be converted to.
fn convert(object: &Value, api_version: &str) -> Result<Option<Versioned<OpenApiShape>>, ConvertError> {
    let (from, to) = match api_version {
        "v1" => ("replicas", "size"),
        "v2" => ("size", "replicas"),
        "v9" => return Err(ConvertError { api_version: "v9".to_owned(), reason: "webhook down".to_owned() }),
        _ => return Ok(None),
    };
    let mut object = object.clone();
    object["apiVersion"] = json!(api_version);
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    Ok(Some(Versioned { object, shape: None }))
}

fn by<'a>(name: &'a str, api_version: &'a str) -> Write<'a, OpenApiShape> {
    let time = "2026-01-01T00:00:00Z".parse().expect("the time can be read");
    Write::new(Manager { name, api_version, subresource: "", time }, None).converting(&convert)
}

fn thing(api_version: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

fn owned(object: &Value) -> Vec<String> {
    let entries = managed::decode(object.pointer("/metadata/managedFields")).expect("the entries can be read");
    let described = |entry: &managed::Entry| {
        let fields: FieldSet = entry.fields.difference(&FieldSet::of_names(["spec"]));
        format!("{} {} {}", entry.manager, entry.api_version, fields.to_string().replace('\n', " "))
    };
    entries.iter().map(described).collect()
}

/// Moves the object as the server does when a client asks for another version.
fn served(object: &Value, api_version: &str) -> Value {
    convert(object, api_version).ok().flatten().expect("the version is there").object
}

fn applied() -> Value {
    managed::apply(&by("alice", "v1"), None, &thing("v1", json!({"size": 1, "note": "x"})), false)
        .expect("a new object has no conflicts")
}

#[test]
fn fields_are_compared_in_the_version_of_their_owner() {
    let live = served(&applied(), "v2");
    let same = managed::apply(&by("bob", "v2"), Some(&live), &thing("v2", json!({"replicas": 1})), false).unwrap();
    assert_eq!(owned(&same), ["bob v2 .spec.replicas", "alice v1 .spec.note .spec.size"]);
    let other = managed::apply(&by("bob", "v2"), Some(&live), &thing("v2", json!({"replicas": 2})), false);
    let Err(ApplyError::Conflicts(conflicts)) = other else { panic!("{other:?}") };
    assert_eq!(conflicts.to_string(), "Apply failed with 1 conflict: conflict with \"alice\": .spec.size");
}

#[test]
fn an_update_takes_fields_in_the_version_of_their_owner() {
    let live = served(&applied(), "v2");
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(5);
    managed::update(&by("bob", "v2"), Some(&live), &mut new).unwrap();
    assert_eq!(owned(&new), ["alice v1 .spec.note", "bob v2 .spec.replicas"]);
}

#[test]
fn an_applier_can_change_its_version() {
    let live = served(&applied(), "v2");
    let moved = managed::apply(&by("alice", "v2"), Some(&live), &thing("v2", json!({"replicas": 1})), false).unwrap();
    assert_eq!(moved["spec"], json!({"replicas": 1}), "the note is no longer applied");
    assert_eq!(owned(&moved), ["alice v2 .spec.replicas"]);
}

#[test]
fn entries_of_a_version_that_is_gone_are_dropped() {
    let mut live = applied();
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("v0");
    let mut new = live.clone();
    new["spec"]["size"] = json!(3);
    managed::update(&by("bob", "v1"), Some(&live), &mut new).unwrap();
    assert_eq!(owned(&new), ["bob v1 .spec.size"]);
}

#[test]
fn a_conversion_that_fails_fails_the_write() {
    let mut live = applied();
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("v9");
    let mut new = live.clone();
    let updated = managed::update(&by("bob", "v1"), Some(&live), &mut new);
    assert_eq!(updated.unwrap_err().to_string(), "cannot convert the object to v9: webhook down");
    let applied = managed::apply(&by("bob", "v1"), Some(&live), &thing("v1", json!({"size": 2})), false);
    assert!(matches!(applied, Err(ApplyError::Convert(_))), "{applied:?}");
}
