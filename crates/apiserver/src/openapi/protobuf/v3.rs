//! OpenAPI v3 in its protobuf form.
//!
//! The messages are those of gnostic's `openapi.v3`; the numbers beside the names are theirs.

use serde_json::Value;

use super::message::{Message, Words, list, members};

const WORDS: Words = Words {
    texts: &[(9, "title"), (17, "pattern"), (25, "type"), (34, "description"), (35, "format")],
    truths: &[
        (1, "nullable"),
        (8, "deprecated"),
        (12, "exclusiveMaximum"),
        (14, "exclusiveMinimum"),
        (20, "uniqueItems"),
    ],
    doubles: &[(10, "multipleOf"), (11, "maximum"), (13, "minimum")],
    integers: &[
        (15, "maxLength"),
        (16, "minLength"),
        (18, "maxItems"),
        (19, "minItems"),
        (21, "maxProperties"),
        (22, "minProperties"),
    ],
};

/// Writes a v3 document.
pub(in crate::openapi) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["openapi"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["description"]);
    info.text(6, &document["info"]["version"]);
    message.message(2, &info);
    let mut paths = Message::default();
    for (name, item) in members(&document["paths"]) {
        paths.named(1, name, &path_item(item));
    }
    message.message(4, &paths);
    let mut schemas = Message::default();
    for (name, found) in members(&document["components"]["schemas"]) {
        schemas.named(1, name, &schema_or_reference(found));
    }
    message.message(5, &Message::of(1, &schemas));
    message.into_bytes()
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    message.text(3, &item["description"]);
    for (number, method) in
        [(4, "get"), (5, "put"), (6, "post"), (7, "delete"), (8, "options"), (9, "head"), (10, "patch")]
    {
        if let Some(found) = item.get(method) {
            message.message(number, &operation(found));
        }
    }
    for found in list(&item["parameters"]) {
        message.message(13, &parameter(found));
    }
    message.extensions(14, item);
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &operation["tags"]);
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    for found in list(&operation["parameters"]) {
        message.message(6, &parameter(found));
    }
    if let Some(body) = operation.get("requestBody") {
        let mut found = Message::default();
        found.text(1, &body["description"]);
        found.message(2, &content(&body["content"]));
        found.truth(3, &body["required"]);
        message.message(7, &Message::of(1, &found));
    }
    let mut responses = Message::default();
    for (code, found) in members(&operation["responses"]) {
        responses.named(2, code, &response(found));
    }
    message.message(8, &responses);
    message.truth(10, &operation["deprecated"]);
    message.extensions(13, operation);
    message
}

fn response(found: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &found["description"]);
    if found["content"].is_object() {
        message.message(3, &content(&found["content"]));
    }
    // A value that may be a reference as well.
    Message::of(1, &message)
}

fn parameter(found: &Value) -> Message {
    let mut message = Message::default();
    for (number, word) in [(1, "name"), (2, "in"), (3, "description")] {
        message.text(number, &found[word]);
    }
    message.truth(4, &found["required"]);
    message.message(10, &schema_or_reference(&found["schema"]));
    // A value that may be a reference as well.
    Message::of(1, &message)
}

/// The bodies by their media types.
fn content(found: &Value) -> Message {
    let mut message = Message::default();
    for (media_type, found) in members(found) {
        let mut media = Message::default();
        if found["schema"].is_object() {
            media.message(1, &schema_or_reference(&found["schema"]));
        }
        message.named(1, media_type, &media);
    }
    message
}

fn schema_or_reference(found: &Value) -> Message {
    match found["$ref"].as_str() {
        Some(_) => {
            let mut reference = Message::default();
            reference.text(1, &found["$ref"]);
            Message::of(2, &reference)
        }
        None => Message::of(1, &schema(found)),
    }
}

fn schema(found: &Value) -> Message {
    let mut message = Message::default();
    message.words(found, &WORDS);
    message.texts(23, &found["required"]);
    list(&found["enum"]).iter().for_each(|value| message.any(24, value));
    for (number, word) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        list(&found[word]).iter().for_each(|found| message.message(number, &schema_or_reference(found)));
    }
    if found["not"].is_object() {
        message.message(29, &schema(&found["not"]));
    }
    if found["items"].is_object() {
        message.message(30, &Message::of(1, &schema_or_reference(&found["items"])));
    }
    if found["properties"].is_object() {
        let mut properties = Message::default();
        members(&found["properties"]).for_each(|(name, found)| properties.named(1, name, &schema_or_reference(found)));
        message.message(31, &properties);
    }
    match &found["additionalProperties"] {
        Value::Null => {}
        Value::Bool(value) => {
            let mut either = Message::default();
            either.flag(2, *value);
            message.message(32, &either);
        }
        other => message.message(32, &Message::of(1, &schema_or_reference(other))),
    }
    default(&mut message, &found["default"]);
    message.extensions(36, found);
    message
}

/// A default: one of several fields, so that it is written even if it is zero; there is none for lists and maps.
fn default(message: &mut Message, value: &Value) {
    let mut either = Message::default();
    match value {
        Value::Null => return,
        Value::Number(number) => either.number(1, number.as_f64().unwrap_or_default()),
        Value::Bool(value) => either.flag(2, *value),
        Value::String(text) => either.bytes(3, text.as_bytes()),
        Value::Array(_) | Value::Object(_) => {}
    }
    message.message(33, &either);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_written_as_protobuf() {
        let reference = schema_or_reference(&json!({"$ref": "#/a"}));
        assert_eq!(reference.into_bytes(), [0x12, 5, 0x0a, 3, b'#', b'/', b'a']);
        assert_eq!(schema(&json!({"default": false})).into_bytes(), [0x8a, 0x02, 2, 0x10, 0]);
        let found = schema(&json!({"type": "array", "items": {"type": "string"}, "maxItems": 2, "x-y": true}));
        let mut expected = vec![0x90, 0x01, 2];
        // Fields stand in the order in which they are written, which readers do not mind.
        expected.splice(0..0, [&[0xca, 0x01, 5][..], b"array"].concat());
        expected.extend_from_slice(&[0xf2, 0x01, 13, 0x0a, 11, 0x0a, 9, 0xca, 0x01, 6]);
        expected.extend_from_slice(b"string");
        expected.extend_from_slice(&[0xa2, 0x02, 13, 0x0a, 3, b'x', b'-', b'y', 0x12, 6, 0x12, 4]);
        expected.extend_from_slice(b"true");
        assert_eq!(found.into_bytes(), expected);
    }
}
