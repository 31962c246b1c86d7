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

/// Kinds that Kubernetes stores as JSON.
const STORED_AS_JSON: [&str; 2] = ["io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator."];
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
#[error("{message}")]
pub struct TypeError {
    message: String,
    /// Whether decoding ends here. Go goes on after a wrong type, and tells of the first one if nothing ends it.
    ends: bool,
}

impl TypeError {
    fn ending(message: impl Into<String>) -> Self {
        Self { message: message.into(), ends: true }
    }

    fn noted(message: impl Into<String>) -> Self {
        Self { message: message.into(), ends: false }
    }
}

/// The error of several members that Go would tell: the first that ends decoding, or else the first.
///
/// "First" is by name, which is the order that clients write members in; the document's own is not kept.
#[derive(Default)]
struct Worst<'a>(Option<(&'a str, TypeError)>);

impl<'a> Worst<'a> {
    fn add(&mut self, name: &'a str, error: TypeError) {
        let order = |name: &'a str, error: &TypeError| (!error.ends, name);
        if self.0.as_ref().is_none_or(|(first, worst)| order(name, &error) < order(first, worst)) {
            self.0 = Some((name, error));
        }
    }

    fn into_result(self) -> Result<(), TypeError> {
        self.0.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Reads `object` as the built-in struct with the OpenAPI name `definition` ([`Kind::definition`](crate::Kind)).
///
/// Not for the body of a server-side apply: there a field that is not written is not owned. An unknown `definition`
/// gives the object back unchanged.
///
/// # Errors
/// A value does not have the type of its field.
pub fn conform(definition: &str, object: Value) -> Result<Conformed, TypeError> {
    walk(definition, object, false)
}

/// Makes of the object what storing and reading makes of it: protobuf cannot tell an empty list from none, or no bytes from
/// `null`.
///
/// Kinds that Kubernetes stores as JSON stay as they are.
pub fn settle(definition: &str, object: &mut Value) {
    let as_json = STORED_AS_JSON.iter().any(|group| definition.starts_with(group));
    if !as_json
        && has_empty(object)
        && let Ok(conformed) = walk(definition, object.clone(), true)
    {
        *object = conformed.object;
    }
}

fn has_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty),
        Value::Object(members) => members.values().any(has_empty),
        Value::Null => true,
        _ => false,
    }
}

fn walk(definition: &str, object: Value, drops_empty: bool) -> Result<Conformed, TypeError> {
    let Some(known) = structs::find(definition) else { return Ok(Conformed { object, unknown: Vec::new() }) };
    let mut walk = Walk { drops_empty, ..Walk::default() };
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
    /// Whether empty lists and maps are nothing.
    drops_empty: bool,
    unknown: Vec<String>,
    /// Where the walk is, with the indexes of lists.
    path: Vec<Segment>,
    /// The innermost struct, as the decoder names it in errors.
    in_struct: &'static str,
}

