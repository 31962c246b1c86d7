//! Leaves: values whose Go types decode and encode themselves.

use jiff::Timestamp;
use serde_json::Value;

use super::{TypeError, Walk};
use crate::gojson::{Leaf, schema_struct};
use crate::quantity;

impl Walk {
    pub(super) fn leaf(&mut self, leaf: Leaf, value: Value) -> Result<Value, TypeError> {
        match (leaf, value) {
            (Leaf::Time, value) => time(&value, false),
            (Leaf::MicroTime, value) => time(&value, true),
            (Leaf::Quantity, value) => quantity_text(&value),
            (Leaf::IntOrString, value) => int_or_string(value),
            (Leaf::SchemaOrBool | Leaf::SchemaOrList | Leaf::SchemaOrStrings, value @ Value::Object(_)) => {
                self.message(schema_struct(), value)
            }
            (Leaf::SchemaOrList, Value::Array(items)) => {
                items.into_iter().map(|item| self.message(schema_struct(), item)).collect()
            }
            (Leaf::Json | Leaf::SchemaOrBool | Leaf::SchemaOrList | Leaf::SchemaOrStrings, value) => Ok(value),
        }
    }
}

fn time(value: &Value, is_micro: bool) -> Result<Value, TypeError> {
    let text = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => text,
        other => return Err(wrong_kind(other, "string")),
    };
    let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let timestamp: Timestamp = text.parse().map_err(|_| {
        TypeError(format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\""))
    })?;
    Ok(if is_micro {
        format!("{timestamp:.6}").into()
    } else {
        // Fractions of a second are cut off, not rounded.
        let whole = Timestamp::from_second(timestamp.as_nanosecond().div_euclid(1_000_000_000) as i64);
        whole.map_err(|_| TypeError(format!("time \"{text}\" is out of range")))?.to_string().into()
    })
}

fn quantity_text(value: &Value) -> Result<Value, TypeError> {
    let text = match value {
        Value::Null => return Ok("0".into()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => return Err(wrong_kind(other, "string")),
    };
    quantity::canonical(&text).map(Value::String).ok_or_else(|| {
        TypeError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned(),
        )
    })
}

fn int_or_string(value: Value) -> Result<Value, TypeError> {
    match value {
        Value::Null => Ok(0.into()),
        Value::String(_) => Ok(value),
        Value::Number(number) if number.as_i64().is_some_and(|value| i32::try_from(value).is_ok()) => {
            Ok(Value::Number(number))
        }
        Value::Number(number) => {
            Err(TypeError(format!("json: cannot unmarshal number {number} into Go value of type int32")))
        }
        other => Err(wrong_kind(&other, "int32")),
    }
}

fn wrong_kind(value: &Value, go_type: &str) -> TypeError {
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) | Value::Null => "number",
    };
    TypeError(format!("json: cannot unmarshal {found} into Go value of type {go_type}"))
}
