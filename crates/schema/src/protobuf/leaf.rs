//! Structs that stand for one JSON value: times, quantities, embedded JSON.

use jiff::Timestamp;
use serde_json::Value;

use super::wire::{Reader, Wire, Writer};
use super::{DecodeError, EncodeError, decode, encode, is_protobuf, text};
use crate::gojson::{Leaf, schema_struct};
use crate::{duration, quantity};

type Decoder = fn(&[u8], usize) -> Result<Value, DecodeError>;
type Encoder = fn(&Value) -> Result<Vec<u8>, EncodeError>;

/// The decoder of a leaf.
pub(super) fn decoder(leaf: Leaf) -> Decoder {
    match leaf {
        Leaf::Time => |bytes, _| time(bytes, false),
        Leaf::MicroTime => |bytes, _| time(bytes, true),
        Leaf::Duration => |bytes, _| duration_text(bytes),
        Leaf::Quantity => |bytes, _| quantity_text(bytes),
        Leaf::IntOrString => |bytes, _| int_or_string(bytes),
        Leaf::Json => json,
        Leaf::SchemaOrBool => schema_or_bool,
        Leaf::SchemaOrList => schema_or_list,
        Leaf::SchemaOrStrings => schema_or_strings,
    }
}

/// The encoder of a leaf.
pub(super) fn encoder(leaf: Leaf) -> Encoder {
    match leaf {
        Leaf::Time => |value| encode_time(value, false),
        Leaf::MicroTime => |value| encode_time(value, true),
        Leaf::Duration => encode_duration,
        Leaf::Quantity => encode_quantity,
        Leaf::IntOrString => encode_int_or_string,
        Leaf::Json => encode_json,
        Leaf::SchemaOrBool => encode_schema_or_bool,
        Leaf::SchemaOrList | Leaf::SchemaOrStrings => encode_schema_or_list,
    }
}

fn time(bytes: &[u8], is_micro: bool) -> Result<Value, DecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => seconds = value as i64,
            (2, Wire::Varint(value)) => nanos = value as i32,
            _ => {}
        }
    }
    let micros = if is_micro { nanos / 1000 } else { 0 };
    let timestamp = Timestamp::new(seconds, micros * 1000).map_err(|_| wrong("is no time"))?;
    Ok(if is_micro { format!("{timestamp:.6}") } else { timestamp.to_string() }.into())
}

fn encode_time(value: &Value, is_micro: bool) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer::default();
    if let Some(text) = value.as_str() {
        let timestamp: Timestamp = text.parse().map_err(|_| refused("is no time"))?;
        let nanos = if is_micro { timestamp.subsec_nanosecond() / 1000 * 1000 } else { 0 };
        writer.varint(1, timestamp.as_second() as u64);
        writer.varint(2, i64::from(nanos) as u64);
    }
    Ok(writer.into_bytes())
}

fn duration_text(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut nanos = 0;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if let (1, Wire::Varint(value)) = (number, wire) {
            nanos = value as i64;
        }
    }
    Ok(duration::text(nanos).into())
}

fn encode_duration(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let nanos = match value {
        Value::Null => 0,
        Value::String(text) => duration::nanos(text).ok_or_else(|| refused("is no duration"))?,
        _ => return Err(refused("is no duration")),
    };
    let mut writer = Writer::default();
    writer.varint(1, nanos as u64);
    Ok(writer.into_bytes())
}

fn quantity_text(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut written = String::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            written = text(bytes)?;
        }
    }
    if written.is_empty() {
        return Ok("0".into());
    }
    quantity::canonical(&written).map(Value::String).ok_or_else(|| wrong("is no quantity"))
}

fn encode_quantity(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let written = match value {
        Value::Null => "0".to_owned(),
        Value::String(text) => quantity::canonical(text).ok_or_else(|| refused("is no quantity"))?,
        Value::Number(number) => number.to_string(),
        _ => return Err(refused("is no quantity")),
    };
    let mut writer = Writer::default();
    writer.bytes(1, written.as_bytes());
    Ok(writer.into_bytes())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut is_string, mut int, mut string) = (false, 0, String::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => is_string = value == 1,
            (2, Wire::Varint(value)) => int = value as i32,
            (3, Wire::Bytes(bytes)) => string = text(bytes)?,
            _ => {}
        }
    }
    Ok(if is_string { string.into() } else { int.into() })
}

fn encode_int_or_string(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let (int, string) = match value {
        Value::Null => (0, None),
        Value::Number(number) => (number.as_i64().ok_or_else(|| refused("is no integer"))?, None),
        Value::String(text) => (0, Some(text.as_str())),
        _ => return Err(refused("is neither an integer nor a string")),
    };
    let mut writer = Writer::default();
    writer.varint(1, u64::from(string.is_some()));
    writer.varint(2, int as u64);
    writer.bytes(3, string.unwrap_or_default().as_bytes());
    Ok(writer.into_bytes())
}

fn json(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let mut value = Value::Null;
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(raw)) if is_protobuf(raw) => value = super::decode_inside(raw, None, depth)?,
            (1, Wire::Bytes(raw @ [_, ..])) => value = serde_json::from_slice(raw).map_err(DecodeError::Json)?,
            _ => {}
        }
    }
    Ok(value)
}

fn encode_json(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer::default();
    if !value.is_null() {
        writer.bytes(1, value.to_string().as_bytes());
    }
    Ok(writer.into_bytes())
}

fn schema_or_bool(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let mut value = Value::Bool(false);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Varint(allows)) if value.is_boolean() => value = (allows != 0).into(),
            (2, Wire::Bytes(bytes)) => value = decode::message(schema_struct(), bytes, depth)?,
            _ => {}
        }
    }
    Ok(value)
}

fn encode_schema_or_bool(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer::default();
    writer.varint(1, u64::from(value.as_bool().unwrap_or(true)));
    if value.is_object() {
        writer.bytes(2, &encode::message(schema_struct(), value)?);
    }
    Ok(writer.into_bytes())
}

fn schema_or_list(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    schema_or(bytes, depth, |item| decode::message(schema_struct(), item, depth))
}

fn schema_or_strings(bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    schema_or(bytes, depth, |item| text(item).map(Value::String))
}

/// A schema in field 1, or a list in field 2.
fn schema_or(
    bytes: &[u8],
    depth: usize,
    item: impl Fn(&[u8]) -> Result<Value, DecodeError>,
) -> Result<Value, DecodeError> {
    let (mut schema, mut list) = (Value::Null, Vec::new());
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => schema = decode::message(schema_struct(), bytes, depth)?,
            (2, Wire::Bytes(bytes)) => list.push(item(bytes)?),
            _ => {}
        }
    }
    Ok(if list.is_empty() { schema } else { Value::Array(list) })
}

fn encode_schema_or_list(value: &Value) -> Result<Vec<u8>, EncodeError> {
    let mut writer = Writer::default();
    match value {
        Value::Object(_) => writer.bytes(1, &encode::message(schema_struct(), value)?),
        Value::Array(items) => {
            for item in items {
                match item.as_str() {
                    Some(text) => writer.bytes(2, text.as_bytes()),
                    None => writer.bytes(2, &encode::message(schema_struct(), item)?),
                }
            }
        }
        _ => {}
    }
    Ok(writer.into_bytes())
}

fn wrong(reason: &'static str) -> DecodeError {
    DecodeError::Field { path: String::new(), reason }
}

fn refused(reason: &'static str) -> EncodeError {
    EncodeError::Field { path: String::new(), reason }
}
