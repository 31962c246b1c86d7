//! JSON of a built-in kind, read as Go's typed decoder reads it and written as its encoder writes it.
//!
//! One walk finds wrong types, names unknown fields and gives the canonical form: zeros left out or written as the tags
//! say, quantities and times in their one form, `null` where a value is nil.

mod leaf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::gojson::{self, double, place};
use crate::structs::{self, Cardinality, Field, Form, Struct, Type};

/// How deep an object may nest.
const DEPTH_MAX: usize = 128;

/// How many unknown fields are named, as in Go's decoder; the paths of all of them could be far longer than the object.
const UNKNOWN_MAX: usize = 100;

/// An object in canonical form, and what was not known in it.
#[derive(Debug)]
pub struct Conformed {
    /// The object without the unknown fields.
    pub object: Value,
    /// The paths of the unknown fields: `spec.containers[0].bar`.
    pub unknown: Vec<String>,
}

/// Why an object cannot be decoded, worded as Go's decoder words it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TypeError(String);

/// Reads `object` as the built-in struct with the OpenAPI name `definition` ([`Kind::definition`](crate::Kind)).
///
/// Not for the body of a server-side apply: there a field that is not written is not owned. An unknown `definition`
/// gives the object back unchanged.
///
/// # Errors
/// A value does not have the type of its field.
pub fn conform(definition: &str, object: Value) -> Result<Conformed, TypeError> {
    let Some(known) = structs::find(definition) else { return Ok(Conformed { object, unknown: Vec::new() }) };
    let mut walk = Walk::default();
    let object = walk.message(known, object)?;
    Ok(Conformed { object, unknown: walk.unknown })
}

/// What a value is, as decoders name it in errors.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The paths of the fields of `object` that the struct does not have; an object of a wrong type has none.
pub(crate) fn unknown_fields(definition: &str, object: &Value) -> Vec<String> {
    conform(definition, object.clone()).map(|conformed| conformed.unknown).unwrap_or_default()
}

#[derive(Default)]
struct Walk {
    unknown: Vec<String>,
    /// Where the walk is, with the indexes of lists.
    path: Vec<Segment>,
    /// The innermost struct, as the decoder names it in errors.
    in_struct: &'static str,
}

enum Segment {
    Field(&'static str),
    Key(String),
    Index(usize),
}

impl Walk {
    fn message(&mut self, known: &'static Struct, value: Value) -> Result<Value, TypeError> {
        if self.path.len() > DEPTH_MAX {
            return Err(TypeError("exceeded max depth".to_owned()));
        }
        if let Some(leaf) = known.leaf {
            return self.leaf(leaf, value);
        }
        if known.form == Form::List {
            let field = known.fields.first().expect("a list has its items");
            return self.list(field, known.go_type(), value);
        }
        let mut members = match value {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            other => return Err(self.mismatch(&other, &known.go_type())),
        };
        let outer = std::mem::replace(&mut self.in_struct, known.go_name());
        let mut object = Map::new();
        self.fields(known, &mut members, &mut object)?;
        for name in members.keys().take(UNKNOWN_MAX.saturating_sub(self.unknown.len())) {
            self.path.push(Segment::Key(name.clone()));
            self.unknown.push(self.indexed_path());
            self.path.pop();
        }
        self.in_struct = outer;
        Ok(Value::Object(object))
    }

    /// Moves the known fields of `known`, inlined ones included, from `members` to `object`.
    fn fields(
        &mut self,
        known: &'static Struct,
        members: &mut Map<String, Value>,
        object: &mut Map<String, Value>,
    ) -> Result<(), TypeError> {
        if known.form == Form::Object {
            for name in ["apiVersion", "kind"] {
                self.type_meta(name, members.remove(name), object)?;
            }
        }
        for field in &known.fields {
            match field.r#type {
                Type::Message(reference) if field.is_inline => self.fields(reference.target(), members, object)?,
                _ => {
                    self.path.push(Segment::Field(field.name));
                    let value = members.remove(field.name).filter(|value| !value.is_null());
                    let value = value.map(|value| self.field(field, value)).transpose()?;
                    self.path.pop();
                    place(object, field, value);
                }
            }
        }
        Ok(())
    }

