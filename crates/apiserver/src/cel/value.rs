//! JSON as CEL sees it, by the schema.

use std::{collections::HashMap, sync::Arc};

use base64::Engine as _;
use kube_cel::cel::{
    Context, Program, Value as CelValue,
    objects::{Key, Map},
};
use serde_json::{Map as JsonMap, Number, Value};
use windlass_schema::names::CEL_RESERVED;

/// Converts a value; `schema` says which strings are times, which numbers are doubles and which objects are maps.
pub(super) fn convert(value: &Value, schema: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => convert_number(number, schema),
        Value::String(text) => convert_text(text, schema),
        Value::Array(items) => {
            let item = schema.get("items").unwrap_or(&Value::Null);
            CelValue::List(Arc::new(items.iter().map(|value| convert(value, item)).collect()))
        }
        Value::Object(members) => convert_object(members, schema),
    }
}

/// A value of which nothing is known, as expressions of admission see it.
pub(super) fn plain(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(value) => CelValue::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(value) => CelValue::Int(value),
            None => CelValue::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (Key::String(Arc::new(name.clone())), plain(value)));
            CelValue::Map(Map { map: Arc::new(members.collect()) })
        }
    }
}

/// A value of CEL as JSON; `None` if JSON has nothing like it.
pub(super) fn json(value: &CelValue) -> Option<Value> {
    Some(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(value) => (*value).into(),
        CelValue::Int(value) => (*value).into(),
        CelValue::UInt(value) => (*value).into(),
        CelValue::Float(value) => Number::from_f64(*value).map(Value::Number)?,
        CelValue::String(text) => text.as_str().into(),
        CelValue::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes.as_slice()).into(),
        CelValue::List(items) => Value::Array(items.iter().map(json).collect::<Option<_>>()?),
        CelValue::Map(members) => {
            let members = members.map.iter().map(|(key, value)| Some((key.to_string(), json(value)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
        CelValue::Timestamp(time) => time.to_rfc3339().into(),
        CelValue::Duration(duration) => format!("{}s", duration.as_seconds_f64()).into(),
        _ => return None,
    })
}

/// The name of a field as rules write it.
pub(super) fn escape(name: &str) -> String {
    if CEL_RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !name.contains(['_', '.', '-', '/', '$']) {
        return name.to_owned();
    }
    // A single underscore stays; a double one has to be told apart from the escapes.
    name.replace("__", "__underscores__").replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__")
}

fn convert_number(number: &Number, schema: &Value) -> CelValue {
    if schema.get("type").and_then(Value::as_str) == Some("number") {
        return CelValue::Float(number.as_f64().unwrap_or(f64::NAN));
    }
    match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => CelValue::Int(value),
        // Clients write whole numbers as 1.0 at times.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and in range")]
        (None, Some(value)) if value.fract() == 0.0 && value.abs() < 9e18 => CelValue::Int(value as i64),
        (None, value) => CelValue::Float(value.unwrap_or(f64::NAN)),
    }
}

fn convert_text(text: &str, schema: &Value) -> CelValue {
    let plain = || CelValue::String(Arc::new(text.to_owned()));
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return plain();
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => through("timestamp(text)", text).unwrap_or_else(plain),
        Some("date") => through("timestamp(text)", &format!("{text}T00:00:00Z")).unwrap_or_else(plain),
        Some("duration") => through("duration(text)", text).unwrap_or_else(plain),
        Some("byte") => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map_or_else(|_| plain(), |bytes| CelValue::Bytes(Arc::new(bytes)))
        }
        _ => plain(),
    }
}

/// Lets CEL itself read a time, so that it is read in one way only.
fn through(expression: &str, text: &str) -> Option<CelValue> {
    let program = Program::compile(expression).expect("the expression is a constant that parses");
    let mut context = Context::default();
    context.add_variable_from_value("text", text.to_owned());
    program.execute(&context).ok()
}

fn convert_object(members: &JsonMap<String, Value>, schema: &Value) -> CelValue {
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties").filter(|schema| **schema != Value::Bool(false));
    let embedded = schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
    let mut map = HashMap::with_capacity(members.len());
    for (name, value) in members {
        let (key, child) = match (properties.and_then(|known| known.get(name)), additional) {
            (Some(child), _) => (escape(name), child),
            (None, Some(child)) => (name.clone(), child),
            (None, None) if embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") => {
                (name.clone(), &Value::Null)
            }
            // What the schema does not declare, rules cannot see.
            (None, None) if properties.is_some() => continue,
            (None, None) => (escape(name), &Value::Null),
        };
        // A field that is null is not there, whether it may be null or not.
        if value.is_null() && additional.is_none() {
            continue;
        }
        map.insert(Key::String(Arc::new(key)), convert(value, child));
    }
    CelValue::Map(Map { map: Arc::new(map) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_names_are_escaped() {
        let rows = [
            ("size", "size"),
            ("namespace", "__namespace__"),
            ("a-b", "a__dash__b"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("a_b", "a_b"),
        ];
        for (name, escaped) in rows {
            assert_eq!(escape(name), escaped);
        }
    }
}
