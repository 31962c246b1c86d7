//! From wire bytes to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::wire::{Reader, Wire};
use super::{DecodeError, leaf, text};
use crate::gojson::{double, place, zero};
use crate::structs::{Cardinality, Field, Form, Struct, Type};

/// Decodes the message `bytes`; `depth` bounds how deep it may nest.
pub(super) fn message(known: &'static Struct, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Malformed("messages are nested too deep"))?;
    if let Some(decode) = known.leaf.map(leaf::decoder) {
        return decode(bytes, depth);
    }
    let mut values: Vec<Option<Value>> = vec![None; known.fields.len()];
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        let Some(index) = known.fields.iter().position(|field| field.number == number) else { continue };
        let field = &known.fields[index];
        collect(&mut values[index], field, wire, depth).map_err(|error| located(error, known, field))?;
    }
    if known.form == Form::List {
        return Ok(values.into_iter().next().flatten().unwrap_or_else(|| Value::Array(Vec::new())));
    }
    let mut object = Map::new();
    for (field, value) in known.fields.iter().zip(values) {
        place(&mut object, field, value);
    }
    Ok(Value::Object(object))
}

fn located(error: DecodeError, known: &Struct, field: &Field) -> DecodeError {
    match error {
        DecodeError::Field { path, reason } if path.is_empty() => {
            DecodeError::Field { path: format!("{}.{}", known.go_name(), field.name), reason }
        }
        other => other,
    }
}

/// Adds what is on the wire to what was read of the field so far.
fn collect(value: &mut Option<Value>, field: &Field, wire: Wire<'_>, depth: usize) -> Result<(), DecodeError> {
    match field.cardinality {
        Cardinality::Single => *value = Some(single(field.r#type, wire, depth)?),
        Cardinality::Repeated => {
            let item = single(field.r#type, wire, depth)?;
            if let Value::Array(items) = value.get_or_insert_with(|| Value::Array(Vec::new())) {
                items.push(item);
            }
        }
        Cardinality::Map => {
            let (key, entry) = map_entry(field.r#type, wire, depth)?;
            if let Value::Object(members) = value.get_or_insert_with(|| Value::Object(Map::new())) {
                members.insert(key, entry);
            }
        }
    }
    Ok(())
}

fn map_entry(r#type: Type, wire: Wire<'_>, depth: usize) -> Result<(String, Value), DecodeError> {
    let Wire::Bytes(bytes) = wire else { return Err(wrong("is no map entry")) };
    let (mut key, mut value) = (String::new(), None);
    let mut reader = Reader::new(bytes);
    while let Some((number, wire)) = reader.next()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = text(bytes)?,
            (2, wire) => value = Some(single(r#type, wire, depth)?),
            _ => {}
        }
    }
    Ok((key, value.unwrap_or_else(|| zero(r#type))))
}

fn single(r#type: Type, wire: Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
    Ok(match (r#type, wire) {
        (Type::Bool, Wire::Varint(value)) => (value != 0).into(),
        // A negative int32 is written with the bits of an int64.
        (Type::Int32, Wire::Varint(value)) => (value as i32).into(),
        (Type::Int64, Wire::Varint(value)) => (value as i64).into(),
        (Type::Double, Wire::Fixed64(value)) => {
            double(f64::from_bits(value)).ok_or_else(|| wrong("is no finite number"))?
        }
        (Type::String, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Type::Message(reference), Wire::Bytes(bytes)) => message(reference.target(), bytes, depth)?,
        _ => return Err(wrong("is not encoded with the wire type of the field")),
    })
}

fn wrong(reason: &'static str) -> DecodeError {
    DecodeError::Field { path: String::new(), reason }
}
