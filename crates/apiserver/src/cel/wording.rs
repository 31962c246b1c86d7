//! What functions of the library say when they fail, in the words of upstream.

use kube_cel::cel::{ExecutionError, Value as CelValue};

use super::conversion::{failed, not_convertible};

/// What the numbers of quantities look like.
const QUANTITY: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error of a function that was called with these arguments, of which the first is what a method is called on.
pub(super) fn reworded(function: &str, args: &[CelValue], error: ExecutionError) -> ExecutionError {
    let ExecutionError::FunctionError { message, .. } = &error else { return error };
    match (function, args) {
        ("charAt", [_, CelValue::Int(index)]) | ("substring", [_, CelValue::Int(index)]) => {
            failed(format!("index out of range: {index}"))
        }
        ("substring", [_, CelValue::Int(start), CelValue::Int(end)]) if start > end => {
            failed(format!("invalid substring range. start: {start}, end: {end}"))
        }
        ("substring", [CelValue::String(text), CelValue::Int(start), CelValue::Int(end)]) => {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            let index = if (0..=length).contains(start) { end } else { start };
            failed(format!("index out of range: {index}"))
        }
        ("min" | "max", [_]) => failed(format!("{function} called on empty list")),
        ("url", [CelValue::String(text)]) => {
            let why = if text.starts_with(':') { "missing protocol scheme" } else { "invalid URI for request" };
            failed(format!("URL parse error during conversion from string: parse {text:?}: {why}"))
        }
        ("ip", [CelValue::String(text)]) => failed(format!(
            "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
        )),
        ("cidr", [CelValue::String(text)]) => failed(format!(
            "network address parse error during conversion from string: network address parse error during conversion \
             from string: netip.ParsePrefix({text:?}): no '/'"
        )),
        ("quantity", [_]) => failed(QUANTITY),
        ("asInteger", [_]) => failed("cannot convert value to integer"),
        ("semver", [_, ..]) => failed("No Major.Minor.Patch elements found"),
        ("duration", [CelValue::String(_)]) => not_convertible("string", "google.protobuf.Duration"),
        ("timestamp", [CelValue::String(_)]) => not_convertible("string", "google.protobuf.Timestamp"),
        ("double", [CelValue::String(_)]) => not_convertible("string", "double"),
        ("slice", [CelValue::List(items), CelValue::Int(start), CelValue::Int(end)]) => {
            let why = match (start, end) {
                (..0, _) | (_, ..0) => "negative indexes not supported".to_owned(),
                (start, end) if start > end => "start index must be less than or equal to end index".to_owned(),
                _ => format!("list is length {}", items.len()),
            };
            failed(format!("cannot slice({start}, {end}), {why}"))
        }
        ("value" | "int" | "uint", [_]) => failed(message.clone()),
        _ => error,
    }
}
