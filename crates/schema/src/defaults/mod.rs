//! The defaults of built-in kinds, as upstream's API machinery fills them in.
//!
//! Defaults belong to structs, not to kinds: one walk over an object gives every struct in it what is declared in its
//! OpenAPI definition, what [`table`] lists, and what a rule in code computes. Parents come before their members.

mod pod;
mod rules;
mod service;
mod table;

use serde_json::{Map, Value};

use crate::structs::{self, Cardinality, Field, Struct, Type};
use crate::{Kind, Schema, gojson, quantity};

pub(crate) type Object = Map<String, Value>;

/// Fills in the defaults of an object of a built-in kind; objects of custom kinds stay as they are.
///
/// The object has its canonical form ([`conform`](crate::conform())); values that depend on other objects (addresses of
/// Services, the default StorageClass, the service account of a Pod) are not the concern of defaults.
pub fn defaults(kind: &Kind, object: &mut Value) {
    if let (Some(known), Value::Object(object)) = (structs::find(&kind.definition), object) {
        fill(known, object);
    }
}

fn fill(known: &'static Struct, object: &mut Object) {
    let name = known.name.strip_prefix("io.k8s.").unwrap_or(known.name);
    declared(known, object);
    for (field, default) in table::entries(name) {
        set(known, object, field, default.to_value());
    }
    rules::apply(name, object);
    for field in &known.fields {
        members(field, object);
    }
}

/// What the OpenAPI definition declares: of plain fields only what is not their zero.
fn declared(known: &'static Struct, object: &mut Object) {
    let schema = Schema::of_definition(known.name);
    for (name, property) in schema.properties() {
        let Some(default) = property.default_value().filter(|default| !default.is_object()) else { continue };
        let Some(field) = known.fields.iter().find(|field| field.name == name) else { continue };
        if field.is_pointer || *default != gojson::zero(field.r#type) {
            set(known, object, name, default.clone());
        }
    }
}

/// Sets a field that is absent; in a plain field, zero is absent.
fn set(known: &Struct, object: &mut Object, name: &str, default: Value) {
    let is_pointer = known.fields.iter().any(|field| field.name == name && field.is_pointer);
    let is_absent = match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => !is_pointer && text.is_empty(),
        Some(Value::Number(number)) => !is_pointer && number.as_i64() == Some(0),
        Some(_) => false,
    };
    if is_absent {
        object.insert(name.to_owned(), default);
    }
}

fn members(field: &'static Field, object: &mut Object) {
    let Type::Message(reference) = field.r#type else { return };
    let known = reference.target();
    if field.is_inline {
        return fill(known, object);
    }
    let Some(value) = object.get_mut(field.name) else { return };
    if field.go_type.ends_with("v1.ResourceList") {
        return round_up(value);
    }
    if known.leaf.is_some() {
        return;
    }
    match (field.cardinality, value) {
        (Cardinality::Single, Value::Object(member)) => fill(known, member),
        (Cardinality::Repeated, Value::Array(items)) => {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(|item| fill(known, item));
        }
        (Cardinality::Map, Value::Object(entries)) => {
            entries.values_mut().filter_map(Value::as_object_mut).for_each(|entry| fill(known, entry));
        }
        _ => {}
    }
}

/// Amounts of resources have thousandths as their finest unit.
fn round_up(list: &mut Value) {
    for amount in list.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(rounded) = amount.as_str().and_then(quantity::round_up_to_milli) {
            *amount = rounded.into();
        }
    }
}

/// Whether a member is missing, null or empty.
fn is_empty(object: &Object, name: &str) -> bool {
    match object.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    }
}

/// Sets a member that is missing or empty.
fn set_empty(object: &mut Object, name: &str, default: impl Into<Value>) {
    if is_empty(object, name) {
        object.insert(name.to_owned(), default.into());
    }
}

/// The member `name` as an object, made where it is missing.
fn object_at<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    let member = object.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut()
}

/// The objects in the list `name`.
fn objects_at<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests;