    fn type_meta(
        &mut self,
        name: &'static str,
        value: Option<Value>,
        object: &mut Map<String, Value>,
    ) -> Result<(), TypeError> {
        match value {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => {
                object.insert(name.to_owned(), text.into());
            }
            Some(other) => {
                self.path.push(Segment::Field(name));
                return Err(self.mismatch(&other, "string"));
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &'static Field, value: Value) -> Result<Value, TypeError> {
        let go_type = field.go_type.trim_start_matches('*');
        match field.cardinality {
            Cardinality::Single => self.single(field.r#type, go_type, value),
            Cardinality::Repeated => self.list(field, go_type.to_owned(), value),
            Cardinality::Map => self.map(field, go_type, value),
        }
    }

    fn list(&mut self, field: &'static Field, go_type: String, value: Value) -> Result<Value, TypeError> {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return Ok(Value::Null),
            other => return Err(self.mismatch(&other, &go_type)),
        };
        let item_type = go_type.strip_prefix("[]").unwrap_or("string").trim_start_matches('*').to_owned();
        let conformed = items.into_iter().enumerate().map(|(index, item)| {
            self.path.push(Segment::Index(index));
            let item = self.single(field.r#type, &item_type, item)?;
            self.path.pop();
            Ok(item)
        });
        conformed.collect()
    }

    fn map(&mut self, field: &'static Field, go_type: &str, value: Value) -> Result<Value, TypeError> {
        let Value::Object(members) = value else { return Err(self.mismatch(&value, go_type)) };
        let value_type = go_type.rsplit(']').next().unwrap_or(go_type).to_owned();
        let conformed = members.into_iter().map(|(key, value)| {
            self.path.push(Segment::Key(key.clone()));
            let value = self.single(field.r#type, &value_type, value)?;
            self.path.pop();
            Ok((key, value))
        });
        conformed.collect::<Result<Map<_, _>, _>>().map(Value::Object)
    }

    fn single(&mut self, r#type: Type, go_type: &str, value: Value) -> Result<Value, TypeError> {
        match (r#type, value) {
            (Type::Message(reference), value) => self.message(reference.target(), value),
            (_, Value::Null) => Ok(gojson::zero(r#type)),
            (Type::Bool, value @ Value::Bool(_)) | (Type::String, value @ Value::String(_)) => Ok(value),
            (Type::Int32 | Type::Int64, Value::Number(number)) => {
                let fits = number.as_i64().is_some_and(|value| r#type == Type::Int64 || i32::try_from(value).is_ok());
                let description = format!("number {number}");
                fits.then_some(Value::Number(number)).ok_or_else(|| self.cannot(&description, go_type))
            }
            (Type::Double, Value::Number(number)) => {
                number.as_f64().and_then(double).ok_or_else(|| self.cannot(&format!("number {number}"), go_type))
            }
            (Type::Bytes, Value::String(text)) => base64_text(&text),
            (_, other) => Err(self.mismatch(&other, go_type)),
        }
    }

    fn mismatch(&self, value: &Value, go_type: &str) -> TypeError {
        self.cannot(json_type(value), go_type)
    }

    fn cannot(&self, found: &str, go_type: &str) -> TypeError {
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|segment| match segment {
                Segment::Field(name) => Some(*name),
                Segment::Key(_) | Segment::Index(_) => None,
            })
            .collect();
        let target = if fields.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.in_struct, fields.join("."))
        };
        TypeError(format!("json: cannot unmarshal {found} into Go {target} of type {go_type}"))
    }

    fn indexed_path(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Index(index) => path.push_str(&format!("[{index}]")),
                Segment::Field(name) => push_name(&mut path, name),
                Segment::Key(name) => push_name(&mut path, name),
            }
        }
        path
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn base64_text(text: &str) -> Result<Value, TypeError> {
    // Go skips line breaks.
    let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    match STANDARD.decode(&text) {
        Ok(_) => Ok(text.into()),
        Err(base64::DecodeError::InvalidByte(offset, _) | base64::DecodeError::InvalidLastSymbol(offset, _)) => {
            Err(TypeError(format!("illegal base64 data at input byte {offset}")))
        }
        Err(_) => Err(TypeError(format!("illegal base64 data at input byte {}", text.len() / 4 * 4))),
    }
}

#[cfg(test)]
mod tests;
