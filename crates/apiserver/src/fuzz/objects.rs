//! Objects of built-in kinds on their whole way: read, completed, checked, written in every form.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_schema::{Kind, builtin, conform, defaults, protobuf, validate_builtin, validate_metadata};

use super::sample::Source;
use crate::{
    codec::{json_bytes, parse_json},
    table::{IncludeObject, TableOptions, TableVersion, Tabler},
};

/// Two objects of one kind, the second an update of the first.
pub(super) fn objects(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let kind = source.pick(builtin().kinds());
    let Some(old) = completed(kind, &mut source) else { return };
    check(kind, &old, None);
    if let Some(new) = completed(kind, &mut source) {
        check(kind, &new, Some(&old));
    }
}

/// An object of the kind in canonical form.
pub(super) fn readable(kind: &Kind, source: &mut Source<'_>) -> Option<Value> {
    let mut object = source.value(&kind.schema);
    let members = object.as_object_mut()?;
    members.insert("apiVersion".to_owned(), kind.api_version().into());
    members.insert("kind".to_owned(), kind.kind.as_str().into());
    let object = conform(&kind.definition, object).ok()?.object;
    let again = conform(&kind.definition, object.clone()).expect("what was read once can be read again");
    assert!(again.unknown.is_empty(), "{:?}", again.unknown);
    assert_eq!(again.object, object, "the canonical form is the canonical form");
    Some(object)
}

fn completed(kind: &Kind, source: &mut Source<'_>) -> Option<Value> {
    let mut object = readable(kind, source)?;
    written(&object);
    defaults(kind, &mut object);
    let mut again = object.clone();
    defaults(kind, &mut again);
    assert_eq!(again, object, "what is complete stays as it is");
    written(&object);
    Some(object)
}

/// The object is the same after it was written and read in any form.
fn written(object: &Value) {
    let json = parse_json(&json_bytes(object)).expect("an object is JSON");
    assert_eq!(json.value, *object);
    let bytes = protobuf::encode(object).unwrap_or_else(|error| panic!("{error}: {object}"));
    let read = protobuf::decode(&bytes, None).unwrap_or_else(|error| panic!("{error}: {object}"));
    assert!(is_same(&read, object), "{read} {object}");
}

/// Whether an object that was read is the one that was written. Protobuf has no lists of nothing: kube-apiserver, too,
/// answers `null` where an empty list was sent and one must stand, and the other way round in `extra`, whose lists are
/// messages of their own.
fn is_same(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            let is_same_member = |((name, read), written): ((&String, &Value), &Value)| match (name.as_str(), read) {
                ("extra", Value::Object(lists)) => is_same_extra(lists, written),
                _ => is_same(read, written),
            };
            read.keys().eq(written.keys()) && read.iter().zip(written.values()).all(is_same_member)
        }
        (Value::Array(read), Value::Array(written)) => {
            read.len() == written.len() && read.iter().zip(written).all(|(read, written)| is_same(read, written))
        }
        (Value::Null, Value::Array(written)) => written.is_empty(),
        _ => read == written,
    }
}

fn is_same_extra(read: &Map<String, Value>, written: &Value) -> bool {
    let Some(written) = written.as_object() else { return false };
    let is_same_list = |(read, written): (&Value, &Value)| read == written || (written.is_null() && *read == json!([]));
    read.keys().eq(written.keys()) && read.values().zip(written.values()).all(is_same_list)
}

fn check(kind: &Kind, object: &Value, old: Option<&Value>) {
    let _ = validate_builtin(kind, object, old);
    let _ = validate_metadata(kind, object, old);
    for include in [IncludeObject::Object, IncludeObject::None] {
        let options = TableOptions { include, version: TableVersion::V1, now: Timestamp::UNIX_EPOCH };
        let table = Tabler::builtin(&kind.group, &kind.plural);
        let table = table.table(std::slice::from_ref(object), &Value::Null, options);
        let columns = table["columnDefinitions"].as_array().map(Vec::len);
        assert_eq!(table["rows"][0]["cells"].as_array().map(Vec::len), columns, "a cell for each column");
    }
}
