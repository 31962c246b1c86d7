//! Whether an object is what a schema describes: as far as values alone can tell.

use serde_json::Value;

use super::pattern;

/// The first place at which `value` is not what `schema` describes, and why.
pub fn offence(schema: &Value, value: &Value) -> Option<(String, String)> {
    offence_at(schema, value, "")
}

fn offence_at(schema: &Value, value: &Value, path: &str) -> Option<(String, String)> {
    let here = |why: String| Some((path.to_owned(), why));
    if value.is_null() {
        return if schema["nullable"] == true && schema["enum"].is_null() { None } else { here("is null".to_owned()) };
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        return here(format!("is {value}, and may be {}", Value::from(allowed.clone())));
    }
    match (schema["type"].as_str(), value) {
        (Some("integer" | "number"), Value::Number(number)) => {
            number_offence(schema, number.as_f64().unwrap_or_default()).and_then(here)
        }
        (Some("string"), Value::String(text)) => text_offence(schema, text).and_then(here),
        (Some("array"), Value::Array(items)) => size_offence(schema, ["minItems", "maxItems"], items.len())
            .and_then(here)
            .or_else(|| items.iter().find_map(|item| offence_at(&schema["items"], item, &format!("{path}[]")))),
        (Some("object"), Value::Object(_)) => object_offence(schema, value, path),
        (Some("boolean"), Value::Bool(_)) | (None, _) => None,
        (Some(wanted), _) => here(format!("is {value}, and must be of type {wanted}")),
    }
}

fn object_offence(schema: &Value, value: &Value, path: &str) -> Option<(String, String)> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if value.get(name).is_none() {
            return Some((below(name), "is missing".to_owned()));
        }
    }
    let fields = value.as_object().into_iter().flatten();
    fields.into_iter().find_map(|(name, field)| {
        let described = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        described
            .filter(|described| described.is_object())
            .and_then(|described| offence_at(described, field, &below(name)))
    })
}

fn number_offence(schema: &Value, number: f64) -> Option<String> {
    let limit = |name: &str| schema[name].as_f64();
    if let Some(least) = limit("minimum")
        && (number < least || (number == least && schema["exclusiveMinimum"] == true))
    {
        return Some(format!("is {number}, and at least {least}"));
    }
    if let Some(most) = limit("maximum")
        && (number > most || (number == most && schema["exclusiveMaximum"] == true))
    {
        return Some(format!("is {number}, and at most {most}"));
    }
    None
}

fn text_offence(schema: &Value, text: &str) -> Option<String> {
    let by_pattern = || {
        let pattern = schema["pattern"].as_str().filter(|pattern| !pattern::matches(pattern, text))?;
        Some(format!("is {text:?}, and must match {pattern}"))
    };
    size_offence(schema, ["minLength", "maxLength"], text.chars().count()).or_else(by_pattern)
}

fn size_offence(schema: &Value, [least, most]: [&str; 2], size: usize) -> Option<String> {
    let (least, most) = (schema[least].as_u64().unwrap_or(0), schema[most].as_u64().unwrap_or(u64::MAX));
    let size = size as u64;
    (size < least || size > most).then(|| format!("has the size {size}, and may have {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offences_are_named_with_their_place() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "integer", "minimum": 1, "maximum": 9},
            "b": {"type": "string", "pattern": "^x+$", "maxLength": 3},
            "c": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["p", "q"]}},
            "d": {"type": "string", "nullable": true},
            "e": {"type": "object", "additionalProperties": {"type": "boolean"}},
        }});
        let rows = [
            (json!({"a": 1, "b": "xx", "c": ["p"], "d": null, "e": {"k": true}, "unknown": 1}), None),
            (json!({}), Some(("a", "is missing"))),
            (json!({"a": 10}), Some(("a", "is 10, and at most 9"))),
            (json!({"a": 0}), Some(("a", "is 0, and at least 1"))),
            (json!({"a": "1"}), Some(("a", "is \"1\", and must be of type integer"))),
            (json!({"a": null}), Some(("a", "is null"))),
            (json!({"a": 1, "b": "y"}), Some(("b", "is \"y\", and must match ^x+$"))),
            (json!({"a": 1, "b": "xxxx"}), Some(("b", "has the size 4, and may have 0 to 3"))),
            (json!({"a": 1, "c": ["r"]}), Some(("c[]", "is \"r\", and may be [\"p\",\"q\"]"))),
            (json!({"a": 1, "e": {"k": 1}}), Some(("e.k", "is 1, and must be of type boolean"))),
        ];
        for (value, expected) in rows {
            let expected = expected.map(|(path, why)| (path.to_owned(), why.to_owned()));
            assert_eq!(offence(&schema, &value), expected, "{value}");
        }
    }
}
