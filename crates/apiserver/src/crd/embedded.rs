//! Whole objects inside of custom resources (`x-kubernetes-embedded-resource`).

use serde_json::Value;
use windlass_schema::{FieldError, Schema, names};

/// What is wrong with the types of embedded objects.
pub(super) fn validate(schema: &Schema, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match value {
        Value::Object(members) => {
            if schema.is_embedded_resource() && !path.is_empty() {
                errors.extend(["apiVersion", "kind"].iter().filter_map(|member| type_error(value, member, path)));
            }
            for (name, value) in members {
                if let Some(schema) = schema.member(name) {
                    let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    errors.extend(validate(schema, value, &below));
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return errors };
            for (index, value) in items.iter().enumerate() {
                errors.extend(validate(schema, value, &format!("{path}[{index}]")));
            }
        }
        _ => {}
    }
    errors
}

fn type_error(object: &Value, member: &str, path: &str) -> Option<FieldError> {
    let path = format!("{path}.{member}");
    match object.get(member) {
        None => Some(FieldError::required(path, "must not be empty")),
        Some(Value::String(text)) if text.is_empty() => Some(FieldError::invalid(path, "", "must not be empty")),
        Some(Value::String(text)) if member == "kind" => {
            let problems = names::label_1035(&text.to_lowercase());
            let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
            (!problems.is_empty()).then(|| FieldError::invalid(path, text.as_str(), detail))
        }
        Some(Value::String(text)) if text.matches('/').count() > 1 => {
            Some(FieldError::invalid(path, text.as_str(), format!("unexpected GroupVersion string: {text}")))
        }
        Some(Value::String(_)) => None,
        Some(other) => Some(FieldError::invalid(path, other.clone(), "must be a string")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn embedded_objects_say_what_they_are() {
        let schema = Schema::from_json_schema_props(&json!({"type": "object", "properties": {"spec": {
            "type": "object", "properties": {"parts": {"type": "array", "items": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            }}},
        }}}))
        .unwrap();
        let object = json!({"apiVersion": "a/v1", "kind": "A", "spec": {"parts": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
            {"kind": ""},
            {"apiVersion": "a/b/c", "kind": "Not a kind"},
            {"apiVersion": 1, "kind": "X"},
        ]}});
        let paths: Vec<String> = validate(&schema, &object, "").into_iter().map(|error| error.path).collect();
        assert_eq!(
            paths,
            [
                "spec.parts[1].apiVersion",
                "spec.parts[1].kind",
                "spec.parts[2].apiVersion",
                "spec.parts[2].kind",
                "spec.parts[3].apiVersion"
            ]
        );
    }
}
