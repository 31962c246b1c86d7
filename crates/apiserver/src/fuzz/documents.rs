//! Bodies: JSON, YAML, protobuf.

use serde_json::Value;
use windlass_schema::{builtin, protobuf};

use crate::codec::{json_bytes, parse_json, parse_yaml};

/// A JSON text: read as other readers read it, and the same after it is written.
pub(super) fn json(bytes: &[u8]) {
    let read = parse_json(bytes);
    let other = serde_json::from_slice::<Value>(bytes);
    assert_eq!(read.is_ok(), other.is_ok(), "{read:?} {other:?}");
    let (Ok(document), Ok(other)) = (read, other) else { return };
    assert_eq!(document.value, other);
    let again = parse_json(&json_bytes(&document.value)).expect("what was written can be read");
    assert_eq!(again.value, document.value);
    assert!(again.duplicates.is_empty());
}

/// A YAML text: the same after it is written as JSON and as YAML.
pub(super) fn yaml(bytes: &[u8]) {
    let Ok(document) = parse_yaml(bytes) else { return };
    let json = parse_json(&json_bytes(&document.value)).expect("what was read from YAML can be written as JSON");
    assert_eq!(json.value, document.value);
    let Ok(text) = serde_saphyr::to_string(&document.value) else { return };
    let again = parse_yaml(text.as_bytes());
    assert_eq!(again.as_ref().map(|again| &again.value), Ok(&document.value), "{text}");
}

/// Bytes as an object with its envelope, as a part of any kind without one, and as an event of a watch.
pub(super) fn protobuf(bytes: &[u8]) {
    if let Ok(object) = protobuf::decode(bytes, None) {
        survives(&object);
    }
    let [first, second, message @ ..] = bytes else { return };
    let kinds = builtin().kinds();
    let kind = &kinds[usize::from(u16::from_le_bytes([*first, *second])) % kinds.len()];
    if let Ok(mut object) = protobuf::decode_message(&kind.definition, message) {
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.as_str().into();
        survives(&object);
    }
    let _ = protobuf::read_watch_event(message);
}

/// What was read can be written, and is the same when it is read again.
fn survives(object: &Value) {
    // An envelope may hold JSON, of any kind and form.
    let Ok(bytes) = protobuf::encode(object) else { return };
    let again = protobuf::decode(&bytes, None).unwrap_or_else(|error| panic!("{error}: {object}"));
    let bytes_again = protobuf::encode(&again).unwrap_or_else(|error| panic!("{error}: {again}"));
    assert_eq!(bytes, bytes_again, "{object} {again}");
}
