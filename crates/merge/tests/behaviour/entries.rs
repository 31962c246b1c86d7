//! The entries of `metadata.managedFields`.

use serde_json::{Value, json};
use windlass_merge::managed::{EntryError, Operation, decode, encode, is_same};

fn entry(manager: &str, operation: &str, time: &str) -> Value {
    json!({
        "manager": manager, "operation": operation, "apiVersion": "v1", "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
    })
}

fn broken(change: Value) -> EntryError {
    let mut broken = entry("a", "Apply", "2026-01-01T00:00:00Z");
    windlass_merge::merge_patch(&mut broken, &change);
    decode(Some(&json!([broken]))).expect_err("the entry is broken")
}

#[test]
fn entries_are_read_and_written_alike() {
    let mut with_all = entry("a", "Update", "2026-01-01T00:00:00Z");
    with_all["subresource"] = json!("status");
    let mut without_time = entry("a", "Apply", "");
    without_time.as_object_mut().unwrap().remove("time");
    let given = json!([without_time, with_all]);
    let entries = decode(Some(&given)).expect("the entries can be read");
    assert_eq!(entries[0].operation, Operation::Apply);
    assert_eq!(entries[1].subresource, "status");
    assert_eq!(encode(entries), given);
    assert_eq!(decode(None), Ok(Vec::new()));
    assert_eq!(decode(Some(&Value::Null)), Ok(Vec::new()));
}

#[test]
fn entries_are_sorted_by_operation_time_and_name() {
    let given = json!([
        entry("z", "Update", "2026-01-01T00:00:00Z"),
        entry("b", "Update", "2026-01-02T00:00:00Z"),
        entry("a", "Update", "2026-01-02T00:00:00Z"),
        entry("x", "Apply", "2026-01-03T00:00:00Z"),
        entry("y", "Apply", "2026-01-01T00:00:00Z"),
    ]);
    let order: Vec<_> = encode(decode(Some(&given)).unwrap())
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order, ["y", "x", "z", "a", "b"]);
}

#[test]
fn fractions_of_a_second_are_not_written() {
    let entries = decode(Some(&json!([entry("a", "Apply", "2026-01-01T00:00:00.5+01:00")]))).unwrap();
    assert_eq!(encode(entries)[0]["time"], "2025-12-31T23:00:00Z");
}

#[test]
fn broken_entries_are_named() {
    assert_eq!(broken(json!({"operation": "Delete"})), EntryError::Operation(0));
    assert_eq!(broken(json!({"operation": null})), EntryError::Operation(0));
    assert_eq!(broken(json!({"apiVersion": ""})), EntryError::ApiVersion(0));
    assert_eq!(broken(json!({"fieldsType": "FieldsV2"})), EntryError::FieldsType(0));
    assert_eq!(broken(json!({"time": "yesterday"})), EntryError::Time(0));
    assert!(matches!(broken(json!({"fieldsV1": {"spec": {}}})), EntryError::Fields(0, _)));
    assert_eq!(decode(Some(&json!({}))), Err(EntryError::NotList));
    assert_eq!(decode(Some(&json!([1]))), Err(EntryError::NotList));
}

#[test]
fn objects_that_differ_in_times_only_are_the_same() {
    let object = |time: &str, a: i32| json!({"metadata": {"managedFields": [entry("a", "Apply", time)]}, "a": a});
    assert!(is_same(&object("2026-01-01T00:00:00Z", 1), &object("2026-01-02T00:00:00Z", 1)));
    assert!(!is_same(&object("2026-01-01T00:00:00Z", 1), &object("2026-01-01T00:00:00Z", 2)));
    assert!(!is_same(&object("2026-01-01T00:00:00Z", 1), &json!({"metadata": {}, "a": 1})));
}
