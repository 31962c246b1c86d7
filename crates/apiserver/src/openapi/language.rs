//! How a version of OpenAPI says what can be done at a path.

use serde_json::{Value, json};

use super::operation::{Operation, PathItem};

/// How a version of OpenAPI writes parameters and operations.
pub(super) struct Language {
    /// A parameter of this place, name and type.
    pub(super) parameter: fn(&str, &str, &str) -> Value,
    pub(super) operation: fn(&Operation) -> Value,
}

impl PathItem {
    /// The item in a version of OpenAPI.
    pub(super) fn write(&self, language: &Language) -> Value {
        let named = self.names.iter().map(|name| {
            let mut parameter = (language.parameter)("path", name, "string");
            parameter["required"] = true.into();
            parameter
        });
        let parameters: Vec<Value> = named.chain([(language.parameter)("query", "pretty", "string")]).collect();
        let mut value = json!({"parameters": parameters});
        for operation in &self.operations {
            value[operation.method] = (language.operation)(operation);
        }
        value
    }
}
