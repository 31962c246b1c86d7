//! What a schema declares to expressions: types of values, and how large they can get.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{types::Type, value::escape};

/// The largest request that a Kubernetes API server takes, which bounds what no schema bounds.
const REQUEST_BYTES_MAX: u64 = 3 << 20;
/// The fewest bytes of a text, a truth value, a number, an object: `""`, `true`, `0`, `{}`.
const TEXT_BYTES_MIN: u64 = 2;
const TRUTH_BYTES_MIN: u64 = 4;
const NUMBER_BYTES_MIN: u64 = 1;
const CONTAINER_BYTES_MIN: u64 = 2;
/// The bytes of a JSON text by its format: fewest, and most.
const DURATION_BYTES: (u64, u64) = (3, 32);
const DATE_BYTES: (u64, u64) = (12, 12);
const DATE_TIME_BYTES: (u64, u64) = (21, 32);

/// What a schema says of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Declaration {
    /// What it is.
    pub(super) shape: Shape,
    /// The most letters, items or members; none are counted of what has no size.
    pub(super) elements_max: u64,
    /// The fewest bytes of its JSON.
    bytes_min: u64,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Scalar(Type),
    List(Arc<Declaration>),
    Map(Arc<Declaration>),
    /// The fields by their names in expressions.
    Object(BTreeMap<String, Arc<Declaration>>),
}

impl Declaration {
    /// What `schema` declares; `None` if expressions cannot see such values.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let is = |member: &str| schema.get(member) == Some(&Value::Bool(true));
        if is("x-kubernetes-int-or-string") {
            let elements_max = length_max(schema).map_or(REQUEST_BYTES_MAX - 2, |length| length.saturating_mul(4));
            return Some(Self { shape: Shape::Scalar(Type::Dyn), elements_max, bytes_min: 1 });
        }
        let scalar = |found, bytes_min| Some(Self { shape: Shape::Scalar(found), elements_max: 0, bytes_min });
        match schema.get("type").and_then(Value::as_str)? {
            "array" => Self::of_list(schema),
            "object" => Self::of_object(schema),
            "string" => Some(Self::of_text(schema)),
            "boolean" => scalar(Type::Bool, TRUTH_BYTES_MIN),
            "number" => scalar(Type::Double, NUMBER_BYTES_MIN),
            "integer" => scalar(Type::Int, NUMBER_BYTES_MIN),
            _ => None,
        }
    }

    /// A text of which no size is declared.
    pub(super) fn unsized_text() -> Self {
        Self { shape: Shape::Scalar(Type::Text), elements_max: 0, bytes_min: TEXT_BYTES_MIN }
    }

    /// How many such values fit into a request.
    pub(super) fn cardinality_max(&self) -> u64 {
        REQUEST_BYTES_MAX / (self.bytes_min + 1)
    }

    /// What the items of a list or the values of a map are.
    pub(super) fn element(&self) -> Option<&Arc<Self>> {
        match &self.shape {
            Shape::List(element) | Shape::Map(element) => Some(element),
            Shape::Scalar(_) | Shape::Object(_) => None,
        }
    }

    fn of_list(schema: &Value) -> Option<Self> {
        let items = Self::of(schema.get("items")?)?;
        let fitting = (REQUEST_BYTES_MAX - 2) / (items.bytes_min + 1);
        let elements_max = limit(schema, "maxItems").unwrap_or(fitting);
        Some(Self { shape: Shape::List(Arc::new(items)), elements_max, bytes_min: CONTAINER_BYTES_MIN })
    }

    fn of_object(schema: &Value) -> Option<Self> {
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            let values = Self::of(values)?;
            let fitting = (REQUEST_BYTES_MAX - 2) / (values.bytes_min + 6);
            let elements_max = limit(schema, "maxProperties").unwrap_or(fitting);
            return Some(Self { shape: Shape::Map(Arc::new(values)), elements_max, bytes_min: CONTAINER_BYTES_MIN });
        }
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = BTreeMap::new();
        let mut bytes_min = CONTAINER_BYTES_MIN;
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let Some(field) = Self::of(property) else { continue };
            if required.contains(&name.as_str()) && property.get("default").is_none() {
                bytes_min += name.len() as u64 + field.bytes_min + 4;
            }
            fields.insert(escape(name), Arc::new(field));
        }
        if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
            embed(&mut fields);
        }
        Some(Self { shape: Shape::Object(fields), elements_max: 0, bytes_min })
    }

    fn of_text(schema: &Value) -> Self {
        let formatted =
            |found, (bytes_min, elements_max)| Self { shape: Shape::Scalar(found), elements_max, bytes_min };
        let length = length_max(schema);
        match schema.get("format").and_then(Value::as_str) {
            Some("byte") => formatted(Type::Bytes, (TEXT_BYTES_MIN, length.unwrap_or(REQUEST_BYTES_MAX - 2))),
            Some("duration") => formatted(Type::Duration, DURATION_BYTES),
            Some("date") => formatted(Type::Timestamp, DATE_BYTES),
            Some("date-time") => formatted(Type::Timestamp, DATE_TIME_BYTES),
            _ => {
                // A letter has up to four bytes.
                let bytes = length.map(|length| length.saturating_mul(4)).or_else(|| longest_choice(schema));
                formatted(Type::Text, (TEXT_BYTES_MIN, bytes.unwrap_or(REQUEST_BYTES_MAX - 2)))
            }
        }
    }
}

/// Adds what every embedded resource has.
fn embed(fields: &mut BTreeMap<String, Arc<Declaration>>) {
    let text = || Arc::new(Declaration::of_text(&Value::Null));
    let metadata = BTreeMap::from([("name".to_owned(), text()), ("generateName".to_owned(), text())]);
    let metadata = Declaration { shape: Shape::Object(metadata), elements_max: 0, bytes_min: CONTAINER_BYTES_MIN };
    for (name, field) in [("apiVersion", text()), ("kind", text()), ("metadata", Arc::new(metadata))] {
        fields.insert(name.to_owned(), field);
    }
}

fn limit(schema: &Value, member: &str) -> Option<u64> {
    let number = schema.get(member)?;
    number.as_u64().or_else(|| number.as_i64().map(|_| 0))
}

fn length_max(schema: &Value) -> Option<u64> {
    limit(schema, "maxLength")
}

/// The length of the longest text that an enumeration allows.
fn longest_choice(schema: &Value) -> Option<u64> {
    let choices = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty())?;
    Some(choices.iter().filter_map(Value::as_str).map(|choice| choice.len() as u64).max().unwrap_or(0))
}
