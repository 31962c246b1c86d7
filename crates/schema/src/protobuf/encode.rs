//! From JSON to wire bytes, as Go's generated encoders write them: by ascending number, zeros of plain fields included.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::wire::Writer;
use super::{EncodeError, leaf};
use crate::structs::{Cardinality, Field, Form, Struct, Type};

/// Encodes `value` as the message `known`.
pub(super) fn message(known: &'static Struct, value: &Value) -> Result<Vec<u8>, EncodeError> {
    if let Some(encode) = known.leaf.map(leaf::encoder) {
        return encode(value);
    }
    let mut writer = Writer::default();
    if known.form == Form::List {
        let field = known.fields.first().expect("a list has its items");
        for item in value.as_array().into_iter().flatten() {
            single(&mut writer, field.number, field.r#type, item)?;
        }
        return Ok(writer.into_bytes());
    }
    let empty = Map::new();
    let object = match value {
        Value::Object(object) => object,
        Value::Null => &empty,
        _ => return Err(refused("is no object")),
    };
    let mut fields: Vec<&Field> = known.fields.iter().collect();
    fields.sort_by_key(|field| field.number);
    for field in fields {
        let value = if field.is_inline { Some(value) } else { object.get(field.name) };
        write_field(&mut writer, field, value.unwrap_or(&Value::Null)).map_err(|error| located(error, known, field))?;
    }
    Ok(writer.into_bytes())
}

fn located(error: EncodeError, known: &Struct, field: &Field) -> EncodeError {
    match error {
        EncodeError::Field { path, reason } if path.is_empty() => {
            EncodeError::Field { path: format!("{}.{}", known.go_name(), field.name), reason }
        }
        other => other,
    }
}

fn write_field(writer: &mut Writer, field: &Field, value: &Value) -> Result<(), EncodeError> {
    match (field.cardinality, value) {
        (Cardinality::Single, Value::Null) if is_absent_as_null(field) => Ok(()),
        (Cardinality::Single, value) => single(writer, field.number, field.r#type, value),
        (_, Value::Null) => Ok(()),
        (Cardinality::Repeated, Value::Array(items)) => {
            items.iter().try_for_each(|item| single(writer, field.number, field.r#type, item))
        }
        (Cardinality::Map, Value::Object(members)) => {
            members.iter().try_for_each(|(key, member)| map_entry(writer, field, key, member))
        }
        (Cardinality::Repeated, _) => Err(refused("is no list")),
        (Cardinality::Map, _) => Err(refused("is no map")),
    }
}

/// Whether a missing value is not written at all: what can be nil in Go.
fn is_absent_as_null(field: &Field) -> bool {
    field.is_pointer
        || match field.r#type {
            Type::Bytes => true,
            Type::Message(reference) => reference.target().form == Form::List,
            _ => false,
        }
}

fn map_entry(writer: &mut Writer, field: &Field, key: &str, value: &Value) -> Result<(), EncodeError> {
    let mut entry = Writer::default();
    entry.bytes(1, key.as_bytes());
    single(&mut entry, 2, field.r#type, value)?;
    writer.bytes(field.number, &entry.into_bytes());
    Ok(())
}

fn single(writer: &mut Writer, number: u32, r#type: Type, value: &Value) -> Result<(), EncodeError> {
    match (r#type, value) {
        (Type::Message(reference), value) => writer.bytes(number, &message(reference.target(), value)?),
        (Type::Bool, Value::Null) => writer.varint(number, 0),
        (Type::Bool, Value::Bool(value)) => writer.varint(number, u64::from(*value)),
        (Type::Int32 | Type::Int64, Value::Null) => writer.varint(number, 0),
        (Type::Int32 | Type::Int64, Value::Number(value)) => {
            let value = value.as_i64().ok_or_else(|| refused("is no integer"))?;
            writer.varint(number, value as u64);
        }
        (Type::Double, Value::Null) => writer.fixed64(number, 0),
        (Type::Double, Value::Number(value)) => {
            writer.fixed64(number, value.as_f64().ok_or_else(|| refused("is no number"))?.to_bits());
        }
        (Type::String, Value::Null) => writer.bytes(number, b""),
        (Type::String, Value::String(text)) => writer.bytes(number, text.as_bytes()),
        (Type::Bytes, Value::Null) => writer.bytes(number, b""),
        (Type::Bytes, Value::String(text)) => {
            writer.bytes(number, &STANDARD.decode(text).map_err(|_| refused("is not base64"))?);
        }
        _ => return Err(refused("does not have the type of the field")),
    }
    Ok(())
}

fn refused(reason: &'static str) -> EncodeError {
    EncodeError::Field { path: String::new(), reason }
}
