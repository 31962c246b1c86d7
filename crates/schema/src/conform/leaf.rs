//! Leaves: values whose Go types decode and encode themselves.

use jiff::Timestamp;
use serde_json::Value;

use super::{TypeError, Walk};
use crate::gojson::{Leaf, schema_struct};
use crate::{duration, quantity};

impl Walk {
    pub(super) fn leaf(&mut self, leaf: Leaf, value: Value) -> Result<Value, TypeError> {
        match (leaf, value) {
            (Leaf::Time, value) => self.time(&value, false),
            (Leaf::MicroTime, value) => self.time(&value, true),
            (Leaf::Duration, value) => self.duration(&value),
            (Leaf::Quantity, value) => quantity_text(&value),
            (Leaf::IntOrString, value) => self.int_or_string(value),
            (Leaf::SchemaOrBool | Leaf::SchemaOrList | Leaf::SchemaOrStrings, value @ Value::Object(_)) => {
                self.message(schema_struct(), value)
            }
            (Leaf::SchemaOrList, Value::Array(items)) => {
                items.into_iter().map(|item| self.message(schema_struct(), item)).collect()
            }
            (Leaf::Json | Leaf::SchemaOrBool | Leaf::SchemaOrList | Leaf::SchemaOrStrings, value) => Ok(value),
        }
    }

    fn time(&self, value: &Value, is_micro: bool) -> Result<Value, TypeError> {
        let text = match value {
            Value::Null => return Ok(Value::Null),
            Value::String(text) => text,
            other => return Err(ending(self.mismatch(other, "string"))),
        };
        let layout = if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
        let timestamp: Timestamp = text.parse().map_err(|_| {
            TypeError::ending(format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{text}\" as \"2006\""))
        })?;
        Ok(if is_micro {
            format!("{timestamp:.6}").into()
        } else {
            // Fractions of a second are cut off, not rounded.
            let whole = Timestamp::from_second(timestamp.as_nanosecond().div_euclid(1_000_000_000) as i64);
            whole.map_err(|_| TypeError::ending(format!("time \"{text}\" is out of range")))?.to_string().into()
        })
    }

    fn duration(&self, value: &Value) -> Result<Value, TypeError> {
        let text = match value {
            Value::Null => "0s",
            Value::String(text) => text,
            other => return Err(ending(self.mismatch(other, "string"))),
        };
        let nanos = duration::nanos(text);
        nanos
            .map(|nanos| duration::text(nanos).into())
            .ok_or_else(|| TypeError::ending(format!("time: invalid duration {text:?}")))
    }

    fn int_or_string(&self, value: Value) -> Result<Value, TypeError> {
        match value {
            Value::Null => Ok(0.into()),
            Value::String(_) => Ok(value),
            Value::Number(number) if number.as_i64().is_some_and(|value| i32::try_from(value).is_ok()) => {
                Ok(Value::Number(number))
            }
            Value::Number(number) => Err(ending(self.cannot(&format!("number {number}"), "int32"))),
            other => Err(ending(self.mismatch(&other, "int32"))),
        }
    }
}

fn quantity_text(value: &Value) -> Result<Value, TypeError> {
    let text = match value {
        Value::Null => return Ok("0".into()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // The text of any other value is no quantity.
        other => other.to_string(),
    };
    quantity::canonical(&text).map(Value::String).ok_or_else(|| {
        TypeError::ending("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    })
}

/// A type that decodes itself ends the decoding of all.
fn ending(error: TypeError) -> TypeError {
    TypeError { ends: true, ..error }
}
