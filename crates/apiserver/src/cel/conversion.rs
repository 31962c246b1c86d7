//! Conversions between types of values, and the parts of times, as upstream does them.

use std::sync::Arc;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use kube_cel::cel::{ExecutionError, Value as CelValue, objects::Opaque};

use super::{library, operation::Outcome};

/// A type as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypeValue(String);

impl Opaque for TypeValue {
    fn runtime_type_name(&self) -> &str {
        "type"
    }
}

/// A type as a value.
pub(super) fn type_value(name: &str) -> CelValue {
    CelValue::Opaque(Arc::new(TypeValue(name.to_owned())))
}

/// An error that is told in these words.
pub(super) fn failed(message: impl Into<String>) -> ExecutionError {
    ExecutionError::FunctionError { function: String::new(), message: message.into() }
}

/// The name of the type of a value.
pub(super) fn type_name(value: &CelValue) -> &str {
    match value {
        CelValue::Int(_) => "int",
        CelValue::UInt(_) => "uint",
        CelValue::Float(_) => "double",
        CelValue::Bool(_) => "bool",
        CelValue::String(_) => "string",
        CelValue::Bytes(_) => "bytes",
        CelValue::List(_) => "list",
        CelValue::Map(_) => "map",
        CelValue::Null => "null_type",
        CelValue::Timestamp(_) => "google.protobuf.Timestamp",
        CelValue::Duration(_) => "google.protobuf.Duration",
        CelValue::Opaque(other) => other.runtime_type_name(),
        CelValue::Function(..) => "function",
    }
}

/// What a conversion to a type yields; `None` if the library does it.
pub(super) fn converted(wanted: &str, value: &CelValue) -> Option<Outcome> {
    let text = |text: String| Ok(CelValue::String(Arc::new(text)));
    Some(match (wanted, value) {
        ("type", value) => Ok(type_value(type_name(value))),
        ("dyn", value) => Ok(value.clone()),
        ("bool", CelValue::Bool(_)) => Ok(value.clone()),
        ("bool", CelValue::String(given)) => match given.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(CelValue::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(CelValue::Bool(false)),
            _ => Err(not_convertible("string", "bool")),
        },
        ("int", CelValue::Timestamp(time)) => Ok(CelValue::Int(time.timestamp())),
        ("int", CelValue::Duration(duration)) => {
            duration.num_nanoseconds().map(CelValue::Int).ok_or_else(|| failed("integer overflow"))
        }
        ("int", CelValue::String(given)) => {
            given.parse().map(CelValue::Int).map_err(|_| not_convertible("string", "int"))
        }
        ("uint", CelValue::String(given)) => {
            given.parse().map(CelValue::UInt).map_err(|_| not_convertible("string", "uint"))
        }
        ("uint", CelValue::Int(number)) => {
            u64::try_from(*number).map(CelValue::UInt).map_err(|_| failed("unsigned integer overflow"))
        }
        ("string", CelValue::Bool(truth)) => text(truth.to_string()),
        ("string", CelValue::Timestamp(time)) => text(time.to_rfc3339().replace("+00:00", "Z")),
        ("string", CelValue::Duration(duration)) => text(format!("{}s", duration.as_seconds_f64())),
        ("string", CelValue::Null) => Err(failed("no such overload: string(null_type)")),
        ("timestamp", CelValue::Int(seconds)) => match Timestamp::from_second(*seconds) {
            Ok(time) => library::call("timestamp", None, &[CelValue::String(Arc::new(time.to_string()))]),
            Err(_) => Err(failed("timestamp overflow")),
        },
        _ => return None,
    })
}

/// Whether a value is formatted as a text that is made of it first.
pub(super) fn is_worded(value: &CelValue) -> bool {
    match value {
        CelValue::Timestamp(_) | CelValue::Duration(_) => true,
        CelValue::Opaque(other) => other.downcast_ref::<TypeValue>().is_some(),
        CelValue::List(items) => items.iter().any(is_worded),
        _ => false,
    }
}

/// The text that is formatted in place of a value.
pub(super) fn worded(value: &CelValue) -> CelValue {
    match value {
        CelValue::Timestamp(_) | CelValue::Duration(_) => {
            converted("string", value).and_then(Result::ok).unwrap_or_else(|| value.clone())
        }
        CelValue::Opaque(other) => match other.downcast_ref::<TypeValue>() {
            Some(TypeValue(name)) => CelValue::String(Arc::new(name.clone())),
            None => value.clone(),
        },
        CelValue::List(items) => CelValue::List(Arc::new(items.iter().map(worded).collect())),
        other => other.clone(),
    }
}

/// The error of a text that is none of what it is converted to.
pub(super) fn not_convertible(from: &str, to: &str) -> ExecutionError {
    failed(format!("type conversion error from '{from}' to '{to}'"))
}

/// A part of a time, in a time zone or in UTC; `None` if it is no such function.
pub(super) fn part_of_time(function: &str, time: &CelValue, zone: Option<&CelValue>) -> Option<Outcome> {
    let CelValue::Timestamp(time) = time else { return None };
    let nanoseconds = i32::try_from(time.timestamp_subsec_nanos()).ok()?;
    let time = Timestamp::new(time.timestamp(), nanoseconds).ok()?;
    let zone = match zone {
        None => TimeZone::UTC,
        Some(CelValue::String(name)) => match zone_of(name) {
            Some(zone) => zone,
            None => return Some(Err(failed(format!("unknown time zone {name}")))),
        },
        Some(_) => return None,
    };
    let zoned: Zoned = time.to_zoned(zone);
    let number = match function {
        "getFullYear" => i64::from(zoned.year()),
        "getMonth" => i64::from(zoned.month()) - 1,
        "getDayOfYear" => i64::from(zoned.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(zoned.day()) - 1,
        "getDate" => i64::from(zoned.day()),
        "getDayOfWeek" => i64::from(zoned.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(zoned.hour()),
        "getMinutes" => i64::from(zoned.minute()),
        "getSeconds" => i64::from(zoned.second()),
        "getMilliseconds" => i64::from(zoned.millisecond()),
        _ => return None,
    };
    Some(Ok(CelValue::Int(number)))
}

/// A time zone by its name, or by its distance from UTC such as `-08:00`.
fn zone_of(name: &str) -> Option<TimeZone> {
    let Some((hours, minutes)) = name.split_once(':') else { return TimeZone::get(name).ok() };
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok().filter(|hours| *hours < 25)?;
    let minutes: i32 = minutes.parse().ok().filter(|minutes| (0..60).contains(minutes))?;
    let offset = jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?;
    Some(TimeZone::fixed(offset))
}
