//! OpenAPI v2 in its protobuf form, which kubectl reads to check lists on its own.
//!
//! The messages are those of gnostic's `openapi.v2`; the numbers beside the names are theirs.

use serde_json::Value;

use super::message::{Message, Words, list, members};

const WORDS: Words = Words {
    texts: &[(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")],
    truths: &[(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")],
    doubles: &[(6, "multipleOf"), (7, "maximum"), (9, "minimum")],
    integers: &[
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ],
};

/// Writes a v2 document.
pub(in crate::openapi) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    let mut paths = Message::default();
    for (name, item) in members(&document["paths"]) {
        paths.named(2, name, &path_item(item));
    }
    message.message(8, &paths);
    let mut definitions = Message::default();
    for (name, definition) in members(&document["definitions"]) {
        definitions.named(1, name, &schema(definition));
    }
    message.message(9, &definitions);
    message.into_bytes()
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")] {
        if let Some(found) = item.get(method) {
            message.message(number, &operation(found));
        }
    }
    for found in list(&item["parameters"]) {
        message.message(9, &parameter(found));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &operation["tags"]);
    message.text(5, &operation["operationId"]);
    message.texts(6, &operation["produces"]);
    message.texts(7, &operation["consumes"]);
    for found in list(&operation["parameters"]) {
        message.message(8, &parameter(found));
    }
    let mut responses = Message::default();
    for (code, found) in members(&operation["responses"]) {
        responses.named(1, code, &response(found));
    }
    message.message(9, &responses);
    message.texts(10, &operation["schemes"]);
    message.extensions(13, operation);
    message
}

fn response(found: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &found["description"]);
    if let Some(found) = found.get("schema") {
        message.message(2, &Message::of(1, &schema(found)));
    }
    // A value that may be a reference as well.
    Message::of(1, &message)
}

fn parameter(found: &Value) -> Message {
    let mut message = Message::default();
    let place = found["in"].as_str().unwrap_or_default();
    let parameter = if place == "body" {
        message.text(2, &found["name"]);
        message.text(3, &found["in"]);
        message.truth(4, &found["required"]);
        message.message(5, &schema(&found["schema"]));
        Message::of(1, &message)
    } else {
        let (kind, unique, number) = if place == "path" { (5, 19, 4) } else { (6, 20, 3) };
        message.truth(1, &found["required"]);
        message.text(2, &found["in"]);
        message.text(4, &found["name"]);
        message.text(kind, &found["type"]);
        message.truth(unique, &found["uniqueItems"]);
        Message::of(2, &Message::of(number, &message))
    };
    // A parameter that may be a reference as well.
    Message::of(1, &parameter)
}

fn schema(found: &Value) -> Message {
    let mut message = Message::default();
    message.words(found, &WORDS);
    message.any(5, &found["default"]);
    message.texts(19, &found["required"]);
    list(&found["enum"]).iter().for_each(|value| message.any(20, value));
    match &found["additionalProperties"] {
        Value::Null => {}
        Value::Bool(_) => {
            let mut either = Message::default();
            either.truth(2, &found["additionalProperties"]);
            message.message(21, &either);
        }
        other => message.message(21, &Message::of(1, &schema(other))),
    }
    if found["type"].is_string() {
        let mut types = Message::default();
        types.text(1, &found["type"]);
        message.message(22, &types);
    }
    if found["items"].is_object() {
        message.message(23, &Message::of(1, &schema(&found["items"])));
    }
    list(&found["allOf"]).iter().for_each(|found| message.message(24, &schema(found)));
    if found["properties"].is_object() {
        let mut properties = Message::default();
        members(&found["properties"]).for_each(|(name, found)| properties.named(1, name, &schema(found)));
        message.message(25, &properties);
    }
    message.extensions(31, found);
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_are_written_as_protobuf() {
        let schema =
            schema(&json!({"type": "object", "required": ["a"], "maximum": 1.0, "maxItems": 300, "x-y": true}));
        let mut expected = vec![0x39];
        expected.extend_from_slice(&1.0_f64.to_le_bytes());
        expected.extend_from_slice(&[0x70, 0xac, 0x02]);
        expected.extend_from_slice(&[0x9a, 0x01, 1, b'a']);
        expected.extend_from_slice(&[0xb2, 0x01, 8, 0x0a, 6]);
        expected.extend_from_slice(b"object");
        expected.extend_from_slice(&[0xfa, 0x01, 13, 0x0a, 3, b'x', b'-', b'y', 0x12, 6, 0x12, 4]);
        expected.extend_from_slice(b"true");
        assert_eq!(schema.into_bytes(), expected);
    }
}
