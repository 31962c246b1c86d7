//! From wire bytes to JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::wire::{Reader, Wire};
use super::{DecodeError, leaf, text};
use crate::structs::{self, Cardinality, Field, Form, Omit, Struct, Type};

/// Decodes the message `bytes`; `depth` bounds how deep it may nest.
pub(super) fn message(known: &'static Struct, bytes: &[u8], depth: usize) -> Result<Value, DecodeError> {
    let depth = depth.checked_sub(1).ok_or(DecodeError::Malformed("messages are nested too deep"))?;
    if let Some(decode) = leaf::decoder(known.name) {
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
        place(&mut object, field, value, depth)?;
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
    let value = match value {
        Some(value) => value,
        None => zero(r#type, depth)?,
    };
    Ok((key, value))
}

fn single(r#type: Type, wire: Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
    Ok(match (r#type, wire) {
        (Type::Bool, Wire::Varint(value)) => (value != 0).into(),
        // A negative int32 is written with the bits of an int64.
        (Type::Int32, Wire::Varint(value)) => (value as i32).into(),
        (Type::Int64, Wire::Varint(value)) => (value as i64).into(),
        (Type::Double, Wire::Fixed64(value)) => double(f64::from_bits(value))?,
        (Type::String, Wire::Bytes(bytes)) => text(bytes)?.into(),
        (Type::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Type::Message(name), Wire::Bytes(bytes)) => message(find(name), bytes, depth)?,
        _ => return Err(wrong("is not encoded with the wire type of the field")),
    })
}

/// Puts a field into the object as Go's JSON encoder would.
fn place(
    object: &mut Map<String, Value>,
    field: &Field,
    value: Option<Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    let value = match value {
        Some(value) => value,
        None if field.is_pointer || field.cardinality != Cardinality::Single || field.r#type == Type::Bytes => {
            Value::Null
        }
        None if field.omit == Omit::Zero => return Ok(()),
        None => zero(field.r#type, depth)?,
    };
    if field.is_inline {
        if let Value::Object(members) = value {
            object.extend(members);
        }
        return Ok(());
    }
    let is_omitted = field.omit != Omit::Never && is_empty(field, &value);
    if !is_omitted {
        object.insert(field.name.to_owned(), value);
    }
    Ok(())
}

/// Whether `omitempty` leaves the value out: a pointer only where it is nil, a struct never.
fn is_empty(field: &Field, value: &Value) -> bool {
    if field.is_pointer {
        return value.is_null();
    }
    let is_struct = field.cardinality == Cardinality::Single
        && matches!(field.r#type, Type::Message(name) if find(name).form != Form::List);
    match value {
        Value::Null => !is_struct || field.omit == Omit::Zero,
        Value::Bool(value) => !value && !is_struct,
        Value::Number(number) => number.as_f64() == Some(0.0) && !is_struct,
        Value::String(text) => text.is_empty() && !is_struct,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty() && !is_struct,
    }
}

fn zero(r#type: Type, depth: usize) -> Result<Value, DecodeError> {
    Ok(match r#type {
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::String => "".into(),
        Type::Bytes => Value::Null,
        Type::Message(name) if find(name).form == Form::List => Value::Null,
        Type::Message(name) => message(find(name), &[], depth)?,
    })
}

/// A whole number is written without a fraction, as Go does.
fn double(value: f64) -> Result<Value, DecodeError> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| wrong("is no finite number"))
}

fn find(name: &str) -> &'static Struct {
    structs::find(name).expect("a struct refers only to structs of the table")
}

fn wrong(reason: &'static str) -> DecodeError {
    DecodeError::Field { path: String::new(), reason }
}