enum Segment {
    Field(&'static str),
    /// A struct whose members stand directly in the outer map: only errors of the decoder name it.
    Inline(&'static str),
    Key(String),
    Index(usize),
}

impl Walk {
    fn message(&mut self, known: &'static Struct, value: Value) -> Result<Value, TypeError> {
        if self.path.len() > DEPTH_MAX {
            return Err(TypeError::ending("exceeded max depth"));
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
        let mut worst = Worst::default();
        self.fields(known, &mut members, &mut object, &mut worst);
        worst.into_result()?;
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
        worst: &mut Worst<'static>,
    ) {
        if known.form == Form::Object {
            for name in ["apiVersion", "kind"] {
                self.type_meta(name, members.remove(name), object).unwrap_or_else(|error| worst.add(name, error));
            }
        }
        for field in &known.fields {
            match field.r#type {
                Type::Message(reference) if field.is_inline => {
                    let inner = reference.target();
                    self.within(Segment::Inline(inner.go_name()), |walk| walk.fields(inner, members, object, worst));
                }
                _ => {
                    let value = members.remove(field.name).filter(|value| !value.is_null());
                    let read = |walk: &mut Self| value.map(|value| walk.field(field, value)).transpose();
                    match self.within(Segment::Field(field.name), read) {
                        Ok(value) => {
                            place(object, field, value.filter(|value| !self.drops_empty || !is_bare(field, value)))
                        }
                        Err(error) => worst.add(field.name, error),
                    }
                }
            }
        }
    }

    /// Does something one step deeper, and comes back whatever comes of it.
    fn within<T>(&mut self, segment: Segment, inside: impl FnOnce(&mut Self) -> T) -> T {
        let in_struct = self.in_struct;
        self.path.push(segment);
        let result = inside(self);
        self.path.pop();
        self.in_struct = in_struct;
        result
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
            Some(other) => return Err(self.within(Segment::Field(name), |walk| walk.mismatch(&other, "string"))),
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
        let mut worst = Worst::default();
        let mut conformed = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let read = |walk: &mut Self| walk.single(field.r#type, &item_type, item);
            match self.within(Segment::Index(index), read) {
                Ok(item) => conformed.push(item),
                // All under one name: of equals the first stays.
                Err(error) => worst.add("", error),
            }
        }
        worst.into_result().map(|()| conformed.into())
    }

    fn map(&mut self, field: &'static Field, go_type: &str, value: Value) -> Result<Value, TypeError> {
        let Value::Object(members) = value else { return Err(self.mismatch(&value, go_type)) };
        let value_type = go_type.split_once(']').map_or(go_type, |(_, value_type)| value_type);
        // Stored as nothing, which is read as no bytes; until then it is something else, also for who owns it.
        let nothing = if self.drops_empty { "".into() } else { Value::Null };
        let mut worst = Worst::default();
        let mut conformed = Map::new();
        for (key, value) in members {
            let read = |walk: &mut Self| match value {
                Value::Null if field.r#type == Type::Bytes => Ok(nothing.clone()),
                value => walk.single(field.r#type, value_type, value),
            };
            match self.within(Segment::Key(key.clone()), read) {
                Ok(value) => drop(conformed.insert(key, value)),
                Err(error) => worst.add("", error),
            }
        }
        worst.into_result().map(|()| conformed.into())
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
            (Type::Bytes, Value::Array(items)) => self.bytes(&items),
            (_, other) => Err(self.mismatch(&other, go_type)),
        }
    }

    /// Bytes as a list of numbers, which Go reads too.
    fn bytes(&self, items: &[Value]) -> Result<Value, TypeError> {
        let byte = |item: &Value| match item {
            Value::Null => Ok(0),
            Value::Number(number) => {
                let byte = number.as_u64().and_then(|number| u8::try_from(number).ok());
                byte.ok_or_else(|| self.cannot(&format!("number {number}"), "uint8"))
            }
            other => Err(self.mismatch(other, "uint8")),
        };
        Ok(STANDARD.encode(items.iter().map(byte).collect::<Result<Vec<u8>, _>>()?).into())
    }

    fn mismatch(&self, value: &Value, go_type: &str) -> TypeError {
        self.cannot(json_type(value), go_type)
    }

    fn cannot(&self, found: &str, go_type: &str) -> TypeError {
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|segment| match segment {
                Segment::Field(name) | Segment::Inline(name) => Some(*name),
                Segment::Key(_) | Segment::Index(_) => None,
            })
            .collect();
        let target = if fields.is_empty() {
            "value".to_owned()
        } else {
            format!("struct field {}.{}", self.in_struct, fields.join("."))
        };
        let go_type = go_type.replace("[]byte", "[]uint8");
        TypeError::noted(format!("json: cannot unmarshal {found} into Go {target} of type {go_type}"))
    }

    fn indexed_path(&self) -> String {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Index(index) => path.push_str(&format!("[{index}]")),
                Segment::Inline(_) => {}
                Segment::Field(name) => push_name(&mut path, name),
                Segment::Key(name) => push_name(&mut path, name),
            }
        }
        path
    }
}

/// Whether this is a list or map of nothing.
fn is_bare(field: &Field, value: &Value) -> bool {
    let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    field.cardinality != Cardinality::Single && is_empty
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
            Err(TypeError::noted(format!("illegal base64 data at input byte {offset}")))
        }
        Err(_) => Err(TypeError::noted(format!("illegal base64 data at input byte {}", text.len() / 4 * 4))),
    }
}

#[cfg(test)]
mod tests;
