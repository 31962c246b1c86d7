//! Values against a schema, with the wording of Kubernetes' validator.

mod combine;
mod format;
mod lists;
mod scalar;

use serde_json::{Map, Value};

use crate::node::{Additional, Keywords, Node, Type};
use crate::place::Place;
use crate::{FieldError, Schema};

impl Schema {
    /// Checks `value` against the schema; `path` is where it stands in its object, empty for the object itself.
    ///
    /// With the `old` value, what did not change is not refused again, as far as old and new can be matched.
    pub fn validate(&self, value: &Value, old: Option<&Value>, path: &str) -> Vec<FieldError> {
        let path = Place::Start(path);
        let mut errors = check(self, value, old, path).errors;
        let was_refused = old.is_some_and(|old| !lists::check(self, old, path).is_empty());
        if !was_refused {
            errors.extend(lists::check(self, value, path));
        }
        errors
    }
}

/// What a check found.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How many values were looked at: of several alternatives, the one that got furthest explains best.
    seen: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.seen += other.seen;
    }
}

fn check(schema: &Schema, value: &Value, old: Option<&Value>, path: Place<'_>) -> Outcome {
    if old == Some(value) {
        return Outcome { errors: Vec::new(), seen: 1 };
    }
    let node = schema.node();
    let words = &node.words;
    let mut outcome = Outcome { errors: Vec::new(), seen: 1 };
    outcome.errors.extend(wrong_type(words, value, path));
    if !value.is_null() {
        combine::check(words, value, path, &mut outcome);
    }
    match value {
        Value::String(text) => scalar::string(node, text, path, &mut outcome.errors),
        Value::Number(number) => scalar::number(words, number, path, &mut outcome.errors),
        Value::Array(items) => list(node, items, old, path, &mut outcome),
        _ => {}
    }
    outcome.errors.extend(unsupported(words, value, path));
    if let Value::Object(members) = value {
        object(words, members, old, path, &mut outcome);
    }
    outcome
}

fn wrong_type(words: &Keywords, value: &Value, path: Place<'_>) -> Option<FieldError> {
    let expected: &[Type] = match (words.int_or_string, &words.r#type) {
        (true, _) => &[Type::Integer, Type::String],
        (false, Some(r#type)) => std::slice::from_ref(r#type),
        (false, None) => return None,
    };
    let found = type_of(value);
    let fits = match value {
        Value::Null => words.nullable,
        Value::Number(number) => {
            let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            expected.contains(&Type::Number) || (is_whole && expected.contains(&Type::Integer))
        }
        _ => expected.iter().any(|expected| expected.name() == found),
    };
    if fits {
        return None;
    }
    // Of what has a format, the format is told, and that of what was found.
    let formats = match (value, words.format.as_deref()) {
        (Value::Bool(_) | Value::Object(_), Some(format)) => Some((format, "")),
        (Value::Number(number), Some(format)) => Some((format, if number.is_f64() { "float64" } else { "int64" })),
        _ => None,
    };
    if let Some((format, found)) = formats {
        let detail = format!("{path} in body must be of type {format}: \"{found}\"");
        return Some(FieldError::type_invalid(path, found, detail));
    }
    let expected = expected.iter().map(|expected| expected.name()).collect::<Vec<_>>().join(",");
    let detail = format!("{path} in body must be of type {expected}: \"{found}\"");
    Some(FieldError::type_invalid(path, found, detail))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn unsupported(words: &Keywords, value: &Value, path: Place<'_>) -> Option<FieldError> {
    // A null is none of the values, even where it is allowed and even if the list has it: so does Kubernetes decide.
    let is_listed = || !value.is_null() && words.r#enum.iter().any(|allowed| scalar::equal(allowed, value));
    if words.r#enum.is_empty() || is_listed() {
        return None;
    }
    let supported: Vec<String> = words
        .r#enum
        .iter()
        .map(|allowed| match allowed {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect();
    Some(FieldError::not_supported(path, value.clone(), &supported))
}

fn list(node: &Node, items: &[Value], old: Option<&Value>, path: Place<'_>, outcome: &mut Outcome) {
    let words = &node.words;
    if let Some(schema) = &words.items {
        let counterparts = lists::Counterparts::of(node, old);
        for (index, value) in items.iter().enumerate() {
            let old = counterparts.find(value);
            outcome.merge(check(schema, value, old, Place::Item(&path, index)));
        }
    }
    if let Some(min) = words.min_items.filter(|min| (items.len() as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} items");
        outcome.errors.push(FieldError::invalid(path, items.len(), detail));
    }
    if let Some(max) = words.max_items.filter(|max| items.len() as u64 > *max) {
        outcome.errors.push(FieldError::too_many(path, items.len(), max));
    }
    let has_duplicates = || (1..items.len()).any(|index| items[..index].contains(&items[index]));
    if words.unique_items && has_duplicates() {
        outcome.errors.push(FieldError::invalid(path, "", format!("{path} in body shouldn't contain duplicates")));
    }
}

fn object(words: &Keywords, members: &Map<String, Value>, old: Option<&Value>, path: Place<'_>, outcome: &mut Outcome) {
    let count = members.len();
    if let Some(min) = words.min_properties.filter(|min| (count as u64) < *min) {
        let detail = format!("{path} in body should have at least {min} properties");
        outcome.errors.push(FieldError::invalid(path, count, detail));
    }
    if let Some(max) = words.max_properties.filter(|max| count as u64 > *max) {
        outcome.errors.push(FieldError::too_many(path, count, max));
    }
    for (name, value) in members {
        let old = old.and_then(|old| old.get(name));
        let place = Place::Member(&path, name);
        match (words.properties.get(name), &words.additional_properties) {
            (Some(property), _) => outcome.merge(check(property, value, old, place)),
            (None, Some(Additional::Of(schema))) => outcome.merge(check(schema, value, old, place)),
            (None, Some(Additional::Any(false))) => {
                let detail = format!("{path}.{name} in body is a forbidden property");
                outcome.errors.push(FieldError::invalid(path, name.as_str(), detail));
            }
            (None, _) => {}
        }
    }
    for name in words.required.iter().filter(|name| !members.contains_key(*name)) {
        outcome.errors.push(FieldError::required(Place::Member(&path, name), ""));
    }
}

#[cfg(test)]
mod tests;
