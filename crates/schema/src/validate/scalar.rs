//! Strings and numbers.

use serde_json::{Number, Value};

use super::format;
use crate::FieldError;
use crate::node::{Keywords, Node, Type};
use crate::place::Place;

pub(super) fn string(node: &Node, text: &str, path: Place<'_>, errors: &mut Vec<FieldError>) {
    let words = &node.words;
    let length = text.chars().count() as u64;
    if let Some(max) = words.max_length.filter(|max| length > *max) {
        errors.push(FieldError::too_long(path, max));
    }
    if let Some(min) = words.min_length.filter(|min| length < *min) {
        errors.push(FieldError::invalid(path, text, format!("{path} in body should be at least {min} chars long")));
    }
    if node.pattern().is_some_and(|pattern| !pattern.is_match(text)) {
        let pattern = words.pattern.as_deref().unwrap_or_default();
        errors.push(FieldError::invalid(path, text, format!("{path} in body should match '{pattern}'")));
    }
    let is_text = matches!(words.r#type, None | Some(Type::String)) && !words.int_or_string;
    if let Some(format) = words.format.as_deref().filter(|format| is_text && !format::is_valid(format, text)) {
        let detail = format!("{path} in body must be of type {format}: {}", crate::field::quote(text));
        errors.push(FieldError::type_invalid(path, text, detail));
    }
}

pub(super) fn number(words: &Keywords, number: &Number, path: Place<'_>, errors: &mut Vec<FieldError>) {
    let Some(value) = number.as_f64() else { return };
    let mut refuse = |detail: String| {
        errors.push(FieldError::invalid(
            path,
            Value::Number(number.clone()),
            format!("{path} in body should be {detail}"),
        ));
    };
    if let Some(factor) = words.multiple_of.filter(|factor| *factor > 0.0 && !is_multiple(value, *factor)) {
        refuse(format!("a multiple of {factor}"));
    }
    if let Some(max) = words.maximum {
        match words.exclusive_maximum {
            true if value >= max => refuse(format!("less than {max}")),
            false if value > max => refuse(format!("less than or equal to {max}")),
            _ => {}
        }
    }
    if let Some(min) = words.minimum {
        match words.exclusive_minimum {
            true if value <= min => refuse(format!("greater than {min}")),
            false if value < min => refuse(format!("greater than or equal to {min}")),
            _ => {}
        }
    }
    if let Some(wanted) = out_of_range(words, value) {
        errors.push(FieldError::invalid("<nil>", "", format!("Checked value must be of type {wanted} in {path}")));
    }
}

/// What the number is to be, if type and format have no room for it. Formats of others than the type are not asked.
fn out_of_range(words: &Keywords, value: f64) -> Option<String> {
    let format = words.format.as_deref().unwrap_or_default();
    match (words.r#type?, format) {
        (Type::Integer, "int32") => {
            let fits = is_integer(value, f64::from(i32::MIN), f64::from(i32::MAX));
            (!fits).then(|| "integer with format int32".to_owned())
        }
        (Type::Integer, _) => {
            let fits = is_integer(value, i64::MIN as f64, i64::MAX as f64);
            let format = if format == "int64" { "with format int64" } else { "(default format)" };
            (!fits).then(|| format!("integer {format}"))
        }
        (Type::Number, "float") => (value.abs() > f64::from(f32::MAX)).then(|| "number with format float".to_owned()),
        _ => None,
    }
}

fn is_integer(value: f64, min: f64, max: f64) -> bool {
    value.fract() == 0.0 && (min..=max).contains(&value)
}

fn is_multiple(value: f64, factor: f64) -> bool {
    // 0.3 is a multiple of 0.1, although no binary fraction says so.
    const TOLERANCE: f64 = 1e-9;
    let quotient = value / factor;
    (quotient - quotient.round()).abs() <= TOLERANCE * quotient.abs().max(1.0)
}

/// Whether two values are the same: `1` and `1.0` are.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}
