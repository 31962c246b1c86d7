//! Columns that a CustomResourceDefinition declares.

use serde_json::Value;

use super::{age, column::Column, view::View};
use crate::jsonpath::{JsonPath, JsonPathError};

/// A column and where its cells come from.
#[derive(Clone, Debug)]
pub(crate) struct CustomColumn {
    pub(super) column: Column,
    path: JsonPath,
}

impl CustomColumn {
    /// Reads one entry of `additionalPrinterColumns`.
    pub(crate) fn parse(raw: &Value) -> Result<Self, JsonPathError> {
        let text = |member: &str| raw.get(member).and_then(Value::as_str).unwrap_or_default();
        let path = text("jsonPath");
        let description = match text("description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            given => given.to_owned(),
        };
        let column = Column {
            name: text("name").to_owned(),
            kind: text("type").to_owned(),
            format: text("format").to_owned(),
            description,
            priority: raw.get("priority").and_then(Value::as_i64).unwrap_or(0),
        };
        Ok(Self { column, path: JsonPath::parse(path)? })
    }

    /// The column that a definition without columns has.
    pub(crate) fn age() -> Self {
        let raw = serde_json::json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        Self::parse(&raw).expect("the path is a constant that parses")
    }

    /// The cell of an object; null where it has nothing to show.
    pub(super) fn cell(&self, view: &View<'_>) -> Value {
        let Some(value) = self.path.first(view.object).filter(|value| !value.is_null()) else { return Value::Null };
        match (self.column.kind.as_str(), value) {
            ("string", Value::String(text)) => text.as_str().into(),
            ("string", other) => other.to_string().into(),
            ("date", Value::String(time)) => age::since(Some(time), view.now).into(),
            ("boolean", Value::Bool(_)) => value.clone(),
            ("number", Value::Number(number)) => number.as_f64().into(),
            #[expect(clippy::cast_possible_truncation, reason = "upstream cuts fractions off as well")]
            ("integer", Value::Number(number)) => {
                number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).into()
            }
            _ => Value::Null,
        }
    }
}
